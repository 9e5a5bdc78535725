defmodule Tame.OtherLoadTest do
  # That what this VM does is its own, by the real counters; the arithmetic is in the doctests.
  use ExUnit.Case, async: true

  alias Tame.OtherLoad

  test "time that this VM uses, and an OS process that it started and that has ended, is its own" do
    before = OtherLoad.start()
    spin(System.monotonic_time(:millisecond) + 200)
    vm = OtherLoad.start()
    assert vm.own - before.own >= 5
    assert vm.busy > before.busy and vm.all >= vm.busy

    {"", 0} = System.cmd("sh", ["-c", "i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done"])
    assert OtherLoad.start().own - vm.own >= 3
    assert OtherLoad.percent(before) in 0..100
  end

  test "of too short a time, and without /proc, nothing is said" do
    now = OtherLoad.start()
    assert OtherLoad.share(now, now) == nil
    assert OtherLoad.share(nil, now) == nil
  end

  defp spin(until), do: if(System.monotonic_time(:millisecond) < until, do: spin(until))
end
