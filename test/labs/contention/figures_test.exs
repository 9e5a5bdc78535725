defmodule Tame.Contention.FiguresTest do
  # The arithmetic of a cell, on clocks and samples that are made up.
  use ExUnit.Case, async: true

  alias Tame.Collapse
  alias Tame.Contention.{Figures, Plan, Verdict}

  doctest Figures
  doctest Collapse
  doctest Plan
  doctest Verdict

  @ms 1_000_000
  @s 1_000_000_000

  defp neighbours(wakes, count \\ 1, span \\ {0, 10 * @s}) do
    Figures.neighbours(wakes, count, 10 * @ms, span)
  end

  # As a neighbour wakes that is never late: nothing is missed up to the last of them.
  defp punctual(from_ms, to_ms), do: for(at <- from_ms..to_ms//10, do: {:a, at * @ms, at * @ms})

  describe "neighbours/4" do
    test "counts each wake-up that was missed by its own lateness" do
      assert %{late: late} = neighbours([{:a, 0, 35 * @ms}], 1, {0, 39 * @ms})
      assert late == [35 * @ms, 25 * @ms, 15 * @ms, 5 * @ms]
    end

    test "counts one that has not woken when the flood ends with its lateness so far" do
      assert %{late: late, missed_seconds: 2} =
               neighbours(punctual(0, 100), 1, {0, 100 * @ms + 2 * @s + 15 * @ms})

      assert Enum.max(late) == 2 * @s + 5 * @ms
    end

    test "counts one that nobody ever heard of as silent from the start" do
      assert %{late: late, missed_seconds: 3} = neighbours([], 2, {0, 3 * @s})
      assert Enum.max(late) == 3 * @s
      assert length(late) == 2 * 301
    end

    test "adds up whole seconds of each stretch, of the neighbour that fared worst" do
      wakes =
        [{:a, 0, 1900 * @ms}, {:a, 1910 * @ms, 4000 * @ms}, {:b, 0, 2500 * @ms}] ++
          for(at <- 4010..10_000//10, do: {:a, at * @ms, at * @ms}) ++
          for(at <- 2510..10_000//10, do: {:b, at * @ms, at * @ms})

      assert %{missed_seconds: 3} = neighbours(wakes, 2)
    end

    test "just under a second is none missed" do
      wakes = [{:a, 0, @s - 1} | punctual(1000, 10_000)]
      assert %{missed_seconds: 0} = neighbours(wakes)
    end

    test "leaves out what was before the flood and after it" do
      wakes = [{:a, 0, 500 * @ms}, {:a, 510 * @ms, 511 * @ms}] ++ punctual(520, 600)
      assert %{late: late} = neighbours(wakes, 1, {505 * @ms, 560 * @ms})
      assert Enum.max(late) == @ms
    end

    test "a wake-up that was planned in the flood and came after its end counts whole" do
      assert %{late: late} =
               neighbours(punctual(0, 90) ++ [{:a, 100 * @ms, 400 * @ms}], 1, {0, 105 * @ms})

      assert Enum.max(late) == 300 * @ms
    end
  end

  describe "waits/4" do
    test "of nothing that was asked is nothing" do
      assert Figures.waits([], :dirty_cpu, 10, {0, 100}) == []
    end

    test "one that never got its turn waits until the end, and is not left out" do
      assert Figures.waits([{:dirty_cpu, :asked, 0}], :dirty_cpu, 40, {0, 100}) == [100, 60, 20]
    end

    test "one that was over before the flood does not count" do
      askers = [
        {:dirty_io, :asked, 0},
        {:dirty_io, :got, 5},
        {:dirty_io, :asked, 20},
        {:dirty_io, :got, 22}
      ]

      assert Figures.waits(askers, :dirty_io, 100, {10, 50}) == [2]
    end
  end

  describe "utilisation/2" do
    @facts %{schedulers: 2, all_schedulers: 3, dirty_cpu_schedulers: 1}

    defp wall(values),
      do: %{wall: for({active, id} <- Enum.with_index(values, 1), do: {id, active, 1000})}

    test "tells kinds apart by their numbers, and leaves out schedulers that are not online" do
      before = %{wall: for(id <- 1..5, do: {id, 0, 0})}

      assert Figures.utilisation({before, wall([500, 250, 0, 1000, 100])}, @facts) ==
               %{normal: [0.5, 0.25], dirty_cpu: [1.0], dirty_io: [0.1]}
    end

    test "counters that have wrapped in between count on" do
      top = 0xFFFF_FFFF_FFFF_FFFF
      before = %{wall: [{1, top - 99, top - 199}, {2, 0, 0}]}
      later = %{wall: [{1, 100, 200}, {2, 50, 100}]}

      assert Figures.utilisation({before, later}, @facts).normal == [200 / 400, 0.5]
    end

    test "between two readings of the same moment nothing is busy" do
      same = wall([10, 10, 0, 0, 0])
      assert Figures.utilisation({same, same}, @facts).normal == [0.0, 0.0]
    end
  end

  describe "samples/4" do
    defp sample(at_ms, active) do
      %{
        at_ns: at_ms * @ms,
        wall: for(id <- 1..4, do: {id, active * @ms, at_ms * @ms}),
        queues: [3, 1, 7, 0],
        finished: at_ms
      }
    end

    test "one that came late is a gap without utilisation, and the next one is none" do
      samples = [sample(0, 0), sample(250, 125), sample(1000, 800), sample(1250, 1050)]

      assert [first, gap, last] = Figures.samples(samples, @facts, 250 * @ms, 250 * @ms)
      assert %{gap: false, since_ms: -250.0, at_ms: at, utilisation: %{normal: [0.5, 0.5]}} = first
      assert %{gap: true, since_ms: ^at, at_ms: 750.0, utilisation: nil} = gap
      assert at == 0
      assert %{gap: false, utilisation: %{normal: [1.0, 1.0]}} = last
    end

    test "the last two run queues are those of the dirty schedulers" do
      assert [%{run_queues: [3, 1], dirty_cpu_queue: 7, dirty_io_queue: 0}] =
               Figures.samples([sample(0, 0), sample(250, 10)], @facts, 0, 250 * @ms)
    end
  end

  describe "figures/2" do
    @spec_of_cell %{
      lead_ms: 250,
      neighbour_ms: 10,
      dirty_ms: 100,
      sample_ms: 250,
      jobs: 200,
      duration_us: 10_000
    }

    defp raw(fields) do
      Map.merge(
        %{
          facts: Map.merge(@facts, %{schedulers: 2, cores: 2, monotonic_ns: 0, machine_ns: 0}),
          started_ns: 0,
          ended_ns: @s,
          outcome: %{status: :ok, bursts: 2, finished: 400, refused: 0},
          slices: [
            %{
              count: 2,
              total_ns: 20 * @ms,
              longest_ns: 10 * @ms,
              p999_ns: 10 * @ms,
              dirty_ns: 0,
              reductions: 40_000
            }
          ],
          neighbours: for(id <- [:a, :b], at <- 0..1000//10, do: {id, at * @ms, at * @ms + 500}),
          askers: [],
          long_schedules: 3,
          samples: [],
          cpu: [],
          memory_bytes: 5_000_000
        },
        fields
      )
    end

    test "of a cell that was not measured have the same keys, and no values" do
      none = Figures.none()
      assert Map.keys(none) == Map.keys(Figures.figures(raw(%{}), @spec_of_cell))
      assert none |> Map.values() |> Enum.uniq() |> Enum.sort() == [[], nil] |> Enum.sort()
      assert none.samples == []
    end

    test "have the least and the greatest of the delays in five parts of the flood" do
      # Punctual, but for one stop of 100 ms in the third of five parts.
      stopped = fn {_, at, _} -> at in (500 * @ms)..(590 * @ms) end
      wakes = Enum.reject(punctual(0, 1000), stopped) ++ [{:a, 500 * @ms, 600 * @ms}]
      facts = %{raw(%{}).facts | schedulers: 1}

      figures = Figures.figures(raw(%{facts: facts, neighbours: Enum.sort(wakes)}), @spec_of_cell)
      assert figures.neighbour_max_us == 100_000.0
      assert figures.within.neighbour_max_us == [0.0, 100_000.0]
      assert [least, greatest] = figures.within.neighbour_p50_us
      assert least == 0.0
      assert greatest >= figures.neighbour_p50_us
    end

    test "have the CPU of other threads during the flood as a share of all cores, on the peer's own clock" do
      sample = fn at_ms, other_ms ->
        # The machine's clock is an hour ahead.
        %{at_ns: 3600 * @s + at_ms * @ms, normal: 0, dirty: 0, process: other_ms * @ms, hosts: 0}
      end

      facts = Map.merge(raw(%{}).facts, %{machine_ns: 3600 * @s})
      samples = [sample.(-20, 0), sample.(0, 0), sample.(20, 30), sample.(1000, 1500)]
      figures = Figures.figures(raw(%{facts: facts, cpu: samples}), @spec_of_cell)
      assert [%{since_ms: -20.0, at_ms: to_ms}, %{since_ms: to_ms, other: 0.75} | _] = figures.cpu
      assert to_ms == 0
      assert_in_delta figures.other_cpu, 0.75, 0.001
    end

    test "have the stretches for which a neighbour waited, together" do
      held = [{:a, 100 * @ms, 150 * @ms}, {:b, 140 * @ms, 200 * @ms}, {:a, 160 * @ms, 161 * @ms}]
      late = for id <- [:a, :b], at <- 210..1000//10, do: {id, at * @ms, at * @ms}

      assert %{held: [%{from_ms: 100.0, to_ms: 200.0}]} =
               Figures.figures(raw(%{neighbours: held ++ late}), @spec_of_cell)
    end

    test "compares the time taken with that of all bursts without a loss" do
      assert %{wall_ms: 1000.0, ideal_ms: 2000.0, finished: 400} =
               Figures.figures(raw(%{}), @spec_of_cell)
    end

    test "takes 4000 reductions a millisecond as charged in full" do
      assert %{charge_ratio: 0.5, longest_slice_us: 10_000.0} =
               Figures.figures(raw(%{}), @spec_of_cell)
    end

    test "what a collection takes by itself is not waiting" do
      askers = [
        {:gc, :asked, -200 * @ms},
        {:gc, :got, -170 * @ms},
        {:gc, :asked, 100 * @ms},
        {:gc, :got, 190 * @ms}
      ]

      assert %{gc_wait_max_us: 60_000.0} = Figures.figures(raw(%{askers: askers}), @spec_of_cell)
    end

    test "of a node that was killed there is what it had said, and silence from then on" do
      neighbours = for id <- [:a, :b], at <- -200..-10//10, do: {id, at * @ms, at * @ms}
      killed = raw(%{outcome: nil, slices: nil, neighbours: neighbours, ended_ns: 4 * @s})

      assert %{
               missed_seconds: 4,
               neighbour_max_us: 4.0e6,
               longest_slice_us: nil,
               charge_ratio: nil,
               finished: 0
             } = Figures.figures(killed, @spec_of_cell)
    end

    test "of a flood whose beginning was not heard, neighbours are silent from when it was due" do
      raw = raw(%{started_ns: nil, outcome: nil, slices: nil, neighbours: [], ended_ns: 3 * @s})
      assert %{wall_ms: 2750.0, missed_seconds: 2} = Figures.figures(raw, @spec_of_cell)
    end
  end

  describe "Plan" do
    @peer %{schedulers: 2, cores: 2, process_limit: 262_144}

    test "refuses more processes than fit in memory or in the node, with what was asked and what is there" do
      assert {:error, "multiplier 10000: 20000 jobs need about 410 MB of memory, 100 MB are free"} =
               Plan.fits([1, 10_000], @peer, 100_000_000)

      assert {:error, "multiplier 1000000: 2000000 jobs are more processes" <> _} =
               Plan.fits([1_000_000], @peer, 1_000_000_000_000)

      assert Plan.fits([10_000], @peer, 1_000_000_000) == :ok
    end

    test "makes no more threads than the machine can bear" do
      {:ok, [thread, pool]} = Plan.fetch(["thread", "pool"])

      assert Plan.refusal(thread, 20_000, @peer) =~
               "20000 threads at once, the lab makes at most 2000"

      assert Plan.refusal(thread, 2000, @peer) == nil
      assert Plan.refusal(pool, 20_000, @peer) == nil
    end

    test "a cell lasts longer than one of its jobs" do
      for us <- Plan.durations(:full),
          do: assert(Plan.times(us, :full).limit_ms >= us / 1000 + 2000 or us < 1_000_000)
    end
  end
end
