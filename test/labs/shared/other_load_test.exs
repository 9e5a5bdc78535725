defmodule Tame.OtherLoadTest do
  # That what this VM does is its own, by the real counters; the arithmetic is in the doctests.
  use ExUnit.Case, async: true

  alias Tame.OtherLoad

  test "time that this VM uses, and an OS process that it started and that has ended, is its own" do
    {first, vm, later, percent} =
      Tame.Test.PeerVm.scenario(Tame.Test.PeerVm.start(), Tame.OtherLoadScenarios, :readings)

    assert vm.own > first.own and vm.busy > first.busy and vm.all >= vm.busy
    assert later.own - vm.own >= 3
    assert percent in 0..100
  end

  test "of too short a time, and without /proc, nothing is said" do
    now = OtherLoad.start()
    assert OtherLoad.share(now, now) == nil
    assert OtherLoad.share(nil, now) == nil
  end
end
