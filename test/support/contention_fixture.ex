defmodule Tame.ContentionFixture do
  @moduledoc """
  A result of the contention lab as the lab returns it: cells that starve, cells that do not, one that was
  killed, one that failed, and samples with gaps. The figures are made up from typical runs.
  """

  @multipliers [1, 100]
  @durations [1000, 100_000]

  # id, then neighbour p99 and dirty CPU wait p99 in ms at 100×; at 1× a tenth of both.
  @placements [
    {"inline", 1214.0, 4.5},
    {"dirty_cpu", 124.0, 1006.0},
    {"yielding", 16.1, 4.2},
    {"yielding_dirty", 87.0, 310.0},
    {"thread", nil, nil},
    {"auto", 12.4, 3.0},
    {"erlang", 2.1, 4.7}
  ]

  @doc "The result."
  @spec result() :: map()
  def result do
    cells =
      for us <- @durations, placement <- @placements, multiplier <- @multipliers do
        cell(placement, us, multiplier)
      end

    dirty = Enum.find(cells, &(&1.placement == "dirty_cpu" and &1.multiplier == 100))

    %{
      tool: "tame.contention",
      format: 1,
      system: [tame: "0.1.0", command: "mix tame.contention --quick", otp: "25", peer_flags: "none"],
      warnings: [%{id: :busy_wait, text: "Neighbours of dirty_cpu woke late."}],
      command: "mix tame.contention --quick",
      flags: [],
      rounds: 1,
      seed: 7,
      facts: %{schedulers: 2, all_schedulers: 2, dirty_cpu_schedulers: 2, cores: 2},
      empty: figures(0.2, 0.1),
      cells: cells,
      calm: %{cell: dirty, without_busy_wait: %{dirty | neighbour_p99_us: 4000.0}}
    }
  end

  @doc "The result with fields of one placement's cells replaced."
  @spec update(map(), String.t(), map()) :: map()
  def update(result, id, fields) do
    %{
      result
      | cells: for(c <- result.cells, do: if(c.placement == id, do: Map.merge(c, fields), else: c))
    }
  end

  @doc "A sample as `Tame.Contention.Figures.samples/4` makes it."
  @spec sample(number(), number(), boolean()) :: map()
  def sample(since_ms, at_ms, gap?) do
    utilisation = %{normal: [1.0, 0.9], dirty_cpu: [0.1, 0.0], dirty_io: [0.0]}

    %{
      since_ms: since_ms,
      at_ms: at_ms,
      gap: gap?,
      utilisation: if(gap?, do: nil, else: utilisation),
      run_queues: [90, 10],
      dirty_cpu_queue: 0,
      dirty_io_queue: 0,
      finished: round(max(at_ms, 0))
    }
  end

  @doc "Shares of all cores as `Tame.CPU.shares/3` makes them."
  @spec cpu(number(), number(), number()) :: map()
  def cpu(since_ms, at_ms, normal) do
    %{since_ms: since_ms, at_ms: at_ms, normal: normal, dirty: 0.05, other: 0.02, hosts: 0.0}
  end

  defp cell({id, nil, nil}, us, multiplier) do
    why = "not run: 20000 threads at once, the lab makes at most 2000"

    Map.new(figures(1, 1), fn {key, _} -> {key, nil} end)
    |> Map.merge(%{samples: [], cpu: [], held: [], status: "failed", reason: why, tried?: false})
    |> Map.merge(name(id, us, multiplier))
  end

  defp cell({id, p99, dirty}, us, multiplier) do
    share = if multiplier == 1, do: 0.1, else: 1.0
    status = if id == "yielding" and us > 1000, do: "timeout", else: "ok"

    figures(p99 * share, dirty * share)
    |> Map.merge(name(id, us, multiplier))
    |> Map.merge(%{
      status: status,
      reason: if(status == "timeout", do: "stopped after 3000 ms"),
      tried?: true
    })
  end

  defp name(id, us, multiplier) do
    %{placement: id, duration_us: us, multiplier: multiplier, jobs: 2 * multiplier}
  end

  defp figures(neighbour_ms, dirty_ms) do
    %{
      wall_ms: 1050.0,
      ideal_ms: 1000.0,
      finished: 200,
      refused: 0,
      bursts: 1,
      neighbour_p50_us: neighbour_ms * 100,
      neighbour_p99_us: neighbour_ms * 1000,
      neighbour_max_us: neighbour_ms * 1050,
      within: %{
        neighbour_p50_us: [neighbour_ms * 50, neighbour_ms * 150],
        neighbour_p99_us: [neighbour_ms * 500, neighbour_ms * 1050],
        neighbour_max_us: [neighbour_ms * 525, neighbour_ms * 1050]
      },
      spread: %{neighbour_max_us: [neighbour_ms * 1050, neighbour_ms * 1050]},
      missed_seconds: trunc(neighbour_ms / 1000),
      dirty_cpu_wait_p99_us: dirty_ms * 1000,
      dirty_cpu_wait_max_us: dirty_ms * 1000,
      dirty_io_wait_max_us: 3500.0,
      gc_wait_max_us: 28_000.0,
      gc_own_us: 25_000.0,
      normal_utilisation: 0.99,
      dirty_cpu_utilisation: 0.05,
      dirty_io_utilisation: 0.0,
      other_cpu: 0.02,
      busy_cores: 0.008,
      longest_slice_us: 138.0,
      p999_slice_us: 138.0,
      charge_ratio: 9.5,
      long_schedule_events: 1,
      memory_mb: 210.0,
      samples: [
        sample(-250.0, 0.0, false),
        sample(0.0, 250.0, false),
        sample(250.0, 900.0, true),
        sample(900.0, 1050.0, false)
      ],
      cpu: [cpu(-20.0, 0.0, 0.1), cpu(0.0, 20.0, 0.9), cpu(1030.0, 1050.0, 0.8)],
      held: [%{from_ms: 10.0, to_ms: neighbour_ms + 10.0}]
    }
  end
end
