defmodule Tame.WatchTest do
  # tame/watch.h: what monitors a process lives as long as the process does. Else the VM ends, when somebody asks who
  # monitors it.
  use ExUnit.Case, async: true

  alias Tame.{JobProbe, WatchScenarios}
  alias Tame.Test.{CLibrary, PeerVm}

  @moduletag isolation: :shared

  setup_all do
    folder = CLibrary.tmp_dir!()
    jobs = JobProbe.build(folder, "job_library")
    descriptors = JobProbe.build(folder, "fd_probe")

    %{
      env: [
        {~c"TAME_JOB_LIBRARY", to_charlist(jobs)},
        {~c"TAME_FD_LIBRARY", to_charlist(descriptors)}
      ]
    }
  end

  setup context do
    %{peer: PeerVm.start(%{env: context.env})}
  end

  defp run(peer, function, args), do: :peer.call(peer, WatchScenarios, function, args, 600_000)

  for placement <- [:pool, :thread] do
    test "the caller of a job may be asked at any time: #{placement}", %{peer: peer} do
      assert run(peer, :ask_of_caller, [unquote(placement), 3000]) > 100
    end
  end

  test "the owner of a ring may be asked at any time", %{peer: peer} do
    assert run(peer, :ask_of_ring_owner, [12]) > 100
  end

  test "the owner of descriptors may be asked at any time", %{peer: peer} do
    assert run(peer, :ask_of_descriptors_owner, [3000]) > 100
  end

  test "one resource monitors the caller, for all its jobs", %{peer: peer} do
    assert run(peer, :monitors, [100]) == [0, 1, 1]
  end
end
