defmodule Tame.Report.Figure do
  @moduledoc """
  A title, a chart, its caption, and the chart's numbers as a table.

  `:spec` is a Vega-Lite spec with its data inside, or `nil` where there is nothing to draw. It can be
  pasted into any other Vega-Lite renderer, such as Livebook's `VegaLite.from_json/1`: the page adds
  fonts and the colours of text and grid, never data or encoding.
  """

  alias Tame.Report.Table

  @type t :: %__MODULE__{
          id: String.t(),
          title: String.t(),
          caption: [String.t()],
          spec: map() | nil,
          table: Table.t() | nil
        }

  @enforce_keys [:id, :title]
  defstruct [:id, :title, :spec, :table, caption: []]
end
