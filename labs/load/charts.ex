defmodule Tame.Load.Charts do
  @moduledoc "The lab's charts as Vega-Lite specs, data inside: plain maps that any Vega-Lite renderer draws."

  alias Tame.Load.{Format, Threads, Verdict}
  alias Tame.Number
  alias Tame.Report.{Chart, Colours, Lanes, Words}

  @type spec :: map()

  @levels %{
    alive: Colours.hex(:green),
    slow: Colours.hex(:yellow),
    dead: Colours.hex(:vermillion)
  }

  @quantiles [
    {"p50", :hello_p50_us, Colours.hex(:pale_blue)},
    {"p99", :hello_p99_us, Colours.hex(:blue)},
    {"max", :hello_max_us, Colours.hex(:vermillion)}
  ]

  @kinds [
    regular: Colours.hex(:blue),
    dirty: Colours.hex(:green),
    poll: Colours.hex(:violet),
    aux: Colours.hex(:grey),
    other: Colours.hex(:amber)
  ]

  # From the top: lane, colour, what a bar means.
  @lanes [
    {"hello", Colours.hex(:grey), "answers for hello, as a share of the most in any interval"},
    {"late", Colours.hex(:vermillion),
     "hello's p99, from 0.1 ms to 10 s: a fifth of the height for each power of ten"},
    {"jobs", Colours.hex(:olive), "answers for jobs, as a share of the most in any interval"},
    {"utilisation", Colours.hex(:pale_blue), "how busy the normal schedulers say they are"},
    {"held", Colours.hex(:vermillion),
     "the VM did not say so when it was asked, because a scheduler was held: a gap in utilisation"},
    {"regular", Colours.hex(:blue), "CPU of the normal schedulers' threads"},
    {"dirty", Colours.hex(:green), "CPU of the dirty schedulers' threads"},
    {"other", Colours.hex(:amber), "CPU of all other threads of the VM, such as a library's pool"}
  ]

  # A logarithmic axis has no zero.
  @floor_us 1.0

  @doc "The colour of a level."
  @spec level_colour(Verdict.level()) :: String.t()
  def level_colour(level), do: @levels[level]

  @doc "Every colour with what it means."
  @spec words() :: [Tame.Report.Section.word()]
  def words do
    [
      {@levels.alive, "green", "hello's p99 is at most 100 ms, and no more than 1 % has no answer"},
      {@levels.slow, "yellow", "it is less than a second, and no more than 10 % has no answer"},
      {@levels.dead, "red", "it is a second or more, more has no answer, or the server died"}
    ] ++ for({name, colour, meaning} <- @lanes, do: {colour, "lane #{name}", meaning})
  end

  @doc "The colours of `capacity/1` with what they mean."
  @spec threads() :: [Tame.Report.Section.word()]
  def threads do
    meanings = %{
      regular: "schedulers, on which handlers run",
      dirty: "dirty schedulers",
      poll: "the VM's threads that wait for sockets",
      aux: "the VM's thread for background work",
      other: "all others, such as the I/O threads of a server in a NIF"
    }

    for {kind, colour} <- @kinds, do: {colour, to_string(kind), meanings[kind]}
  end

  @doc "For the first screen: hello's p99 beside jobs of each placement, the worst first."
  @spec answer([map()]) :: spec()
  def answer(cells) do
    rows =
      for cell <- Enum.sort_by(cells, &(-&1.hello_p99_us)) do
        %{
          placement: cell.placement,
          kind: to_string(Verdict.level(cell)),
          us: max(cell.hello_p99_us / 1, @floor_us),
          text: Words.time(cell.hello_p99_us),
          p99_ms: cell.hello_p99_us / 1000
        }
      end

    Chart.answers("hello's p99, by placement", "placement", rows,
      colours: for({level, colour} <- @levels, do: {to_string(level), colour}),
      limits: [{1_000_000, "1 s"}],
      tooltip: [%{field: "placement", title: "placement"}, Chart.number("p99_ms", "p99, ms")]
    )
  end

  @doc "For the first screen, where limits were looked for: the rate of jobs that each placement holds, the highest first."
  @spec held([map()]) :: spec()
  def held(limits) do
    rows =
      for limit <- Enum.sort_by(limits, &(-(&1.held_per_s || 0))) do
        held = limit.held_per_s || 0
        kind = if held > 0, do: "alive", else: "dead"

        %{
          placement: limit.placement,
          kind: kind,
          amount: held,
          text: if(held > 0, do: "#{Number.grouped(held)}/s", else: "none")
        }
      end

    Chart.amounts("the rate of jobs that each placement holds", "placement", rows,
      colours: for({level, colour} <- @levels, do: {to_string(level), colour}),
      tooltip: [
        %{field: "placement", title: "placement"},
        Chart.number("amount", "jobs a second")
      ]
    )
  end

  @doc "One row a cell: p50, p99 and the greatest time of hello."
  @spec latencies([map()]) :: spec()
  def latencies(cells) do
    rows =
      for cell <- cells, {name, key, _} <- @quantiles, us = cell[key] do
        %{placement: cell.placement, quantile: name, us: max(us / 1, @floor_us), ms: us / 1000}
      end

    {low, high} = rows |> Enum.map(& &1.us) |> Enum.min_max()

    Chart.rows("how late hello was answered, by placement", "placement", cells, %{
      data: %{values: rows},
      encoding: %{
        x: %{Chart.log_us([low / 1.5, high * 1.5], nil) | axis: Chart.time_axis(low, high)},
        color: Chart.colours("quantile", for({name, _, colour} <- @quantiles, do: {name, colour}))
      },
      layer:
        Chart.row_dots([
          %{field: "placement", title: "placement"},
          %{field: "quantile", title: "which"},
          Chart.number("ms", "ms")
        ])
    })
  end

  @doc "A bar for each server: what a request costs, by kind of thread."
  @spec capacity([map()]) :: spec()
  def capacity(rows) do
    values =
      for row <- rows, kind <- Threads.kinds() do
        %{
          server: name(row),
          kind: to_string(kind),
          cpu: Float.round(row.us_per_request[kind] / 1, 3)
        }
      end

    Chart.rows("CPU time of a request, by kind of thread", "server", rows, %{
      data: %{values: values},
      encoding: %{
        x: %{field: "cpu", type: "quantitative", title: "CPU µs a request", stack: "zero"},
        color:
          Chart.colours("kind", for({kind, colour} <- @kinds, do: {to_string(kind), colour}), %{
            columns: %{expr: "width < 420 ? 3 : 5"}
          })
      },
      layer: [
        %{
          mark: %{type: "bar"},
          encoding: %{
            tooltip: [
              %{field: "server", title: "server"},
              %{field: "kind", title: "threads"},
              Chart.number("cpu", "µs a request")
            ]
          }
        }
      ]
    })
  end

  @doc "A server with its protocol."
  @spec name(map()) :: String.t()
  def name(row), do: "#{row.server} #{row.protocol}"

  @doc "The most of each rate in any interval of these cells, so that their pictures are on one scale."
  @spec scale([map()]) :: %{hello: number(), jobs: number(), span: [number()]}
  def scale(cells) do
    intervals = Enum.flat_map(cells, & &1.intervals)
    most = fn key -> intervals |> Enum.map(& &1[key]) |> Enum.max(fn -> 1 end) |> max(1) end

    %{
      hello: most.(:hello_per_s),
      jobs: most.(:jobs_per_s),
      span: [
        intervals |> Enum.map(& &1.since_ms) |> Enum.min(fn -> 0 end),
        intervals |> Enum.map(& &1.at_ms) |> Enum.max(fn -> 1 end)
      ]
    }
  end

  @doc "Everything that was seen of a cell, on one axis of time."
  @spec time(map(), map()) :: spec()
  def time(cell, scale) do
    bars =
      Enum.flat_map(cell.intervals, &clients(&1, scale)) ++
        Enum.map(cell.utilisation, &inside/1) ++ Enum.flat_map(cell.cpu, &threads/1)

    Lanes.chart(
      "requests, latency and threads beside #{cell.placement}",
      for({name, colour, _} <- @lanes, do: {name, colour}),
      bars,
      span: scale.span,
      title: "ms since the first job",
      marks: [0]
    )
  end

  defp clients(interval, scale) do
    for {lane, share, text} <- [
          {"hello", interval.hello_per_s / scale.hello,
           "#{round(interval.hello_per_s)} answers a second"},
          {"late", Format.height(interval.hello_p99_us) || 0, late(interval)},
          {"jobs", interval.jobs_per_s / scale.jobs,
           "#{round(interval.jobs_per_s)} answers a second"}
        ] do
      %{lane: lane, from_ms: interval.since_ms, to_ms: interval.at_ms, share: share, text: text}
    end
  end

  defp late(%{hello_p99_us: nil}), do: "none was planned"

  defp late(%{hello_p99_us: p99, hello_max_us: max}),
    do: "p99 #{Words.time(p99)}, at most #{if max, do: Words.time(max), else: "unknown"}"

  defp inside(%{late: true} = reading) do
    late = Words.time(1000 * (reading.at_ms - reading.since_ms))

    %{
      lane: "held",
      from_ms: reading.since_ms,
      to_ms: reading.at_ms,
      share: 1,
      text: "no reading for #{late}"
    }
  end

  defp inside(reading) do
    text = "#{round(100 * reading.normal)} %, #{reading.queued} processes wait"

    %{
      lane: "utilisation",
      from_ms: reading.since_ms,
      to_ms: reading.at_ms,
      share: reading.normal,
      text: text
    }
  end

  defp threads(stretch) do
    for {lane, key} <- [{"regular", :normal}, {"dirty", :dirty}, {"other", :other}] do
      %{
        lane: lane,
        from_ms: stretch.since_ms,
        to_ms: stretch.at_ms,
        share: stretch[key],
        text: "#{round(100 * stretch[key])} % of all cores"
      }
    end
  end
end
