defmodule Tame.Report.TableView do
  @moduledoc false
  # A table as HTML, its numbers aligned at the decimal point.

  import Tame.Report.HTML, only: [dot: 1, escape: 1, open: 2, tag: 3]

  alias Tame.Number
  alias Tame.Report.Table

  @spec render(Table.t()) :: iodata()
  def render(%Table{columns: columns} = table) do
    rows = Enum.filter(table.rows, &is_list/1)
    classes = columns |> Enum.with_index() |> Enum.map(fn {column, i} -> class(column, rows, i) end)

    labels = if stacked?(columns, rows), do: for({label, _} <- columns, do: label), else: []

    [
      open("table", filter(table) ++ if(labels == [], do: [], else: [class: "stack"])),
      "\n<thead>\n<tr>",
      for({{label, _kind}, class} <- Enum.zip(columns, classes), do: head(label, class)),
      "</tr>\n</thead>\n",
      for({group, rows} <- groups(table.rows), do: body(group, rows, classes, labels)),
      "</table>\n"
    ]
  end

  # Sentences beside each other are too wide for a small screen, which shows them below each other, each with its label; and
  # many numbers where there are few rows.
  defp stacked?(columns, rows) do
    kinds = for {_, kind} <- columns, do: kind
    (:text in kinds and :number not in kinds) or (length(columns) > 6 and length(rows) <= 6)
  end

  # The page's script does the rest.
  defp filter(%Table{filter: nil}), do: []

  defp filter(%Table{filter: label, columns: columns}) do
    index = Enum.find_index(columns, &(elem(&1, 0) == label))
    ["data-filter": "#{index}"]
  end

  # `[{group | nil, rows}]`: a table without groups is one without a name.
  defp groups([{:group, _, _} = group | rows]) do
    {own, more} = Enum.split_while(rows, &is_list/1)
    [{group, own} | if(more == [], do: [], else: groups(more))]
  end

  defp groups(rows) do
    {own, more} = Enum.split_while(rows, &is_list/1)
    [{nil, own} | if(more == [], do: [], else: groups(more))]
  end

  defp body(group, rows, classes, labels) do
    [
      "<tbody>\n",
      group(group, length(classes)),
      for(row <- rows, do: ["<tr>", row(row, classes, labels), "</tr>\n"]),
      "</tbody>\n"
    ]
  end

  defp group(nil, _columns), do: []

  defp group({:group, name, text}, columns) do
    inner = [tag("span", [class: "code"], escape(name)), ?\s, tag("small", [], escape(text))]

    [
      tag("tr", [class: "group"], tag("th", [scope: "rowgroup", colspan: "#{columns}"], inner)),
      ?\n
    ]
  end

  defp head(label, class), do: tag("th", [scope: "col", class: class], escape(label))

  defp row([name | cells], [class | classes], labels) do
    [
      tag("th", [scope: "row", class: class], inner(name, class))
      | cells(cells, classes, Enum.drop(labels, 1))
    ]
  end

  defp cells([{:note, text} | _], classes, _labels) do
    [tag("td", [class: "note", colspan: "#{length(classes)}"], escape(text))]
  end

  defp cells([cell | cells], [class | classes], labels) do
    {label, labels} = List.pop_at(labels, 0)
    attributes = if label, do: [class: class, "data-label": label], else: [class: class]
    [tag("td", attributes, inner(cell, class)) | cells(cells, classes, labels)]
  end

  defp cells([], _classes, _labels), do: []

  defp inner(nil, _class), do: "–"

  defp inner({:dot, colour, text}, "number" <> _ = class),
    do: tag("span", [class: "together"], [dot(colour), inner(text, class)])

  # A dot alone at the end of a line would belong to nothing.
  defp inner({:dot, colour, text}, _class) do
    [first | more] = String.split(text, " ", parts: 2)

    [
      tag("span", [class: "together"], [dot(colour), escape(first)]),
      for(words <- more, do: [?\s, escape(words)])
    ]
  end

  defp inner(text, "number" <> _),
    do: if(unit?(text), do: escape(text), else: number(String.split(text, ".", parts: 2)))

  defp inner(text, _class), do: escape(text)

  # Thousands are set apart by style, so that a copied number is still a number.
  defp number([whole | fraction]) do
    {front, [last]} = whole |> Number.thousands() |> Enum.split(-1)
    [Enum.map(front, &tag("span", [class: "k"], escape(&1))), escape(last), fraction(fraction)]
  end

  defp fraction([]), do: [open("span", class: "after"), "</span>"]
  defp fraction([digits]), do: tag("span", [class: "after"], ["." | escape(digits)])

  # "number d2": right-aligned, with room for two decimals in every row. Times whose units differ have no point in common.
  defp class({_label, :number}, rows, index) do
    texts = Enum.map(rows, &Enum.at(&1, index))
    most = texts |> Enum.map(&decimals_len/1) |> Enum.max(fn -> 0 end)
    if most == 0 or Enum.any?(texts, &unit?/1), do: "number", else: "number d#{most}"
  end

  defp class({_label, kind}, _rows, _index), do: Atom.to_string(kind)

  defp unit?({:dot, _, text}), do: unit?(text)
  defp unit?(text), do: is_binary(text) and text =~ ~r/\p{L}$/u

  defp decimals_len({:dot, _, text}), do: decimals_len(text)

  defp decimals_len(text) when is_binary(text) do
    case String.split(text, ".", parts: 2) do
      [_whole, digits] -> String.length(digits)
      [_whole] -> 0
    end
  end

  defp decimals_len(_other), do: 0
end
