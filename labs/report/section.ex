defmodule Tame.Report.Section do
  @moduledoc """
  One lab's part of the report: its conclusion, then figures, then tables without a chart, then how it was measured.

  The `:id` starts every anchor of the section, so it is unique in a report and made of `a-z`, `0-9` and `-`.
  `:name` is one word for the contents; `:findings` are what the section gives to the first screen.
  """

  alias Tame.Report.{Figure, Finding, Table, Words}

  @typedoc "Something that may spoil the numbers, with one sentence of advice. Shown beside what it concerns."
  @type warning :: %{id: atom() | String.t(), text: String.t()}

  @typedoc "A colour of the charts in words: `{\"#1f7fbf\", \"shared\", \"inside the VM\"}`."
  @type word :: {colour :: String.t(), name :: String.t(), meaning :: String.t()}

  @type t :: %__MODULE__{
          id: String.t(),
          name: nil | String.t(),
          title: String.t(),
          findings: [Finding.t()],
          conclusion: [Words.rich()],
          warnings: [warning()],
          intro: [String.t()],
          facts: [{String.t(), String.t()}],
          words: [word()],
          figures: [Figure.t()],
          tables: [Table.t()]
        }

  @enforce_keys [:id, :title]
  defstruct [
    :id,
    :name,
    :title,
    findings: [],
    conclusion: [],
    warnings: [],
    intro: [],
    facts: [],
    words: [],
    figures: [],
    tables: []
  ]

  @doc "The warnings of a result as sections and figures hold them: of the given ids, or of all others."
  @spec warnings(map(), :only | :but, [String.t()]) :: [warning()]
  def warnings(result, which, ids) do
    for %{id: id, text: text} <- result.warnings,
        to_string(id) in ids == (which == :only),
        do: %{id: id, text: text}
  end
end
