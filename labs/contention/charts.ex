defmodule Tame.Contention.Charts do
  @moduledoc """
  The lab's charts as Vega-Lite specs, data inside: plain maps that any Vega-Lite renderer draws.
  """

  alias Tame.Contention.Verdict
  alias Tame.Duration
  alias Tame.Report.{Chart, Colours, Words}

  @type spec :: map()

  @levels %{
    green: Colours.hex(:green),
    yellow: Colours.hex(:yellow),
    red: Colours.hex(:vermillion),
    none: Colours.hex(:grey)
  }

  @normal Colours.hex(:blue)
  @dirty Colours.hex(:green)
  @grey Colours.hex(:grey)

  @quantiles [
    {"p50", :neighbour_p50_us, Colours.hex(:pale_blue)},
    {"p99", :neighbour_p99_us, Colours.hex(:blue)},
    {"max", :neighbour_max_us, Colours.hex(:vermillion)}
  ]

  # A logarithmic axis has no zero.
  @floor_us 1.0

  @doc "The colour of a level."
  @spec level_colour(Verdict.level()) :: String.t()
  def level_colour(level), do: @levels[level]

  @doc "Every colour with what it means."
  @spec words() :: [Tame.Report.Section.word()]
  def words do
    levels =
      for {level, sign, meaning} <- Verdict.meanings() do
        {@levels[level], if(sign == "", do: "#{level}, no sign", else: "#{level}, #{sign}"),
         meaning}
      end

    levels ++
      [
        {@normal, "normal", "in pictures of utilisation, upward: the normal schedulers"},
        {@dirty, "dirty", "there, downward: the dirty CPU schedulers"},
        {@grey, "gap", "there: a sample came late, so nobody knows"}
      ]
  end

  @doc "For the first screen: how long neighbours and dirty work waited at most beside each placement, the worst first."
  @spec answer([map()]) :: spec()
  def answer(cells) do
    rows =
      for cell <- Enum.sort_by(cells, &(-worst(&1))),
          {kind, us} <- [
            {"processes", cell.neighbour_max_us},
            {"dirty work", cell.dirty_cpu_wait_max_us}
          ],
          us != nil do
        %{
          placement: cell.placement,
          kind: kind,
          us: max(us / 1, @floor_us),
          text: if(us == worst(cell), do: Words.time(us)),
          neighbour_ms: cell.neighbour_max_us / 1000,
          dirty_ms: (cell.dirty_cpu_wait_max_us || 0) / 1000
        }
      end

    Chart.answers("the longest wait, by placement", "placement", rows,
      colours: [{"processes", @levels.red}, {"dirty work", @dirty}],
      legend: true,
      limits: [{1_000_000, "1 s"}],
      tooltip: [
        %{field: "placement", title: "placement"},
        Chart.number("neighbour_ms", "processes at most, ms"),
        Chart.number("dirty_ms", "dirty work at most, ms")
      ]
    )
  end

  defp worst(cell), do: max(cell.neighbour_max_us, cell.dirty_cpu_wait_max_us || 0)

  @doc "One row a cell: how late neighbours woke, p50, p99 and max."
  @spec delays([map()]) :: spec()
  def delays(cells) do
    rows =
      for cell <- cells, {name, key, _} <- @quantiles do
        %{placement: cell.placement, quantile: name, us: max(cell[key] / 1, @floor_us)}
        |> Map.merge(for({name, key, _} <- @quantiles, into: %{}, do: {name, cell[key] / 1000}))
      end

    {low, high} = rows |> Enum.map(& &1.us) |> Enum.min_max()

    values = for {name, _, _} <- @quantiles, do: Chart.number(name, "#{name}, ms")

    Chart.rows("how late neighbours woke, by placement", "placement", cells, %{
      data: %{values: rows},
      encoding: %{
        x: %{Chart.log_us([low / 1.5, high * 1.5], nil) | axis: Chart.time_axis(low, high)},
        color: Chart.colours("quantile", for({name, _, colour} <- @quantiles, do: {name, colour}))
      },
      layer: [
        Chart.row_bands(%{tooltip: [%{field: "placement", title: "placement"} | values]}),
        %{mark: %{type: "circle", size: 110, opacity: 1, tooltip: nil}}
      ]
    })
  end

  @doc """
  How busy the schedulers of a cell were over time, in the talk's form: normal ones upward, dirty CPU ones downward, and
  grey over the whole height where a sample came late. `span` is what is drawn, from `span/1`.
  """
  @spec utilisation(map(), [number()]) :: spec()
  def utilisation(cell, span) do
    rows = Enum.flat_map(cell.samples, &bars(cell, &1))

    description =
      "utilisation of schedulers beside #{cell.placement}, #{Duration.text(cell.duration_us)}"

    Chart.new(description, 130, %{
      data: %{values: rows},
      encoding: %{
        x: %{
          field: "since_ms",
          type: "quantitative",
          title: "ms since the flood began",
          axis: %{tickCount: 5, labelOverlap: true, grid: false},
          scale: %{domain: span, nice: false}
        },
        x2: %{field: "at_ms"},
        y: %{
          field: "low",
          type: "quantitative",
          title: nil,
          scale: %{domain: [-100, 100], nice: false},
          axis: %{values: [-100, -50, 0, 50, 100], labelExpr: "abs(datum.value) + ' %'"}
        },
        y2: %{field: "high"},
        color: %{
          Chart.colours("kind", [{"normal", @normal}, {"dirty", @dirty}, {"gap", @grey}])
          | legend: nil
        }
      },
      layer: [
        %{
          mark: %{type: "rect", stroke: "var(--paper)", strokeWidth: 0.5},
          encoding: %{
            opacity: %{
              condition: %{test: "datum.kind == 'gap'", value: 0.35},
              value: 0.95
            },
            tooltip: [
              %{field: "placement", title: "placement"},
              %{field: "kind", title: "schedulers"},
              %{field: "percent", title: "busy, %"},
              %{field: "at_ms", type: "quantitative", title: "until, ms", format: ",.1f"},
              %{field: "queue", title: "run queues"}
            ]
          }
        },
        %{
          data: %{values: [%{at: 0}]},
          mark: %{type: "rule", strokeDash: [4, 4], color: @grey, tooltip: nil},
          encoding: %{
            x: %{field: "at", type: "quantitative"},
            y: %{value: 0},
            y2: %{value: "height"},
            color: %{value: @grey}
          }
        }
      ]
    })
  end

  @doc "The time that all samples of these cells fall into, in ms, for pictures on one scale."
  @spec span([map()]) :: [number()]
  def span(cells) do
    samples = Enum.flat_map(cells, & &1.samples)

    [
      samples |> Enum.map(& &1.since_ms) |> Enum.min(),
      samples |> Enum.map(& &1.at_ms) |> Enum.max()
    ]
  end

  defp bars(cell, %{gap: true} = sample) do
    [bar(cell, sample, "gap", -100, 100, "unknown", "unknown")]
  end

  defp bars(cell, sample) do
    normal = percent(sample.utilisation.normal)
    dirty = percent(sample.utilisation.dirty_cpu)

    [
      bar(cell, sample, "normal", 0, normal, "#{normal}", Enum.join(sample.run_queues, ", ")),
      bar(cell, sample, "dirty", -dirty, 0, "#{dirty}", "#{sample.dirty_cpu_queue}")
    ]
  end

  defp bar(cell, sample, kind, low, high, percent, queue) do
    %{
      placement: cell.placement,
      kind: kind,
      since_ms: sample.since_ms,
      at_ms: sample.at_ms,
      low: low,
      high: high,
      percent: percent,
      queue: queue
    }
  end

  defp percent([]), do: 0
  defp percent(shares), do: round(100 * Enum.sum(shares) / length(shares))
end
