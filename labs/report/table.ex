defmodule Tame.Report.Table do
  @moduledoc """
  Columns and rows. The first cell of a row names the row.

  A table with a `:filter`, the label of one of its columns, can be sorted by every column in the page, and shows all
  rows or those with one text of that column. Without JavaScript it is a table like any other.
  """

  @typedoc "`:number` columns are right-aligned with their decimal points under each other."
  @type column :: {label :: String.t(), :code | :text | :kind | :number}

  @typedoc """
  Text, nothing, text with a coloured dot before it, or a note that takes the rest of the row.
  """
  @type cell ::
          String.t() | nil | {:dot, colour :: String.t(), String.t()} | {:note, String.t()}

  @type t :: %__MODULE__{
          title: String.t(),
          columns: [column()],
          rows: [[cell()]],
          filter: nil | String.t()
        }

  @enforce_keys [:title, :columns, :rows]
  defstruct [:title, :columns, :rows, :filter]
end
