defmodule Tame.Contention.Charts do
  @moduledoc """
  The lab's charts as Vega-Lite specs, data inside: plain maps that any Vega-Lite renderer draws.
  """

  alias Tame.Contention.Verdict
  alias Tame.Report.{Chart, Colours, Words}

  @type spec :: map()

  @levels %{
    green: Colours.hex(:green),
    yellow: Colours.hex(:yellow),
    red: Colours.hex(:vermillion),
    none: Colours.hex(:grey)
  }

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

  @doc "The colours of levels with what they mean."
  @spec words() :: [Tame.Report.Section.word()]
  def words do
    levels =
      for {level, sign, meaning} <- Verdict.meanings() do
        {@levels[level], if(sign == "", do: "#{level}, no sign", else: "#{level}, #{sign}"),
         meaning}
      end

    levels ++ [{@levels.none, "grey", "the cell was not run"}]
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
      colours: [{"processes", @levels.red}, {"dirty work", Colours.hex(:green)}],
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
      layer: Chart.row_dots([%{field: "placement", title: "placement"} | values])
    })
  end
end
