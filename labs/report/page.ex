defmodule Tame.Report.Page do
  @moduledoc """
  A saved report as a page, and beside an older one where there is one to compare with. Pure.
  """

  alias Tame.{Report, SystemInfo}
  alias Tame.Report.{Compare, Saved, Words}

  @doc "The page. `labs` are modules, in the order of their sections; `json` is the name of the file beside it, if there is one."
  @spec render(Saved.t(), [module()], Saved.t() | nil, String.t() | nil, Report.assets()) ::
          iodata()
  def render(saved, labs, old, json, assets) do
    own =
      for lab <- labs, is_map_key(saved.labs, lab.name()), do: lab.section(saved.labs[lab.name()])

    compared = if old, do: [Compare.section(saved, old, labs)], else: []

    Report.render(compared ++ own, SystemInfo.lines(saved.system),
      assets: assets,
      title: "What native code does on this machine",
      lead: lead(saved, own),
      json: json,
      warnings: saved.warnings
    )
  end

  defp lead(saved, sections) do
    [first | others] = for section <- sections, do: section.name || section.title
    names = Words.list([first | Enum.map(others, &amid/1)])

    "#{names}, measured on #{SystemInfo.short(saved.system)}, on #{when_text(saved.at)}, in #{took(saved.took_s)}."
  end

  # In the middle of a sentence: no capital, but of an abbreviation.
  defp amid(name) do
    [word | rest] = String.split(name, " ", parts: 2)

    if word == String.upcase(word),
      do: name,
      else: Enum.join([String.downcase(word) | rest], " ")
  end

  defp when_text(at) do
    case DateTime.from_iso8601(at) do
      {:ok, time, _} -> Calendar.strftime(time, "%-d %B %Y at %H:%M UTC")
      {:error, _} -> at
    end
  end

  defp took(seconds) when seconds < 100, do: "#{seconds} s"
  defp took(seconds), do: "#{round(seconds / 60)} min"
end
