defmodule Tame.Report.Figure do
  @moduledoc """
  A title, a chart or several panels, their caption, and the numbers as a table.

  `:spec` is a Vega-Lite spec with its data inside, or `nil` where there is nothing to draw. It can be
  pasted into any other Vega-Lite renderer, such as Livebook's `VegaLite.from_json/1`: the page adds
  fonts and the colours of text and grid, never data or encoding.

  `:panels` are pictures of one kind beside each other, on one scale: small multiples.
  """

  alias Tame.Report.{Section, Table}

  @typedoc "One of several pictures. `:columns` of the figure is how many stand in a row of a wide screen."
  @type panel :: %{id: String.t(), title: String.t(), note: String.t(), spec: map()}

  @type t :: %__MODULE__{
          id: String.t(),
          title: String.t(),
          caption: [String.t()],
          warnings: [Section.warning()],
          spec: map() | nil,
          panels: [panel()],
          columns: 2 | 3,
          table: Table.t() | nil
        }

  @enforce_keys [:id, :title]
  defstruct [:id, :title, :spec, :table, caption: [], warnings: [], panels: [], columns: 3]
end
