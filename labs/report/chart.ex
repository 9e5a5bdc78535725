defmodule Tame.Report.Chart do
  @moduledoc """
  What the charts of more than one lab have, as parts of Vega-Lite specs: plain maps that any Vega-Lite renderer draws.
  """

  @type spec :: map()

  @schema "https://vega.github.io/schema/vega-lite/v6.json"

  @row_px 28

  # In a finding, whose page must fit on one screen.
  @small_row_px 21

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
  def rows(description, name, things, rest), do: rows(description, name, things, @row_px, rest)

  defp rows(description, name, things, row_px, rest) do
    name = %{
      field: name,
      type: "nominal",
      sort: nil,
      title: nil,
      axis: %{domain: false, ticks: false, labelPadding: 8, labelLimit: 160}
    }

    new(description, row_px * length(things), put_in(rest, [:encoding, :y], name))
  end

  @doc "A layer for `rows/4`: a band as wide as each row, so that the pointer need not hit a mark."
  @spec row_bands(map()) :: map()
  def row_bands(encoding \\ %{}) do
    %{
      mark: %{type: "bar", height: @row_px, opacity: 0},
      encoding: Map.merge(encoding, %{x: %{value: 0}, x2: %{value: "width"}})
    }
  end

  @doc "The layers of `rows/4` with dots alone: anywhere in a row the pointer gets this tooltip."
  @spec row_dots([map()]) :: [map()]
  def row_dots(tooltip) do
    [
      row_bands(%{tooltip: tooltip}),
      %{mark: %{type: "circle", size: 110, opacity: 1, tooltip: nil}}
    ]
  end

  # Room for the texts at the right of `answers/4`.
  @answer_px 104

  @doc """
  A small chart for a finding: a row for each text of the field `name`, its dots at `us` on a logarithmic axis, and its
  `text` at the right, where the texts of all rows stand under each other.

  A row has `name`, `kind`, `us` and, once for each name, `text`. Options: `:colours`, `{kind, colour}` of each kind;
  `:tooltip`; `:limits`, `{us, text}` of dashed lines (default: none); `:legend` (default: false).
  """
  @spec answers(String.t(), String.t(), [map()], keyword()) :: spec()
  def answers(description, name, rows, opts) do
    opts = Keyword.validate!(opts, [:colours, :tooltip, limits: [], legend: false])
    limits = for {us, text} <- opts[:limits], do: %{limit_us: us, limit: text}
    all = Enum.map(rows, & &1.us) ++ Enum.map(limits, & &1.limit_us)
    {low, high} = Enum.min_max(all)
    x = %{log_us([low / 1.6, high * 1.6], nil) | axis: time_axis(low, high)}
    colour = colours("kind", opts[:colours])

    names = rows |> Enum.map(& &1[String.to_existing_atom(name)]) |> Enum.uniq()

    rows(description, name, names, @small_row_px, %{
      data: %{values: rows},
      encoding: %{
        x: put_in(x, [:scale, :rangeMax], %{expr: "width - #{@answer_px}"}),
        color: if(opts[:legend], do: colour, else: %{colour | legend: nil})
      },
      # Lines first: above the bands they would take the pointer.
      layer:
        if(limits == [], do: [], else: [limits(limits, :x)]) ++
          [row_bands(%{tooltip: opts[:tooltip]})] ++
          [
            %{mark: %{type: "circle", size: 100, opacity: 1, tooltip: nil}},
            row_texts()
          ]
    })
  end

  @doc """
  A small chart for a finding, as `answers/4`: a bar from 0 to `amount` in each row, its `text` at the right. Options:
  `:colours`, `{kind, colour}` of each kind; `:tooltip`.
  """
  @spec amounts(String.t(), String.t(), [map()], keyword()) :: spec()
  def amounts(description, name, rows, opts) do
    most = rows |> Enum.map(& &1.amount) |> Enum.max()

    x = %{
      field: "amount",
      type: "quantitative",
      title: nil,
      scale: %{domain: [0, max(most, 1)], nice: false, rangeMax: %{expr: "width - #{@answer_px}"}},
      axis: %{tickCount: 4, labelOverlap: true, grid: true}
    }

    names = Enum.map(rows, & &1[String.to_existing_atom(name)])

    rows(description, name, names, @small_row_px, %{
      data: %{values: rows},
      encoding: %{x: x, color: %{colours("kind", opts[:colours]) | legend: nil}},
      layer: [
        row_bands(%{tooltip: opts[:tooltip]}),
        %{
          mark: %{type: "bar", height: div(@small_row_px, 2)},
          encoding: %{tooltip: opts[:tooltip]}
        },
        row_texts()
      ]
    })
  end

  # At the right edge, where those of all rows stand under each other.
  defp row_texts do
    %{
      transform: [%{filter: "isValid(datum.text)"}],
      mark: %{type: "text", align: "right", fontSize: 12, tooltip: nil},
      encoding: %{
        x: %{value: "width"},
        text: %{field: "text", type: "nominal"},
        color: nil
      }
    }
  end

  @doc """
  A layer of dashed lines across the chart, each with its text at its end: of `limits`, maps with `limit_us` and `limit`,
  on the axis `:x` or `:y`.
  """
  @spec limits([map()], :x | :y) :: map()
  def limits(limits, axis) do
    position = %{field: "limit_us", type: "quantitative"}
    grey = Tame.Report.Colours.hex(:grey)

    {rule, text, text_mark} =
      case axis do
        :x ->
          {%{x: position, y: %{value: 0}, y2: %{value: "height"}}, %{x: position, y: %{value: 0}},
           %{align: "center", baseline: "bottom", dy: -3}}

        :y ->
          {%{y: position, x: %{value: 0}, x2: %{value: "width"}},
           %{y: position, x: %{value: "width"}},
           %{align: "right", dx: -2, baseline: "bottom", dy: -2}}
      end

    %{
      data: %{values: limits},
      encoding: %{color: %{value: grey}},
      layer: [
        %{mark: %{type: "rule", strokeDash: [4, 4], color: grey, tooltip: nil}, encoding: rule},
        %{
          mark: Map.merge(%{type: "text", fontSize: 11, color: grey, tooltip: nil}, text_mark),
          encoding: Map.put(text, :text, %{field: "limit", type: "nominal"})
        }
      ]
    }
  end

  @doc "An axis of times in µs from `low` to `high`, each label in the unit that suits it."
  @spec time_axis(number(), number()) :: map()
  def time_axis(low, high) do
    %{
      values: powers(low / 1.6, high * 1.6),
      grid: true,
      labelOverlap: true,
      labelExpr:
        "datum.value >= 1e6 ? datum.value / 1e6 + ' s' : datum.value >= 1000 ? datum.value / 1000 + ' ms' : " <>
          "datum.value >= 1 ? datum.value + ' µs' : round(datum.value * 1000) + ' ns'"
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

  @doc "A channel for the field `bytes` on a logarithmic scale, with labels at powers of four from 16 B on."
  @spec log_bytes([pos_integer()], String.t()) :: map()
  def log_bytes([first, last], title) do
    %{
      field: "bytes",
      type: "quantitative",
      title: title,
      scale: %{type: "log", base: 2, domain: [first / 1.2, last * 1.2], nice: false},
      axis: %{
        values: for(n <- 2..20, size = Integer.pow(4, n), size >= first and size <= last, do: size),
        labelExpr:
          "datum.value < 1024 ? datum.value + ' B' : datum.value < 1048576 ? datum.value / 1024 + ' KiB' : " <>
            "datum.value / 1048576 + ' MiB'",
        labelOverlap: true,
        grid: false
      }
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
