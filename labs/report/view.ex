defmodule Tame.Report.View do
  @moduledoc false
  # The frame of the page around its sections: head, contents, findings, machine. Each from plain data to HTML.

  import Tame.Report.HTML, only: [escape: 1, open: 2, rich: 1, tag: 2, tag: 3]

  alias Tame.Report.{Finding, Section, SectionView}

  @doc "Title, what was measured on what, where the figures are, and that the machine may have spoilt them."
  @spec head(String.t(), String.t() | nil, String.t() | nil, [Section.warning()]) :: iodata()
  def head(title, lead, json, warnings) do
    links = [
      if(json, do: ["Figures: ", tag("a", [href: URI.encode(json)], escape(json)), ". "], else: []),
      if(warnings != [],
        do: ["Before you trust them: ", link("machine", machine_text(warnings)), "."],
        else: []
      )
    ]

    [
      "<header>\n",
      tag("h1", title),
      ?\n,
      if(lead, do: [tag("p", [class: "lead"], escape(lead)), ?\n], else: []),
      if(json || warnings != [], do: [tag("p", [class: "lead"], links), ?\n], else: []),
      "</header>\n"
    ]
  end

  defp machine_text([_]), do: "what was wrong with the machine"
  defp machine_text(warnings), do: "#{length(warnings)} things about the machine"

  @doc "The side bar, which is a menu on a small screen: open in the page, and closed there by its script."
  @spec contents([Section.t()], boolean()) :: iodata()
  def contents([_, _ | _] = sections, machine?) do
    items =
      for section <- sections,
          do: ["<li>", link(section.id, name(section)), figures(section), "</li>\n"]

    [
      open("nav", class: "contents", "aria-label": "Contents"),
      "\n<details open>\n<summary>Contents</summary>\n<ul>\n",
      if(Enum.any?(sections, &(&1.findings != [])), do: item("findings", "In short"), else: []),
      items,
      if(machine?, do: item("machine", "Machine"), else: []),
      "</ul>\n</details>\n</nav>\n"
    ]
  end

  def contents(_one_or_none, _machine?), do: []

  defp item(id, text), do: ["<li>", link(id, text), "</li>\n"]

  defp name(%Section{name: nil, title: title}), do: title
  defp name(%Section{name: name}), do: name

  defp figures(%{figures: []}), do: []

  defp figures(%{id: section_id, figures: figures}) do
    items =
      for figure <- figures, do: ["<li>", link("#{section_id}-#{figure.id}", figure.title), "</li>"]

    tag("ul", [], items)
  end

  @doc "The first screen's findings, each with its picture and the way to its section."
  @spec findings([Section.t()]) :: iodata()
  def findings(sections) do
    owners =
      for section <- sections, finding <- section.findings, into: %{}, do: {finding.id, section}

    case sections |> Enum.flat_map(& &1.findings) |> Finding.shown() do
      [] ->
        []

      findings ->
        [
          open("section", class: "findings", "aria-labelledby": "findings"),
          tag("h2", [id: "findings", class: "unseen"], "In short"),
          "\n<div class=\"cards\">\n",
          for(finding <- findings, do: finding(finding, owners[finding.id])),
          "</div>\n</section>\n"
        ]
    end
  end

  defp finding(finding, section) do
    id = "finding-#{finding.id}"

    [
      open("article", class: "finding", "aria-labelledby": id),
      ?\n,
      tag("h3", [id: id], link(section.id, finding.question)),
      ?\n,
      tag("p", [class: "answer"], rich(finding.answer)),
      ?\n,
      SectionView.chart(finding.spec, id),
      "</article>\n"
    ]
  end

  @doc "The machine, with what may spoil the figures of all labs."
  @spec machine(Tame.Report.system(), [Section.warning()]) :: iodata()
  def machine([], []), do: []

  def machine(system, warnings) do
    [
      open("section", class: "machine", "aria-labelledby": "machine"),
      ?\n,
      tag("h2", [id: "machine"], "Measured on"),
      ?\n,
      SectionView.warnings(warnings),
      SectionView.facts(system),
      "</section>\n"
    ]
  end

  @spec foot() :: iodata()
  def foot do
    "<footer>Made by tame. The charts are Vega-Lite specs, drawn by vega, vega-lite and vega-embed " <>
      "(BSD-3-Clause), which this page holds; it needs no network.</footer>\n"
  end

  defp link(id, text), do: tag("a", [href: "##{id}"], escape(text))
end
