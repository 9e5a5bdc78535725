defmodule Tame.JobPermitsTest do
  # The workers of all libraries of a VM together take as many cores as those of one. In VMs of their own.
  use ExUnit.Case, async: true

  alias Tame.JobPermits
  alias Tame.Test.{CLibrary, PeerVm}

  @moduletag isolation: :shared

  setup_all do
    folder = CLibrary.tmp_dir!()
    JobPermits.build(folder)
    %{folder: folder}
  end

  test "no more steps of two libraries run at once than there are schedulers", context do
    assert undisturbed(context, :most, [4, 50], &(&1 == 2)) == 2
  end

  test "libraries that share nothing run as many each", context do
    assert in_vm(context, :most_apart, [4, 50]) > 2
  end

  test "a library whose steps block stops no other", context do
    assert in_vm(context, :beside_blocked) == {[:rested, :rested], [:rested, :rested]}
  end

  test "a library has no more threads of its own than it says", context do
    assert in_vm(context, :too_many_threads) == {:tame, :system_limit}
  end

  test "the permits outlive the module that made them, loaded anew and gone", context do
    assert undisturbed(context, :owner_goes, [], &match?({_, _, 2}, &1)) ==
             {1, %{{:ok, :rested} => 12}, 2}
  end

  # Where the machine lets both workers stand for 100 ms another goes on without a permit, as beside steps that block. Without
  # permits there are more each time.
  defp undisturbed(context, scenario, args, is?, tries \\ 5) do
    came = in_vm(context, scenario, args)

    if is?.(came) or tries == 1,
      do: came,
      else: undisturbed(context, scenario, args, is?, tries - 1)
  end

  defp in_vm(%{folder: folder}, scenario, args \\ []) do
    peer = PeerVm.start(%{env: JobPermits.env(folder), args: [~c"+S", ~c"2:2"]})
    PeerVm.scenario(peer, JobPermits, scenario, args)
  end
end
