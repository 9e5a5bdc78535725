defmodule Tame.Report.Chart do
  @moduledoc """
  What the charts of more than one lab have, as parts of Vega-Lite specs: plain maps that any Vega-Lite renderer draws.
  """

  @type spec :: map()

  @schema "https://vega.github.io/schema/vega-lite/v6.json"

  @row_px 28

  @doc "A chart as wide as its place and `height` pixels high, with the rest of its spec."
  @spec new(String.t(), pos_integer(), map()) :: spec()
  def new(description, height, rest) do
    Map.merge(rest, %{
      "$schema" => @schema,
      description: description,
      width: "container",
      height: height,
      autosize: %{type: "fit-x", contains: "padding"}
    })
  end

  @doc "A chart with a row for each of `things`, in their order, named by its data's field `name`."
  @spec rows(String.t(), String.t(), [term()], map()) :: spec()
  def rows(description, name, things, rest) do
    name = %{
      field: name,
      type: "nominal",
      sort: nil,
      title: nil,
      axis: %{domain: false, ticks: false, labelPadding: 8, labelLimit: 160}
    }

    new(description, @row_px * length(things), put_in(rest, [:encoding, :y], name))
  end

  @doc "A layer for `rows/4`: a band as wide as each row, so that the pointer need not hit a mark."
  @spec row_bands(map()) :: map()
  def row_bands(encoding \\ %{}) do
    %{
      mark: %{type: "bar", height: @row_px, opacity: 0},
      encoding: Map.merge(encoding, %{x: %{value: 0}, x2: %{value: "width"}})
    }
  end

  @doc "A layer of invisible points: the one nearest to the pointer shows itself and these values."
  @spec nearest([map()]) :: map()
  def nearest(tooltip) do
    %{
      params: [
        %{
          name: "hover",
          select: %{type: "point", on: "pointerover", clear: "pointerout", nearest: true}
        }
      ],
      mark: %{type: "circle", size: 90},
      encoding: %{
        opacity: %{condition: [%{param: "hover", empty: false, value: 1}], value: 0},
        tooltip: tooltip
      }
    }
  end

  @doc "A channel for the field: each of its values with its colour, and dots for a legend, which `legend` adds to."
  @spec colours(String.t(), [{String.t(), String.t()}], map()) :: map()
  def colours(field, pairs, legend \\ %{}) do
    {domain, range} = Enum.unzip(pairs)

    %{
      field: field,
      type: "nominal",
      title: nil,
      scale: %{domain: domain, range: range},
      legend:
        Map.merge(
          %{
            orient: "top",
            symbolType: "circle",
            symbolStrokeWidth: 0,
            symbolOpacity: 1,
            symbolSize: 90
          },
          legend
        )
    }
  end

  @doc "A line of a tooltip: the field's number to four digits, under this title, which names its unit."
  @spec number(String.t(), String.t()) :: map()
  def number(field, title),
    do: %{field: field, type: "quantitative", title: title, format: ",.4~r"}

  @doc """
  A channel for the field `us`, microseconds on a logarithmic scale from `low` to `high`, with a line of the
  grid at each power of ten.

      iex> Tame.Report.Chart.log_us([0.05, 20.0], "round trip, µs").axis.values
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

      iex> Tame.Report.Chart.powers(10, 1000)
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
