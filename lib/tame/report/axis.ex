defmodule Tame.Report.Axis do
  @moduledoc """
  Axes that the charts of more than one lab have.
  """

  @doc """
  A Vega-Lite channel for the field `us`, microseconds on a logarithmic scale from `low` to `high`,
  with a line of the grid at each power of ten.

      iex> Tame.Report.Axis.log_us([0.05, 20.0], "round trip, µs").axis.values
      [0.1, 1.0, 10.0]
  """
  @spec log_us([number()], String.t() | nil) :: map()
  def log_us([low, high], title) do
    %{
      field: "us",
      type: "quantitative",
      title: title,
      scale: %{type: "log", domain: [low, high], nice: false},
      axis: %{values: powers(low, high), format: ",~r", grid: true}
    }
  end

  @doc """
  The powers of ten from `low` to `high`, from 1 ns to about 17 min.

      iex> Tame.Report.Axis.powers(10, 1000)
      [10.0, 100.0, 1000.0]
  """
  @spec powers(number(), number()) :: [float()]
  def powers(low, high) do
    for exponent <- -3..9,
        power = :math.pow(10, exponent),
        power >= low and power <= high,
        do: power
  end
end
