defmodule Tame.TextTable do
  @moduledoc """
  A table as plain text for a terminal: columns as wide as they need, numbers to the right.

      iex> Tame.TextTable.format(["id", "µs"], [["nif", "0.1"], ["port", "51.8"]]) |> IO.iodata_to_binary()
      "id      µs\\nnif    0.1\\nport  51.8\\n"
  """

  @doc "Formats `rows` of texts under `columns`. A column whose every text starts with a digit or is \"-\" is set to the right."
  @spec format([String.t()], [[String.t()]]) :: iodata()
  def format(columns, rows) do
    all = [columns | rows]

    widths =
      all
      |> Enum.zip_with(& &1)
      |> Enum.map(&(&1 |> Enum.map(fn t -> String.length(t) end) |> Enum.max()))

    sides = rows |> Enum.zip_with(& &1) |> Enum.map(&side/1)
    sides = if sides == [], do: Enum.map(columns, fn _ -> :left end), else: sides

    for row <- all do
      line =
        [row, widths, sides]
        |> Enum.zip_with(fn [text, width, side] -> pad(text, width, side) end)
        |> Enum.join("  ")

      [String.trim_trailing(line), ?\n]
    end
  end

  defp side(texts), do: if(Enum.all?(texts, &(&1 =~ ~r/^(\d|-$)/)), do: :right, else: :left)

  defp pad(text, width, :left), do: String.pad_trailing(text, width)
  defp pad(text, width, :right), do: String.pad_leading(text, width)
end
