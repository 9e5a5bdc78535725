defmodule Tame.Latency.Charts do
  @moduledoc """
  The lab's charts as Vega-Lite specs, data inside: plain maps that any Vega-Lite renderer draws.

  Every method given must have been measured. Times are on a logarithmic axis, because the ways
  into native code lie five orders of magnitude apart.
  """

  alias Tame.Latency.Lines
  alias Tame.Report.{Chart, Words}

  @type method :: map()
  @type spec :: map()

  # What the clock counts. A logarithmic axis has no zero, so a reading of zero is drawn here.
  @floor_us 0.001

  @doc """
  One row a method: a dot at p50, a bar from there to p99, coloured by isolation, in the order given.
  """
  @spec overview([method()]) :: spec()
  def overview(methods) do
    names = methods |> Enum.map(& &1.isolation) |> Enum.uniq()
    known = for {_, name, _} <- Lines.isolations(), name in names, do: name
    isolations = known ++ (names -- known)

    description = "p50 and p99 of every method, coloured by isolation"
    colours = Enum.map(isolations, &{&1, Lines.isolation(&1)})

    Chart.rows(description, "method", methods, %{
      data: %{values: Enum.map(methods, &overview_row/1)},
      encoding: %{
        x: Chart.log_us(overview_domain(methods), "round trip, µs"),
        color: Chart.colours("isolation", colours, %{columns: %{expr: "width < 420 ? 2 : 4"}}),
        tooltip: [
          %{field: "method", title: "method"},
          %{field: "isolation", title: "isolation"},
          Chart.number("p50_us", "p50, µs"),
          Chart.number("p90_us", "p90, µs"),
          Chart.number("p99_us", "p99, µs"),
          Chart.number("p999_us", "p99.9, µs"),
          Chart.number("max_us", "max, µs")
        ]
      },
      layer: [
        Chart.row_bands(),
        %{
          mark: %{type: "bar", height: 8, opacity: 0.35, cornerRadius: 4},
          encoding: %{x2: %{field: "to_us"}}
        },
        %{mark: %{type: "circle", size: 110, opacity: 1}},
        %{
          mark: %{type: "text", align: "right", dx: -9, fontSize: 11},
          encoding: %{text: %{field: "p50_us", type: "quantitative", format: ",.3~r"}, color: nil}
        }
      ]
    })
  end

  @doc "For the first screen: a dot at the p50 of each of `{method, name}`, with its text and how many times the first it is."
  @spec answer([{method(), String.t()}], method() | nil) :: spec()
  def answer(named, baseline) do
    rows =
      for {method, name} <- named do
        us = drawn(method.p50_us)

        %{
          method: name,
          kind: method.isolation,
          us: us,
          text: Words.time(us) <> times_text(us, method, baseline),
          p99_us: method.p99_us
        }
      end

    Chart.answers("p50 of one method of each kind", "method", rows,
      colours: for({colour, name, _} <- Lines.isolations(), do: {name, colour}),
      tooltip: [
        %{field: "method", title: "method"},
        Chart.number("us", "p50, µs"),
        Chart.number("p99_us", "p99, µs")
      ]
    )
  end

  defp times_text(_us, _method, nil), do: ""
  defp times_text(_us, %{id: id}, %{id: id}), do: ""
  defp times_text(us, _method, baseline), do: " · " <> Words.times(us / drawn(baseline.p50_us))

  @doc """
  One line a method: latency against percentile, the percentiles spread as 1/(1 - p), so that the
  rare slow calls get as much room as the many fast ones.

  Options: `:height` in pixels (default: 320), `:pick` makes the legend highlight what is clicked (default: false),
  `:scale_of` are the methods that the axes have room for, so that several pictures are on one scale (default: those
  that are drawn).
  """
  @spec percentiles([method()], keyword()) :: spec()
  def percentiles(methods, opts \\ []) do
    opts = Keyword.validate!(opts, height: 320, pick: false, scale_of: methods)
    rows = Enum.flat_map(methods, &percentile_rows/1)
    all = Enum.flat_map(opts[:scale_of], &percentile_rows/1)
    opacity = if opts[:pick], do: %{opacity: picked(1, 0.1)}, else: %{}

    Chart.new("latency by percentile", opts[:height], %{
      data: %{values: rows},
      encoding: %{
        x: share_axis(all),
        y: Chart.log_us(rows_domain(all), "round trip, µs"),
        color: line_colour(methods, opts[:pick])
      },
      layer: [
        line_layer(methods, opts[:pick], opacity),
        %{
          transform: [%{filter: "datum.mark"}],
          mark: %{type: "circle", size: 34, opacity: 1},
          encoding: opacity
        },
        Chart.nearest([
          %{field: "method", title: "method"},
          %{field: "isolation", title: "isolation"},
          %{field: "percentile", title: "percentile"},
          Chart.number("us", "latency, µs")
        ])
      ]
    })
  end

  defp overview_row(method) do
    method
    |> Map.take([:isolation, :p50_us, :p90_us, :p99_us, :p999_us, :max_us])
    |> Map.merge(%{method: method.id, us: drawn(method.p50_us), to_us: drawn(method.p99_us)})
  end

  # Room on the left for the number beside the first dot.
  defp overview_domain(methods) do
    low = methods |> Enum.map(&drawn(&1.p50_us)) |> Enum.min()
    high = methods |> Enum.map(&drawn(&1.p99_us)) |> Enum.max()
    [low / 10, high * 1.5]
  end

  # The histogram's own steps, and between them the exact percentiles that the tables print.
  defp percentile_rows(method) do
    marks = [
      {50.0, method.p50_us},
      {90.0, method.p90_us},
      {99.0, method.p99_us},
      {99.9, method.p999_us}
    ]

    marked = for {percentile, us} <- marks, do: {percentile, us, true}

    steps =
      for [percentile, us] <- method.percentiles,
          percentile < 100 and not List.keymember?(marks, percentile / 1, 0),
          do: {percentile / 1, us, false}

    rows =
      for {percentile, us, mark} <- Enum.sort(steps ++ marked) do
        row(method, "#{percentile_text(percentile)} %", 100 / (100 - percentile), us, mark)
      end

    rows ++ [max_row(method, List.last(rows).share)]
  end

  # 100 % lies at infinity; the slowest of n calls is drawn where one in n is.
  defp max_row(method, last_share) do
    row(method, "100 % (max)", max(method.count / 1, last_share), method.max_us, true)
  end

  defp row(method, percentile, share, us, mark) do
    %{
      method: method.id,
      isolation: method.isolation,
      percentile: percentile,
      share: Float.round(share, 3),
      us: drawn(us),
      mark: mark
    }
  end

  defp percentile_text(percentile) do
    :erlang.float_to_binary(percentile, [:compact, decimals: 6]) |> String.replace_suffix(".0", "")
  end

  defp drawn(us), do: max(us, @floor_us)

  defp rows_domain(rows) do
    {low, high} = rows |> Enum.map(& &1.us) |> Enum.min_max()
    [low / 1.3, high * 1.3]
  end

  defp share_axis(rows) do
    last = rows |> Enum.map(& &1.share) |> Enum.max()

    %{
      field: "share",
      type: "quantitative",
      title: "percentile of calls",
      scale: %{type: "log", domain: [1, last], nice: false},
      axis: %{
        values: [1.0 | Chart.powers(10, last)],
        labelExpr: "datum.value <= 1 ? '0 %' : format(100 - 100 / datum.value, '~r') + ' %'",
        labelFlush: true,
        labelOverlap: true,
        grid: true
      }
    }
  end

  # The many of the large picture as the width has room for, the few of a small one in two columns.
  defp line_colour(methods, many?) do
    columns = if many?, do: %{expr: "width < 420 ? 2 : width < 700 ? 3 : 5"}, else: 2

    %{
      field: "method",
      type: "nominal",
      title: nil,
      scale: %{
        domain: Enum.map(methods, & &1.id),
        range: for(method <- methods, do: method |> line() |> elem(0))
      },
      legend: %{
        orient: "top",
        symbolType: "stroke",
        symbolSize: 340,
        symbolStrokeWidth: 2.5,
        columns: columns,
        columnPadding: 12
      }
    }
  end

  defp line_layer(methods, pick, opacity) do
    %{
      mark: %{type: "line", strokeWidth: 2, interpolate: "linear"},
      encoding:
        Map.merge(opacity, %{
          strokeDash: %{
            field: "method",
            type: "nominal",
            title: nil,
            scale: %{
              domain: Enum.map(methods, & &1.id),
              range: for(method <- methods, do: method |> line() |> elem(1))
            }
          }
        })
    }
    |> Map.merge(if pick, do: %{params: [pick_param()]}, else: %{})
  end

  defp pick_param do
    %{
      name: "pick",
      select: %{type: "point", fields: ["method"], on: "click", clear: "dblclick"},
      bind: "legend"
    }
  end

  defp picked(yes, no), do: %{condition: %{param: "pick", value: yes}, value: no}

  defp line(method), do: Lines.line(method.id, method.isolation)
end
