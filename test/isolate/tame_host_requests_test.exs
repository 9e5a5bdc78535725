defmodule Tame.HostRequestsTest do
  # What a host asks of the VM: nothing waits for a process that does not run, and what is large is done on a dirty
  # scheduler.
  use ExUnit.Case, async: true

  alias Tame.Test.{ControlFrames, PeerVm}

  test "questions about a process that is held by native code are answered, or wait beside" do
    # On a busy machine the NIF may have ended before all is asked; what waits for it is late each time.
    seen = Enum.find(Stream.map(1..10, fn _ -> held() end), & &1.held_then)
    assert seen, "the NIF has ended"
    assert seen.at_once == [true, true, :pruned]
    assert seen.found == {:found, true}
    assert seen.system == {:found, false}
  end

  test "what an -on_load starts is found by its name, and what kernel has is not" do
    for {starter, is_found} <- [{:ends, true}, {:lives, false}] do
      pid = started_as_kernels(starter)
      Process.register(pid, :requests_started)
      {[], asked} = answer(1, {:whereis, "requests_started"}, requests())
      assert_receive {:tame_private, ref, is_private}
      {1, found, _} = :tame_host_requests.answered(ref, is_private, asked)
      assert {starter, found} == {starter, if(is_found, do: pid, else: :undefined)}
      Process.unregister(:requests_started)
      Process.exit(pid, :kill)
    end
  end

  # As in an -on_load: by a process with the group leader of the code server, which lives on or ends.
  defp started_as_kernels(starter) do
    parent = self()
    {:group_leader, kernels} = Process.info(Process.whereis(:code_server), :group_leader)

    {pid, monitor} =
      spawn_monitor(fn ->
        Process.group_leader(self(), kernels)
        send(parent, {:started, spawn(fn -> Process.sleep(:infinity) end)})
        if starter == :lives, do: Process.sleep(:infinity)
      end)

    if starter == :ends, do: assert_receive({:DOWN, ^monitor, :process, ^pid, _})
    on_exit(fn -> Process.exit(pid, :kill) end)
    assert_receive {:started, started}
    started
  end

  defp held do
    peer = PeerVm.start_link(%{args: [~c"+S", ~c"2"]})
    seen = PeerVm.scenario(peer, Tame.RequestScenarios, :held)
    :peer.stop(peer)
    seen
  end

  test "large messages, and frames with large maps, leave their scheduler" do
    for {name, normal_ms, dirty_ms} <-
          PeerVm.scenario(PeerVm.start_link(), Tame.RequestScenarios, :large, [20]) do
      assert {name, dirty_ms > 20 * normal_ms} == {name, true}, "#{normal_ms} and #{dirty_ms} ms"
    end
  end

  test "a message is the same whichever way it goes" do
    for message <- [:small, Enum.to_list(1..100_000), Map.new(1..10_000, &{&1, make_ref()})] do
      frame = ControlFrames.framed({:send, self(), message, []})
      up = :tame_control.long(:tame_control.new())
      assert {:ok, [{:send, pid, ^message, [], memory}], _} = :tame_control.feed(frame, up)
      assert memory >= 8 * :erts_debug.flat_size(message)
      :ok = :tame_ring.send(pid, message, memory)
      assert_receive ^message
    end
  end

  test "a port takes a MiB at once, and no more" do
    :ok = :tame_given.note(:requests_test, port = Port.open({:spawn, "cat"}, [:binary]))

    for {data, taken} <- [
          {:binary.copy("x", 1_048_576), true},
          {[:binary.copy("x", 1_048_576), ?x], false},
          {:no_data, false}
        ] do
      assert {[{:answer, 7, ^taken}], _} = answer(7, {:port_command, port, data}, requests())
      # Else it is busy for the next.
      if taken, do: assert(received(port) == byte_size(data))
    end
  end

  test "with 500,000 monitors a process is taken for one that has ended, and the host goes on" do
    full = with_monitors(Map.new(1..1_000_000, &{&1, &1}))
    assert {[{:answer, 1, false}], ^full} = answer(1, {:monitor, 2_000_000, self()}, full)
    assert {:bad, _} = answer(1, {:monitor, 5, self()}, full)
    almost = with_monitors(Map.new(1..999_998, &{&1, &1}))
    assert {[{:answer, 1, ref}], _} = answer(1, {:monitor, 2_000_000, self()}, almost)
    assert Process.demonitor(ref)
  end

  # The state of one that has them already.
  defp with_monitors(monitors), do: put_elem(requests(), 3, monitors)

  defp requests, do: :tame_host_requests.new(%{group: :requests_test, options: %{max_atoms: 1}})
  defp answer(id, query, requests), do: :tame_host_requests.answer(id, query, :none, requests)

  defp received(port, size \\ 0) do
    receive do
      {^port, {:data, data}} -> received(port, size + byte_size(data))
    after
      if(size < 1_048_576, do: 10_000, else: 0) -> size
    end
  end
end
