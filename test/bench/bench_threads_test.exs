defmodule Tame.BenchThreadsTest do
  use ExUnit.Case, async: true

  alias Tame.BenchThreadsScenarios
  alias Tame.Test.PeerVm

  @moduletag isolation: :shared

  @natives Path.expand("../../bench/natives", __DIR__)

  setup_all do
    {_, 0} = System.cmd("make", ["-s", "-C", @natives], stderr_to_stdout: true)
    :ok
  end

  # An emulator of its own on standard input and output: no distribution, and it ends with us.
  setup do
    built = Path.join(@natives, "build/erts-#{:erlang.system_info(:version)}")
    %{peer: PeerVm.start_link(%{args: [~c"-pa", ~c"#{built}"]})}
  end

  test "unloading the library ends every thread that it started", %{peer: peer} do
    {before, during, later} = run(peer, :threads_around_load)
    # Two workers and the reaper; a thread made for a call may not have been joined yet.
    assert during >= before + 3
    assert later == before
  end

  test "a library unloaded with threads in flight for dead callers works when loaded again", %{
    peer: peer
  } do
    assert run(peer, :unload_with_threads_in_flight) == :still_here
  end

  defp run(peer, scenario), do: :peer.call(peer, BenchThreadsScenarios, scenario, [], 600_000)
end
