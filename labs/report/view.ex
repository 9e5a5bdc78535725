defmodule Tame.Report.View do
  @moduledoc false
  # The parts of the page, each from plain data to HTML.

  import Tame.Report.HTML, only: [dot: 1, escape: 1, open: 2, tag: 2, tag: 3]

  alias Tame.Report.{Figure, Section, Table, TableView}

  # A fact longer than this gets a row of its own and a font in which flags and paths can be read.
  @wide_fact_len 48

  @spec head(String.t(), String.t() | nil) :: iodata()
  def head(title, lead) do
    lead = if lead, do: [tag("p", [class: "lead"], escape(lead)), ?\n], else: []
    ["<header>\n", tag("h1", title), ?\n, lead, "</header>\n"]
  end

  @spec warnings([Section.t()]) :: iodata()
  def warnings(sections) do
    # Two labs on one machine warn of the same thing; once is enough.
    case sections |> Enum.flat_map(& &1.warnings) |> Enum.uniq() do
      [] ->
        []

      warnings ->
        items =
          for %{id: id, text: text} <- warnings do
            ["<li>", escape(text), ?\s, tag("code", to_string(id)), "</li>\n"]
          end

        [
          open("section", class: "warnings", "aria-labelledby": "warnings"),
          ?\n,
          tag("h2", [id: "warnings"], "Before you trust these numbers"),
          ["\n<ul>\n", items, "</ul>\n</section>\n"]
        ]
    end
  end

  @spec contents([Section.t()]) :: iodata()
  def contents([_, _ | _] = sections) do
    items =
      for section <- sections,
          do: ["<li>", link(section.id, section.title), figures(section), "</li>\n"]

    [
      open("nav", class: "contents", "aria-labelledby": "contents"),
      ?\n,
      tag("h2", [id: "contents"], "Contents"),
      ["\n<ul>\n", items, "</ul>\n</nav>\n"]
    ]
  end

  def contents(_one_or_none), do: []

  @spec machine(Tame.Report.system()) :: iodata()
  def machine([]), do: []

  def machine(system) do
    [
      open("section", class: "machine", "aria-labelledby": "machine"),
      ?\n,
      tag("h2", [id: "machine"], "Measured on"),
      ?\n,
      facts(system),
      "</section>\n"
    ]
  end

  @spec section(Section.t()) :: iodata()
  def section(%Section{} = section) do
    [
      open("section", class: "lab", "aria-labelledby": section.id),
      ?\n,
      tag("h2", [id: section.id], escape(section.title)),
      ?\n,
      facts(section.facts),
      paragraphs(section.intro),
      words(section.words),
      Enum.map(section.figures, &figure(&1, section.id)),
      Enum.map(section.tables, &table/1),
      "</section>\n"
    ]
  end

  @spec foot() :: iodata()
  def foot do
    "<footer>Made by tame. The charts are Vega-Lite specs, drawn by vega, vega-lite and vega-embed " <>
      "(BSD-3-Clause), which this page holds; it needs no network.</footer>\n"
  end

  defp figures(%{figures: []}), do: []

  defp figures(%{id: section_id, figures: figures}) do
    items =
      for figure <- figures, do: ["<li>", link("#{section_id}-#{figure.id}", figure.title), "</li>"]

    tag("ul", [], items)
  end

  defp figure(%Figure{} = figure, section_id) do
    id = "#{section_id}-#{figure.id}"

    [
      open("section", class: "figure", "aria-labelledby": id),
      ?\n,
      tag("h3", [id: id], escape(figure.title)),
      ["\n<figure>\n", chart(figure.spec, id), caption(figure.caption), "</figure>\n"],
      table(figure.table),
      "</section>\n"
    ]
  end

  defp chart(nil, _id), do: []

  defp chart(spec, id) do
    without_script = "The chart needs JavaScript. Its numbers are in the table below."

    [
      tag("div", [class: "chart", "data-spec": "#{id}-spec"], tag("noscript", without_script)),
      ?\n,
      # JSON.encode writes "<" as an escape, so nothing in it can end the element.
      tag("script", [type: "application/json", id: "#{id}-spec"], Tame.JSON.encode(spec)),
      ?\n
    ]
  end

  defp caption([]), do: []
  defp caption(lines), do: [tag("figcaption", [], paragraphs(lines)), ?\n]

  defp table(nil), do: []

  defp table(%Table{} = table) do
    [
      "<details open>\n",
      tag("summary", table.title),
      ?\n,
      # Wide tables scroll inside this element, and keys must be able to do that too.
      open("div", class: "scroll", role: "region", tabindex: "0", "aria-label": table.title),
      ?\n,
      TableView.render(table),
      "</div>\n</details>\n"
    ]
  end

  defp facts([]), do: []

  defp facts(facts) do
    rows =
      for {label, text} <- facts do
        wide = if String.length(text) > @wide_fact_len, do: [class: "wide"], else: []
        [tag("div", wide, [tag("dt", to_string(label)), tag("dd", text)]), ?\n]
      end

    [open("dl", class: "facts"), ?\n, rows, "</dl>\n"]
  end

  defp words([]), do: []

  defp words(words) do
    rows =
      for {colour, name, meaning} <- words do
        [tag("div", [], [tag("dt", [], [dot(colour), escape(name)]), tag("dd", meaning)]), ?\n]
      end

    [open("dl", class: "words"), ?\n, rows, "</dl>\n"]
  end

  defp paragraphs(paragraphs), do: Enum.map(paragraphs, &[tag("p", &1), ?\n])

  defp link(id, text), do: tag("a", [href: "##{id}"], escape(text))
end
