defmodule Tame.JobTest do
  use ExUnit.Case, async: true

  alias Tame.{JobFetchScenarios, JobProbe, JobQueueScenarios, JobScenarios}
  alias Tame.Test.CLibrary

  @moduletag isolation: :shared

  @placements JobProbe.placements()

  # Callers cannot be killed in the middle of `inline`, which is one step to the scheduler.
  @stoppable @placements -- [:inline]

  setup_all do
    folder = CLibrary.tmp_dir!()
    %{folder: folder, library: JobProbe.build(folder)}
  end

  # Each test has its file of counters, in the folder of all.
  setup %{folder: folder} do
    path = Path.join(folder, "counters_#{System.unique_integer([:positive])}")
    JobProbe.new_counters(path)
    %{path: path}
  end

  describe "every placement" do
    test "returns the result, leaves nothing in the caller, and cleans up", context do
      peer = start_peer(context)

      for placement <- @placements do
        assert {:value, {own, own}} = run(peer, JobScenarios, :leavings, [placement])
      end

      # Three good calls and a bad one each.
      assert %{init: init, cleanup: init, result: results, broken: 0} = settled(context.path)
      assert {init, results} == {4 * length(@placements), 3 * length(@placements)}
    end

    test "refuses bad arguments without leaking", context do
      peer = start_peer(context)
      sanitized = System.get_env("TAME_NATIVE_DIR") != nil

      for placement <- @placements do
        # init runs before the placements part, but for the dirty ones: many calls where one is cheap.
        calls =
          cond do
            sanitized -> 1_000
            placement == :inline -> 200_000
            placement in [:dirty_cpu, :dirty_io] -> 10_000
            true -> 20_000
          end

        grown = run(peer, JobScenarios, :bad_calls, [placement, calls])
        # A state leaks its 1000 bytes, a term at least 16.
        assert grown < 8 * calls, "#{placement} grew by #{grown} bytes in #{calls} calls"
      end

      assert %{init: same, cleanup: same, broken: 0} = settled(context.path)
    end
  end

  test "exor gives the same in every placement, whatever the input's size and alignment" do
    for size <- [0, 1, 63, 64, 65, 100_000] do
      a = :crypto.strong_rand_bytes(size)
      b = :crypto.strong_rand_bytes(size)
      <<_::3, shifted::bitstring>> = <<1::3, a::binary>>
      expected = :crypto.exor(a, b)

      for name <- ~w(exor exor_inline exor_chunks exor_yielding exor_dirty exor_yielding_dirty
                     exor_thread exor_pool)a,
          first <- [a, shifted] do
        assert {name, size, apply(:tame_exor, name, [first, b]) == expected} == {name, size, true}
      end
    end
  end

  describe "a killed caller" do
    for placement <- @placements do
      test "stops its job: #{placement}", context do
        peer = start_peer(context)

        {outlived_ms, steps, counters} =
          run(peer, JobScenarios, :kill, [unquote(placement), context.path])

        assert steps == 0
        assert %{init: 2, cleanup: 2, broken: 0, result: results} = counters
        # The next job's. The inline one comes to its end.
        assert results == if(unquote(placement) in @stoppable, do: 1, else: 2)

        # The step is a few us, so this is the machine's doing; a job that is not stopped takes 600 s.
        assert outlived_ms < 60_000
      end
    end

    test "may die at any moment of a short job", context do
      peer = start_peer(context)

      for placement <- @placements do
        counters = run(peer, JobScenarios, :kill_anywhere, [placement, context.path])
        assert %{init: same, cleanup: same, broken: 0} = counters
      end
    end

    test "does not keep its place in the queue", context do
      peer = start_peer(context)

      assert {:ok, 10, %{init: 12, cleanup: 12, broken: 0}} =
               run(peer, JobQueueScenarios, :kill_waiting, [context.path])
    end
  end

  describe "a call whose steps are done, and whose result is not made" do
    test "is cleaned up when its caller dies, and is no other process's", context do
      assert {:badarg, before, later, 5} =
               run(start_peer(context), JobFetchScenarios, :die_before_fetch, [context.path])

      assert %{init: 1, result: 0, cleanup: 0} = before
      assert %{init: 1, result: 0, cleanup: 1, broken: 0} = later
    end

    test "gives its place back when its caller dies", context do
      assert run(start_peer(context), JobFetchScenarios, :gate_before_fetch, [context.path]) ==
               {2, 2}
    end

    test "is asked for it once, with as many arguments", context do
      assert {[:badarg, 1, :badarg], counters} =
               run(start_peer(context), JobFetchScenarios, :fetch_twice, [context.path])

      assert %{init: 1, result: 1, cleanup: 1, broken: 0} = counters
    end

    test "or that has its turn, goes on in a module that was loaded anew", context do
      assert {[1, 2], counters} =
               run(start_peer(context), JobFetchScenarios, :upgrade_before_fetch, [context.path])

      assert %{result: 2, broken: 0} = counters
    end
  end

  test "an init that fails without a reason, or with an exception, does not hang its caller",
       context do
    peer = start_peer(context)

    for placement <- @placements do
      assert {placement, run(peer, JobScenarios, :refused, [placement])} ==
               {placement,
                [
                  {:tame, :failed},
                  :badarg,
                  {:tame, :input_outside_state},
                  {:tame, :no_such_argument},
                  {:tame, :no_such_argument},
                  {:tame, :iodata_without_terms}
                ]}
    end
  end

  test "an input whose size the job wrote is told as such, where the library looks it up again",
       context do
    peer = start_peer(context)

    for placement <- @placements -- [:inline, :dirty_cpu, :dirty_io] do
      assert {placement, run(peer, JobScenarios, :raised, [placement, [2000, "shortened"]])} ==
               {placement, {:tame, :input_written}}
    end
  end

  describe "the pool" do
    test "is first come first served", context do
      peer = start_peer(context, [~c"+S", ~c"1:1"])
      # The first result is that of the call that held the worker.
      assert run(peer, JobQueueScenarios, :order, [context.path]) == Enum.to_list(2..21)
    end

    test "refuses at once what may not wait", context do
      peer = start_peer(context, [~c"+S", ~c"1:1"])

      # The test above is about their order: on a busy machine a second worker may have come meanwhile.
      {values, refused} =
        Enum.split_with(
          run(peer, JobQueueScenarios, :refuse, [context.path]),
          &match?({:value, _}, &1)
        )

      assert Enum.sort(values) == for(number <- 2..4, do: {:value, number})
      assert refused == List.duplicate({:error, {:tame, :busy}}, 7)

      assert %{init: 11, cleanup: 11, result: 4, broken: 0} = settled(context.path)
    end
  end

  describe "what the review of version 1 found" do
    test "short calls in the pool do not wait for the end of long ones", context do
      assert run(start_peer(context), JobQueueScenarios, :short_behind_long, [context.path]) == 20
    end

    test "who keeps a late error keeps no place, and no run", context do
      {admitted, frames} = run(start_peer(context), JobQueueScenarios, :kept_errors, [context.path])
      assert admitted == 2
      assert Enum.uniq(frames) == [{JobProbe, :gated_pool, [300, "raises"]}]
    end

    test "there are as many workers as are needed, and no more than schedulers online", context do
      {one_by_one, many} =
        run(start_peer(context, [~c"+S", ~c"8:2"]), JobQueueScenarios, :workers, [context.path])

      assert one_by_one <= 2
      assert many in 1..2
    end

    test "waiting does not depend on the length of the mailbox", context do
      {full, empty} = run(start_peer(context), JobQueueScenarios, :mailbox, [300_000])
      assert full < 50 * max(empty, 5)
    end

    test "callers that wait leave the queue at the same cost from either end", context do
      peer = start_peer(context)

      # One of the two may be late on a busy machine.
      assert Enum.any?(1..5, fn _ ->
               [first, last] = run(peer, JobQueueScenarios, :kill_orders, [8_000, context.path])
               last < 8 * first
             end)
    end

    test "a VM that was stopped owes nothing for that time", context do
      {reductions, passed_us} = run(start_peer(context), JobScenarios, :stopped, [300_000])
      assert passed_us > 1_000_000
      assert reductions < 4000 * 700
    end
  end

  describe "the gate" do
    test "lets the first wait, refuses at once who may not, forgets the dead", context do
      peer = start_peer(context)
      {ends, counters} = run(peer, JobQueueScenarios, :gate, [context.path])
      busy = {:error, {:tame, :busy}}
      # Two run at once, so any of the three may be the first to end.
      assert [{:value, a}, {:value, b}, ^busy, ^busy, ^busy, {:value, c}] = ends
      assert Enum.sort([a, b, c]) == [1, 2, 3]
      assert %{init: 5, cleanup: 5, result: 3, broken: 0} = counters
    end

    test "has all its places again after callers died at any moment", context do
      assert run(start_peer(context), JobQueueScenarios, :gate_storm, [context.path]) == 2
    end
  end

  describe "a library that is replaced and unloaded under its jobs" do
    for placement <- @placements, kind <- [:wrapped, :bare] do
      test "does not crash: #{placement}, #{kind}", context do
        peer = start_peer(context)

        {ends, counters} =
          run(peer, JobScenarios, :upgrade, [unquote(placement), unquote(kind), context.path])

        assert %{init: same, cleanup: same, broken: 0} = counters

        for {reason, _} <- ends do
          # A call whose module is gone when it comes back for its result is an error in that caller.
          assert reason in [:normal, :killed, {:error, :undef}, {:error, :nif_not_loaded}] or
                   match?({:value, _}, reason) or match?({:error, {:badfun, _}}, reason),
                 inspect(reason)
        end
      end
    end

    test "does not crash while calls that are done pay for their time", context do
      peer = start_peer(context)
      {ends, counters} = run(peer, JobScenarios, :unload_while_paying, [context.path])
      assert %{init: 4, cleanup: 4, result: 4, broken: 0} = counters
      assert Map.keys(ends) -- [:normal, :killed] == []
    end
  end

  test "an emulator that halts under its jobs ends as it was told to", context do
    for placement <- @placements do
      peer = start_peer(context)
      monitor = Process.monitor(peer)
      catch_exit(:peer.call(peer, JobScenarios, :halt, [placement, context.path], 600_000))
      assert_receive {:DOWN, ^monitor, :process, ^peer, reason}, 60_000
      assert {placement, reason} == {placement, :normal}
    end
  end

  test "an inline job is charged for its time" do
    :ok = :tame_spin.spin_inline(1)

    ratios =
      for ms <- [1, 10, 50] do
        {:reductions, before} = Process.info(self(), :reductions)
        {us, :ok} = :timer.tc(:tame_spin, :spin_inline, [ms * 1000])
        {:reductions, later} = Process.info(self(), :reductions)
        # `us` includes the turns of others between the payments; what was asked for does not.
        assert us > 0
        (later - before) / (4000 * ms)
      end

    for ratio <- ratios, do: assert(ratio > 0.8)
  end

  # Not linked: the emulator may end before us.
  defp start_peer(%{path: path, library: library}, args \\ []) do
    env = [
      {~c"TAME_PROBE_LIBRARY", to_charlist(library)},
      {~c"TAME_PROBE_COUNTERS", to_charlist(path)}
    ]

    Tame.Test.PeerVm.start(%{args: args, env: env})
  end

  defp run(peer, module, scenario, args), do: :peer.call(peer, module, scenario, args, 150_000)

  # The counters once every job has been cleaned up, or as they are after half a minute.
  defp settled(path) do
    Tame.Await.until(fn -> match?(%{init: same, cleanup: same}, JobProbe.counters(path)) end)
    JobProbe.counters(path)
  end
end
