defmodule Tame.JobPermitsTest do
  # The workers of all libraries of a VM together take as many cores as those of one. In VMs of their own.
  use ExUnit.Case, async: true

  alias Tame.JobPermits
  alias Tame.Test.PeerVm

  @moduletag isolation: :shared
  @moduletag timeout: 120_000

  setup_all do
    folder = Path.join(System.tmp_dir!(), "tame_permits_#{System.pid()}")
    File.mkdir_p!(folder)
    on_exit(fn -> File.rm_rf!(folder) end)
    JobPermits.build(folder)
    %{folder: folder}
  end

  setup %{folder: folder} do
    %{peer: PeerVm.start(%{env: JobPermits.env(folder), args: [~c"+S", ~c"2:2"]})}
  end

  test "no more steps of two libraries run at once than there are schedulers", %{peer: peer} do
    assert PeerVm.scenario(peer, JobPermits, :most, [4, 50]) == 2
  end

  test "libraries that share nothing run as many each", %{peer: peer} do
    assert PeerVm.scenario(peer, JobPermits, :most_apart, [4, 50]) > 2
  end

  test "a library whose steps block stops no other", %{peer: peer} do
    assert PeerVm.scenario(peer, JobPermits, :beside_blocked) ==
             {[:rested, :rested], [:rested, :rested]}
  end

  test "a library has no more threads of its own than it says", %{peer: peer} do
    assert PeerVm.scenario(peer, JobPermits, :too_many_threads) == {:tame, :system_limit}
  end

  test "the permits outlive the module that made them, loaded anew and gone", %{peer: peer} do
    assert PeerVm.scenario(peer, JobPermits, :owner_goes) == {1, %{{:ok, :rested} => 12}, 2}
  end
end
