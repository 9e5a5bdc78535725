defmodule Tame.Report.Table do
  @moduledoc """
  Columns and rows. The first cell of a row names the row.

  In the page every table without groups can be sorted by each column. A table with a `:filter`, the label of one of its
  columns, shows all rows or those with one text of that column, and those in which a word stands that the reader
  types. A `{:group, name, text}` among the rows begins a group: what holds for all of its rows is said there, once.

  A table is folded in the page, but for one that is `:open`; without JavaScript all are open.
  """

  @typedoc """
  `:number` columns are right-aligned with their decimal points under each other. `:code` and `:kind` do not wrap,
  `:names` are code and do.
  """
  @type column :: {label :: String.t(), :code | :names | :text | :kind | :number}

  @typedoc """
  Text, nothing, text with a coloured dot before it, or a note that takes the rest of the row.
  """
  @type cell ::
          String.t() | nil | {:dot, colour :: String.t(), String.t()} | {:note, String.t()}

  @type row :: [cell()] | {:group, name :: String.t(), text :: String.t()}

  @type t :: %__MODULE__{
          title: String.t(),
          columns: [column()],
          rows: [row()],
          filter: nil | String.t(),
          open: boolean()
        }

  @enforce_keys [:title, :columns, :rows]
  defstruct [:title, :columns, :rows, :filter, open: false]
end
