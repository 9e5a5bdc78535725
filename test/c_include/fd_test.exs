defmodule Tame.FdTest do
  # c_include/tame/fd.h: a process that waits is told, also when another dies; what is closed is closed once; nothing is left.
  # More of the random parts: TAME_TEST_SEQUENCES=1000, TAME_TEST_STORMS=1000.
  use ExUnit.Case, async: true

  import :proper_types, only: [integer: 2, list: 1, oneof: 1, frequency: 1]

  alias Tame.{FdModel, FdScenarios, JobProbe, Property}
  alias Tame.Test.{CLibrary, PeerVm}

  @moduletag isolation: :shared

  @sequences String.to_integer(System.get_env("TAME_TEST_SEQUENCES", "100"))
  @storms String.to_integer(System.get_env("TAME_TEST_STORMS", "100"))
  @sanitized System.get_env("TAME_NATIVE_DIR") != nil

  setup_all do
    folder = CLibrary.tmp_dir!()
    library = JobProbe.build(folder, "fd_probe")
    newer = Path.join(folder, "fd_probe_newer.so")
    File.cp!(library, newer)
    %{library: library, newer: newer}
  end

  setup context do
    env = [{~c"TAME_FD_LIBRARY", to_charlist(context.library)}]
    args = [~c"+S", ~c"4:4"] ++ Enum.map(context[:polls] || [], &to_charlist/1)
    peer = PeerVm.start(%{env: env, args: args})
    {:ok, _} = :peer.call(peer, :application, :ensure_all_started, [:elixir])
    %{peer: peer}
  end

  defp run(peer, name, args \\ []), do: PeerVm.scenario(peer, FdScenarios, name, args)

  describe "who waits" do
    test "is served in its order, however many there are", %{peer: peer} do
      assert run(peer, :many_readers, [2]) == {true, :done, :done}
      assert run(peer, :many_readers, [50]) == {true, :done, :done}
    end

    test "for reading and for writing does not hinder the other", %{peer: peer} do
      assert run(peer, :both_directions) == {1, 1}
    end

    test "and dies leaves the others in the line", %{peer: peer} do
      assert run(peer, :waiters_killed) == {[1, 1], 2}
      assert run(peer, :told_and_killed) == {:in_line, 1}
    end

    test "among thousands, and dies or cancels, leaves the others in their order", %{peer: peer} do
      for count <- [15, 16, 17, 18, 64, 65, 3000] do
        assert run(peer, :crowd, [count]) == {true, true, :done, :done}
      end
    end

    test "and asks again keeps its place", %{peer: peer} do
      assert run(peer, :asks_again) == {[:wait, :wait], {true, 1}, 1}
    end

    test "again and again, and then another, loses no message", %{peer: peer} do
      assert run(peer, :rearm, [100]) == {:quiet, :quiet, :done}
    end

    test "is woken once, and waits again", %{peer: peer} do
      assert run(peer, :woken) == {[:ready, :ready, :ready], :wait, :done, :quiet}
    end

    test "on a number that was a file's before, is told too", %{peer: peer} do
      assert run(peer, :sticky_numbers, [20]) == :quiet
    end
  end

  # The VM's poll sets: of threads of their own, of schedulers for what is often ready (+IOs), or several.
  describe "where the VM polls" do
    for {how, flags, threads} <- [
          {"on its schedulers too", ~w(+IOs true), 1},
          {"on no scheduler", ~w(+IOs false), 1},
          {"by two threads", ~w(+IOt 2), 2},
          {"by two threads, each with a set", ~w(+IOt 2 +IOp 2), 2}
        ] do
      @tag polls: flags
      test "#{how}, all of it is the same", %{peer: peer, newer: newer} do
        sets = :peer.call(peer, :erlang, :system_info, [:check_io])
        assert Enum.sum(for set <- sets, do: set[:poll_threads]) == unquote(threads)

        assert run(peer, :many_readers, [20]) == {true, :done, :done}
        assert run(peer, :both_directions) == {1, 1}
        assert run(peer, :waiters_killed) == {[1, 1], 2}
        assert run(peer, :told_and_killed) == {:in_line, 1}
        assert run(peer, :rearm, [100]) == {:quiet, :quiet, :done}
        assert run(peer, :sticky_numbers, [5]) == :quiet

        for kind <- [:eventfd, :null, :pipe] do
          assert {count, count} = run(peer, :owners_killed, [kind, 500])
          assert count >= 200
          assert {:done, :closed, :closed, true, nil, true} = run(peer, :guarded, [kind, :process])
        end

        assert {true, closed} = run(peer, :storm, [20])
        assert closed == 40
        assert run(peer, :upgraded, [newer]) == {1, false, :done, true}
      end
    end
  end

  describe "the owner" do
    test "alone gives it away, to a process that lives", %{peer: peer} do
      assert run(peer, :owners) == {:not_owner, :no_process, 1, :done, true}
    end

    for kind <- [:eventfd, :pipe, :null] do
      test "that is killed leaves no descriptor, never waited, armed, fired, cancelled: #{kind}",
           %{peer: peer} do
        cycles = if @sanitized, do: 1000, else: 10_000
        assert {count, count} = run(peer, :owners_killed, [unquote(kind), cycles])
        assert count >= div(cycles, 2)
      end
    end
  end

  describe "closing" do
    for kind <- [:eventfd, :null, :pipe, :timerfd], how <- [:process, :dirty, :thread] do
      test "#{kind} twice, by #{how}, spares who has the number then", %{peer: peer} do
        assert {:done, :closed, :closed, true, nil, true} =
                 run(peer, :guarded, [unquote(kind), unquote(how)])
      end
    end

    test "waits for the call that holds a direction", %{peer: peer} do
      assert run(peer, :close_while_held) == {:closed, :closed, true, :closed, false}
    end

    test "and all but waiting is allowed on a library's own threads", %{peer: peer} do
      assert run(peer, :threads) == {:go, :busy, :done, :go, :failed, :done, :closed}
    end
  end

  describe "the library" do
    test "that is replaced takes the descriptors over", %{peer: peer, newer: newer} do
      assert run(peer, :upgraded, [newer]) == {1, false, :done, true}
    end

    test "that is purged stays for those that are open", %{peer: peer} do
      assert {still, true} = run(peer, :purged)
      assert still >= 6
    end

    for how <- [:halt, :stop] do
      test "does not keep the VM from ending: #{how}", %{peer: peer} do
        monitor = Process.monitor(peer)
        catch_exit(run(peer, :halt, [unquote(how)]) && exit(:normal))
        assert_receive {:DOWN, ^monitor, _, _, _}, 20_000
      end
    end
  end

  test "who waits and what comes is what the model says, after each command", context do
    %{peer: peer, library: library, newer: newer} = context

    Property.check(
      list(command()),
      fn commands -> :peer.call(peer, FdModel, :run, [commands, [newer, library]], 600_000) end,
      numtests: @sequences,
      max_size: 40,
      max_shrinks: 20
    )
  end

  # Each in an emulator of its own.
  for {how, n} <- Enum.with_index([:halt, :stop, :halt, :stop, :halt, :stop]) do
    test "the VM ends after any of the commands: #{how}, #{n}", context do
      %{peer: peer, library: library, newer: newer} = context
      {:ok, commands} = :proper_gen.pick(list(command()), 10 + 10 * unquote(n))
      monitor = Process.monitor(peer)
      arguments = [commands, [newer, library], unquote(how)]
      catch_exit(:peer.call(peer, FdModel, :run_and_end, arguments, 600_000) && exit(:normal))
      assert_receive {:DOWN, ^monitor, _, _, _}, 20_000, inspect(commands)
    end
  end

  test "nobody waits for ever and nothing is left when processes die at random moments", %{
    peer: peer
  } do
    assert {true, closed} = run(peer, :storm, [@storms])
    assert closed == 2 * @storms
  end

  defp command do
    reader = integer(1, 4)

    frequency([
      {8, {oneof([:read, :read_dirty]), reader}},
      {3, {:cancel, reader}},
      {3, {:kill, reader}},
      {3, {:give, reader}},
      {6, {:write, integer(1, 3)}},
      {2, {:wake, oneof([:process, :thread])}},
      {1, :half_close},
      {1, :far_close},
      {1, :reset},
      {1, :kill_owner},
      {2, :upgrade},
      {1, :purge},
      {1, :exhaust},
      {1, :relieve},
      {1, {:close, oneof([:process, :dirty, :thread])}}
    ])
  end
end
