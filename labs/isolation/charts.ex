defmodule Tame.Isolation.Charts do
  @moduledoc "The lab's charts as Vega-Lite specs, data inside: plain maps that any Vega-Lite renderer draws."

  alias Tame.Latency.Lines
  alias Tame.Report.{Chart, Colours}

  @type spec :: map()

  @raised Colours.hex(:vermillion)
  @answered Colours.hex(:green)
  @calls Colours.hex(:amber)

  # What is held and by whom: key, name, colour.
  @memory [
    {:vm_rss_bytes, "VM, held", Colours.hex(:blue)},
    {:vm_bytes, "VM, in use", Colours.hex(:pale_blue)},
    {:host_bytes, "host, held", Colours.hex(:amber)}
  ]

  # A logarithmic axis has no zero.
  @floor_us 0.001
  @floor_bytes 1

  @doc "Every colour with what it means."
  @spec words() :: [Tame.Report.Section.word()]
  def words do
    [
      {line("isolated", "process"), "isolated", "a NIF in a host, an OS process, by shared memory"},
      {line("nif_dirty_cpu", "shared"), "nif_dirty_cpu",
       "the same NIF on a dirty CPU scheduler of the VM"},
      {line("port", "process"), "port", "an OS process by pipes, in the external term format"},
      {@raised, "raised", "in the time line: when the call that crashed raised"},
      {@answered, "answered", "there: when the next call was answered"}
    ]
  end

  @doc "A line a method, by the size of its payload: p50, and p99 dashed."
  @spec calls([map()]) :: spec()
  def calls(rows) do
    values =
      for row <- rows, {quantile, key} <- [{"p50", :p50_us}, {"p99", :p99_us}] do
        %{
          method: row.method,
          quantile: quantile,
          bytes: max(row.bytes, @floor_bytes),
          us: max(row[key], @floor_us)
        }
      end

    {low, high} = values |> Enum.map(& &1.us) |> Enum.min_max()
    {first, last} = values |> Enum.map(& &1.bytes) |> Enum.min_max()
    y = Chart.log_us([low / 1.5, high * 1.5], "round trip")

    methods =
      for row <- Enum.uniq_by(rows, & &1.method), do: {row.method, line(row.method, row.isolation)}

    Chart.new("p50 and p99 of calls by the size of their payload", 320, %{
      data: %{values: values},
      encoding: %{
        x: Chart.log_bytes([first, last], "payload"),
        y: %{y | axis: Chart.time_axis(low, high)},
        color: Chart.colours("method", methods),
        detail: %{field: "quantile"}
      },
      layer: [
        %{
          mark: %{type: "line", strokeWidth: 2},
          encoding: %{
            strokeDash: %{
              field: "quantile",
              type: "nominal",
              title: nil,
              scale: %{domain: ["p50", "p99"], range: [[1, 0], [4, 4]]},
              legend: %{orient: "bottom", symbolType: "stroke", symbolStrokeWidth: 2}
            }
          }
        },
        %{mark: %{type: "circle", size: 40, opacity: 1}},
        Chart.nearest([
          %{field: "method", title: "method"},
          %{field: "bytes", type: "quantitative", title: "bytes", format: ","},
          %{field: "quantile", title: "percentile"},
          Chart.number("us", "time, µs")
        ])
      ]
    })
  end

  @doc "From when to when all crashes are drawn, in ms, and the most calls a ms."
  @spec scale([map()]) :: %{ms: [number()], most: number()}
  def scale(crashes) do
    {moments, counts} =
      Enum.unzip(for crash <- crashes, [ms, count] <- crash.calls, do: {ms, count})

    last = crashes |> Enum.map(& &1.answered_ms) |> Enum.max()

    %{
      ms: [Enum.min(moments, fn -> 0 end), max(Enum.max(moments, fn -> 0 end), last) + 1],
      most: max(1, Enum.max(counts, fn -> 1 end))
    }
  end

  @doc "A crash as a time line: another process's calls answered in each ms, and when the call raised and was answered."
  @spec crash(map(), map()) :: spec()
  def crash(crash, scale) do
    values = for [ms, count] <- crash.calls, do: %{from_ms: ms, to_ms: ms + 1, count: count}

    marks = [
      %{at_ms: crash.raised_ms, what: "raised"},
      %{at_ms: crash.answered_ms, what: "answered"}
    ]

    Chart.new("calls answered in each ms around a crash of the host", 120, %{
      data: %{values: values},
      encoding: %{
        x: %{
          field: "from_ms",
          type: "quantitative",
          title: "ms since the call that crashed",
          scale: %{domain: scale.ms, nice: false},
          axis: %{tickCount: 6, labelOverlap: true}
        }
      },
      layer: [
        %{
          mark: %{type: "rect", color: @calls},
          encoding: %{
            x2: %{field: "to_ms"},
            y2: %{datum: 0},
            y: %{
              field: "count",
              type: "quantitative",
              title: "calls a ms",
              scale: %{domain: [0, scale.most]},
              axis: %{tickCount: 3}
            },
            tooltip: [
              %{field: "from_ms", type: "quantitative", title: "from ms"},
              %{field: "count", type: "quantitative", title: "calls answered", format: ","}
            ]
          }
        },
        %{
          data: %{values: marks},
          mark: %{type: "rule", strokeWidth: 2},
          encoding: %{
            x: %{field: "at_ms", type: "quantitative"},
            color:
              Chart.colours("what", [{"raised", @raised}, {"answered", @answered}], %{
                symbolType: "stroke",
                symbolStrokeWidth: 2
              }),
            tooltip: [
              %{field: "what", title: "the call"},
              Chart.number("at_ms", "after ms")
            ]
          }
        }
      ]
    })
  end

  @doc "Memory of the VM and of the host, by the number of calls made."
  @spec memory([map()]) :: spec()
  def memory(rows) do
    values =
      for row <- rows, {key, who, _} <- @memory do
        %{calls: row.calls, who: who, mb: row[key] / 1_000_000}
      end

    Chart.new("memory of the VM and of the host over calls", 220, %{
      data: %{values: values},
      encoding: %{
        x: %{
          field: "calls",
          type: "quantitative",
          title: "calls",
          axis: %{format: "~s", tickCount: 6}
        },
        y: %{field: "mb", type: "quantitative", title: "MB", scale: %{zero: true}},
        color: Chart.colours("who", for({_, who, colour} <- @memory, do: {who, colour}))
      },
      layer: [
        %{mark: %{type: "line", strokeWidth: 2}},
        %{mark: %{type: "circle", size: 40, opacity: 1}},
        Chart.nearest([
          %{field: "who", title: "memory"},
          %{field: "calls", type: "quantitative", title: "after calls", format: ","},
          Chart.number("mb", "MB")
        ])
      ]
    })
  end

  defp line(id, isolation), do: id |> Lines.line(isolation) |> elem(0)
end
