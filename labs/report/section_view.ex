defmodule Tame.Report.SectionView do
  @moduledoc false
  # A section's parts, each from plain data to HTML. What is folded in the page is open in the HTML, so that it is there
  # without JavaScript too; the page's script closes it, and opens it for a print.

  import Tame.Report.HTML, only: [dot: 1, escape: 1, open: 2, rich: 1, tag: 2, tag: 3]

  alias Tame.Report.{Figure, Section, Table, TableView}

  # A fact longer than this gets a row of its own and a font in which flags and paths can be read.
  @wide_fact_len 48

  @spec section(Section.t()) :: iodata()
  def section(%Section{} = section) do
    [
      open("section", class: "lab", "aria-labelledby": section.id),
      ?\n,
      tag("h2", [id: section.id], escape(section.title)),
      ?\n,
      for(
        sentence <- section.conclusion,
        do: [tag("p", [class: "conclusion"], rich(sentence)), ?\n]
      ),
      warnings(section.warnings),
      words(section.words),
      Enum.map(section.figures, &figure(&1, section.id)),
      Enum.map(section.tables, &table/1),
      method(section),
      "</section>\n"
    ]
  end

  @spec warnings([Section.warning()]) :: iodata()
  def warnings([]), do: []

  def warnings(warnings) do
    items =
      for %{id: id, text: text} <- warnings do
        ["<li>", escape(text), ?\s, tag("code", to_string(id)), "</li>\n"]
      end

    [open("ul", class: "warnings"), ?\n, items, "</ul>\n"]
  end

  @doc "A chart and the spec that the page's script draws it from, or nothing."
  @spec chart(map() | nil, String.t()) :: iodata()
  def chart(nil, _id), do: []

  def chart(spec, id) do
    without_script = "The chart needs JavaScript. The tables have its numbers."

    [
      open("div", class: "chart", "data-spec": "#{id}-spec", style: "--height: #{spec[:height]}px"),
      tag("noscript", without_script),
      "</div>\n",
      # JSON.encode writes "<" as an escape, so nothing in it can end the element.
      tag("script", [type: "application/json", id: "#{id}-spec"], Tame.JSON.encode(spec)),
      ?\n
    ]
  end

  @spec facts([{atom() | String.t(), String.t()}]) :: iodata()
  def facts([]), do: []

  def facts(facts) do
    rows =
      for {label, text} <- facts do
        wide = if String.length(text) > @wide_fact_len, do: [class: "wide"], else: []
        [tag("div", wide, [tag("dt", to_string(label)), tag("dd", text)]), ?\n]
      end

    [open("dl", class: "facts"), ?\n, rows, "</dl>\n"]
  end

  # ---- figures --------------------------------------------------------------------------------------

  defp figure(%Figure{} = figure, section_id) do
    id = "#{section_id}-#{figure.id}"

    [
      open("section", class: "figure", "aria-labelledby": id),
      ?\n,
      tag("h3", [id: id], escape(figure.title)),
      "\n<figure>\n",
      chart(figure.spec, id),
      panels(figure, id),
      caption(figure.caption),
      "</figure>\n",
      warnings(figure.warnings),
      table(figure.table),
      "</section>\n"
    ]
  end

  defp panels(%{panels: []}, _id), do: []

  defp panels(%{panels: panels, columns: columns}, id) do
    items =
      for panel <- panels do
        [
          open("div", class: "panel"),
          tag("h4", panel.title),
          tag("p", panel.note),
          ?\n,
          chart(panel.spec, "#{id}-#{panel.id}"),
          "</div>\n"
        ]
      end

    [open("div", class: "panels across-#{columns}"), ?\n, items, "</div>\n"]
  end

  defp caption([]), do: []
  defp caption(lines), do: [tag("figcaption", [], paragraphs(lines)), ?\n]

  # ---- tables and words -----------------------------------------------------------------------------

  defp table(nil), do: []

  defp table(%Table{} = table) do
    # Wide tables scroll inside this element, and keys must be able to do that too.
    scroll = [
      open("div", class: "scroll", role: "region", tabindex: "0", "aria-label": table.title),
      ?\n,
      TableView.render(table),
      "</div>\n"
    ]

    if table.open, do: scroll, else: folded(table.title, scroll)
  end

  defp method(%Section{facts: [], intro: []}), do: []

  defp method(%Section{facts: facts, intro: intro}) do
    folded("How it was measured", [facts(facts), paragraphs(intro)])
  end

  defp folded(summary, inner) do
    ["<details class=\"fold\" open>\n", tag("summary", summary), ?\n, inner, "</details>\n"]
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
end
