defmodule Tame.Report.Colours do
  @moduledoc """
  The colours of all charts, by name. What a colour means is said by each lab, in the words of its section.

  The hues follow Okabe and Ito's set, which colour-blind readers can tell apart, moved to a lightness that reads on
  white and on near-black paper alike (contrast 3:1 or more on both for the lines of the latency lab). The page's own
  colours, of text and paper, are in `assets/page.css`.
  """

  @hex %{
    amber: "#b27b0e",
    blue: "#1f7fbf",
    cyan: "#1798ab",
    green: "#0a9a72",
    grey: "#7b848e",
    indigo: "#7569d6",
    olive: "#7f8c2a",
    pale_blue: "#8fb8d8",
    pink: "#c2609a",
    plum: "#b0568b",
    sky: "#56a0d3",
    vermillion: "#d55e00",
    violet: "#8a5fbf",
    yellow: "#c99700"
  }

  @doc """
  A colour as CSS and Vega-Lite write it.

      iex> Tame.Report.Colours.hex(:blue)
      "#1f7fbf"
  """
  @spec hex(atom()) :: String.t()
  def hex(name), do: Map.fetch!(@hex, name)
end
