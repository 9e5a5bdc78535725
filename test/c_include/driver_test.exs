defmodule Tame.DriverTest do
  # c_include/tame/driver.h: its callbacks, and what happens to a port that ends while something of it is outside.
  use ExUnit.Case, async: true

  import :proper_types, only: [integer: 2, list: 1, oneof: 1, frequency: 1]

  alias Tame.{DriverLives, DriverProbe, DriverScenarios, Property}
  alias Tame.Test.CLibrary

  @moduletag isolation: :shared

  # More of them: TAME_TEST_SEQUENCES=1000.
  @lives String.to_integer(System.get_env("TAME_TEST_SEQUENCES", "50"))

  setup_all do
    folder = CLibrary.tmp_dir!()
    DriverProbe.build(folder)
    %{folder: folder}
  end

  # Each test has its counters, and a VM of its own.
  setup %{folder: folder} = context do
    counters = Path.join(folder, "counters_#{System.unique_integer([:positive])}")
    DriverProbe.new_counters(counters)

    env = [
      {~c"TAME_DRIVER_FOLDER", to_charlist(folder)},
      {~c"TAME_DRIVER_COUNTERS", to_charlist(counters)}
    ]

    peer = Tame.Test.PeerVm.start(%{env: env, args: context[:args] || []})
    %{peer: peer, counters: counters}
  end

  defp run(peer, name, args \\ []), do: Tame.Test.PeerVm.scenario(peer, DriverScenarios, name, args)

  defp assert_clean(counters) do
    assert %{broken: 0, pieces: 0, starts: same, stops: same, begun: begun, ended: begun} = counters
  end

  test "work that any callback schedules is done, outside or under the lock", %{peer: peer} do
    {answers, called, commanded, again, failed, counters} = run(peer, :everywhere)
    assert Enum.all?(answers, fn {_, right?} -> right? end), inspect(answers)
    assert {called, commanded, again, failed} == {21, 106, <<7>>, {:error, :badarg}}
    assert_clean(counters)
  end

  test "the work of one port is done in order, one at a time", %{peer: peer} do
    assert run(peer, :order, [1000])
  end

  test "a step under the port's lock is cut, and others have the scheduler between", %{peer: peer} do
    # A turn is a millisecond at most, on average.
    assert run(peer, :slices, [200_000]) >= 200
  end

  # 4000 for a millisecond of CPU time; what is less than 10 us waits for the next.
  test "the time of a callback is charged to who called it", %{peer: peer} do
    assert run(peer, :charged, [50, 100]) >= 50 * 360
    assert run(peer, :charged, [500, 10]) >= 500 * 36
    # The VM takes what is left of a timeslice; then others have their turn.
    assert run(peer, :charged, [10, 900]) >= 5 * 3600
  end

  test "ports that block leave the others their threads", %{peer: peer} do
    assert {[5, 6], [1, 1, 1, 1, 1, 1, 1, 1, 1]} = run(peer, :beside_held, [9])
  end

  describe "a port that ends while something of it is outside" do
    for ending <- [:close, :owner_killed, :exit_signal] do
      test "takes nothing any more, and its data lives until all is back: #{ending}", %{
        peer: peer
      } do
        # Five more waited, two of them jobs, whose cleanup is their own.
        assert {true, false, %{stops: 0, ended: 0, flushes: 1, pieces: 1}, counters} =
                 run(peer, :ended, ["stubborn", unquote(ending)])

        assert_clean(counters)
        # What was asked while it closed may have been taken, and dropped.
        assert %{starts: 1, begun: 1, done: 1} = counters
        assert counters.dropped >= 3
      end

      test "wakes what blocks by its flush: #{ending}", %{peer: peer} do
        assert {true, true, %{flushes: 1}, counters} = run(peer, :ended, ["", unquote(ending)])
        assert_clean(counters)
      end
    end

    test "is seen by a callback that looks", %{peer: peer} do
      assert {true, true, _, counters} = run(peer, :ended, ["polite stubborn", :close])
      assert_clean(counters)
    end

    test "is stopped when that has ended, though nothing flushes: exit(Port, kill)", %{peer: peer} do
      assert {true, true, %{flushes: 1, stops: 1}, counters} = run(peer, :ended, ["", :kill_port])
      assert_clean(counters)
    end

    test "ends when all is back, where its driver ends it: tame_drv_fail", %{peer: peer} do
      assert {1, {:exit, :failed_here}, counters} = run(peer, :failed, [:fail_here])
      assert_clean(counters)
    end

    test "and from outside", %{peer: peer} do
      assert {{:exit, :failed_outside}, :nothing, counters} = run(peer, :failed, [:fail_outside])
      assert_clean(counters)
    end

    test "stops after what is outside where the driver does not wait: driver_failure_atom", %{
      peer: peer
    } do
      assert {{:exit, :failed_raw}, _, counters} = run(peer, :failed, [:fail_raw])
      assert_clean(counters)
    end
  end

  test "a port that start refuses leaves nothing", %{peer: peer} do
    assert {%ArgumentError{}, %{starts: 0, broken: 0, pieces: 0}} = run(peer, :refused)
  end

  test "a flood of commands suspends who sends, and all of them are done", %{peer: peer} do
    {busy, waiting, answers, counters} = run(peer, :flood, [50, 200])
    assert busy
    assert waiting in 64..80
    # Those that were not taken are not counted by who sent them.
    assert answers >= 50 * 200
    assert_clean(counters)
  end

  test "a port takes no more than so much, and says so", %{peer: peer} do
    assert {10_000, {:error, :busy}, true, counters} = run(peer, :filled)
    assert_clean(counters)
  end

  test "2,000 ports leave no descriptor and no thread", %{peer: peer} do
    {{fds, threads}, {later_fds, later_threads}, counters} = run(peer, :cycles, [2_000])
    assert later_fds <= fds
    # Two groups of threads, as large as they may be, and not one for each port.
    assert later_threads <= threads + 10 + System.schedulers()
    assert_clean(counters)
    assert counters.starts == 2_200
  end

  test "a port for which there is no descriptor refuses, and works later", %{peer: peer} do
    assert {:refused, :ok, {:error, :busy}, 3} = run(peer, :without_descriptors)
  end

  test "a port's life is what its model says, in any order of commands", %{peer: peer} do
    {:ok, _} = :peer.call(peer, :application, :ensure_all_started, [:elixir])

    Property.check(
      list(command()),
      fn commands -> :peer.call(peer, DriverLives, :run, [commands], 600_000) end,
      numtests: @lives,
      max_size: 40,
      max_shrinks: 20
    )
  end

  defp command do
    n = integer(0, 100)

    frequency([
      {4, {:open, oneof(["", "polite"])}},
      {8, {oneof([:work_cpu, :work_io, :job_cpu]), n}},
      {2, {:hold, n}},
      {2, {:release, n}},
      {1, {:close, n}},
      {1, {:kill_owner, n}},
      {1, {:kill_port, n}}
    ])
  end

  test "ports and owners that end at any moment leave nothing", %{peer: peer} do
    assert_clean(run(peer, :storm, [1000]))
  end

  describe "the driver" do
    test "is loaded as long as something of a closed port is outside; then it ends, and its threads",
         %{peer: peer} do
      assert {{true, 0}, true, true, 9, counters} = run(peer, :unload_while_held)
      assert_clean(counters)
    end

    test "is not replaced while a port has something outside, and erl_ddll says so", %{peer: peer} do
      assert {sentence, pending, 1, counters} = run(peer, :reload_refused)
      assert sentence =~ "inconsistent with currently loaded driver"
      assert {:ok, :pending_driver} = pending
      assert_clean(counters)
    end

    for {options, how, what} <- [
          {"", [], "whose flush wakes it"},
          {"polite stubborn", [], "that looks whether its port closes"},
          {"stubborn", [flush: false], "that nothing wakes, without a flush"}
        ] do
      test "lets the VM halt beside a callback #{what}", %{peer: peer} do
        monitor = Process.monitor(peer)
        :peer.cast(peer, DriverScenarios, :halt, [unquote(options), unquote(how)])
        assert_receive {:DOWN, ^monitor, :process, ^peer, _}, 30_000
      end
    end
  end
end
