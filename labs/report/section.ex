defmodule Tame.Report.Section do
  @moduledoc """
  One lab's part of the report: text, then figures, then tables without a chart.

  The `:id` starts every anchor of the section, so it is unique in a report and made of `a-z`, `0-9` and `-`.
  """

  alias Tame.Report.{Figure, Table}

  @typedoc "Something that may spoil the numbers, with one sentence of advice. Shown at the top of the page."
  @type warning :: %{id: atom(), text: String.t()}

  @typedoc "A colour of the charts in words: `{\"#1f7fbf\", \"shared\", \"inside the VM\"}`."
  @type word :: {colour :: String.t(), name :: String.t(), meaning :: String.t()}

  @type t :: %__MODULE__{
          id: String.t(),
          title: String.t(),
          warnings: [warning()],
          intro: [String.t()],
          facts: [{String.t(), String.t()}],
          words: [word()],
          figures: [Figure.t()],
          tables: [Table.t()]
        }

  @enforce_keys [:id, :title]
  defstruct [:id, :title, warnings: [], intro: [], facts: [], words: [], figures: [], tables: []]
end
