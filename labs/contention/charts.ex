defmodule Tame.Contention.Charts do
  @moduledoc """
  The lab's charts as Vega-Lite specs, data inside: plain maps that any Vega-Lite renderer draws.
  """

  alias Tame.Contention.Verdict
  alias Tame.Duration
  alias Tame.Report.{Chart, Colours, Lanes, Words}

  @type spec :: map()

  @levels %{
    green: Colours.hex(:green),
    yellow: Colours.hex(:yellow),
    red: Colours.hex(:vermillion),
    none: Colours.hex(:grey)
  }

  @normal Colours.hex(:blue)
  @dirty Colours.hex(:green)
  @other Colours.hex(:amber)
  @hosts Colours.hex(:violet)
  @held Colours.hex(:vermillion)

  # From the top of a picture.
  @lanes [
    {:held, "neighbours", @held},
    {:normal, "normal", @normal},
    {:dirty, "dirty", @dirty},
    {:other, "other", @other},
    {:hosts, "hosts", @hosts}
  ]

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
        {@held, "neighbours", "in pictures of threads: a neighbour that wanted to run did not"},
        {@normal, "normal", "there: CPU of the normal schedulers' threads"},
        {@dirty, "dirty", "there: of the dirty schedulers' threads"},
        {@other, "other", "there: of all other threads of the VM, such as a library's pool"},
        {@hosts, "hosts", "there: of the OS processes of isolated libraries"}
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
  Which threads used the cores beside a cell, as shares of all cores, and above them the time for which a neighbour that
  wanted to run did not. `span` is what is drawn, from `span/1`.
  """
  @spec threads(map(), [number()]) :: spec()
  def threads(cell, span) do
    hosts? = Enum.any?(cell.cpu, &(&1.hosts > 0))
    lanes = if hosts?, do: @lanes, else: List.keydelete(@lanes, :hosts, 0)

    bars =
      for stretch <- cell.cpu, {kind, name, _} <- lanes, kind != :held do
        %{
          lane: name,
          from_ms: stretch.since_ms,
          to_ms: stretch.at_ms,
          share: stretch[kind],
          text: "#{round(100 * stretch[kind])} % of all cores"
        }
      end

    held =
      for %{from_ms: from, to_ms: to} <- cell.held do
        %{lane: "neighbours", from_ms: from, to_ms: to, share: 1, text: "a neighbour waited"}
      end

    Lanes.chart(
      "threads that used the cores beside #{cell.placement}, #{Duration.text(cell.duration_us)}",
      for({_, name, colour} <- lanes, do: {name, colour}),
      held ++ bars,
      span: span,
      title: "ms since the flood began",
      marks: [0]
    )
  end

  @doc "The time that is drawn of these cells, in ms, for pictures on one scale."
  @spec span([map()]) :: [number()]
  def span(cells) do
    stretches = Enum.flat_map(cells, & &1.cpu)

    [
      stretches |> Enum.map(& &1.since_ms) |> Enum.min(),
      stretches |> Enum.map(& &1.at_ms) |> Enum.max()
    ]
  end
end
