defmodule Tame.SpinDriverTest do
  # labs/jobs/tame_spin_driver: a port driver that blocks, and one that does not.
  use ExUnit.Case, async: true

  @moduletag isolation: :shared

  @functions ~w(spin_inline spin_async spin_dirty)a

  for function <- @functions do
    test "#{function} does its work, and refuses what is no time" do
      for us <- [0, 1, 99, 3000] do
        assert apply(:tame_spin_driver, unquote(function), [us]) == :ok
      end

      for wrong <- [-1, 1_000_000_000_001, 0.5, :long] do
        assert_raise ArgumentError, fn ->
          apply(:tame_spin_driver, unquote(function), [wrong])
        end
      end
    end
  end

  # 4000 a millisecond; one that was disturbed is charged more.
  test "a callback's time is charged to who called it" do
    :ok = :tame_spin_driver.spin_inline(1)
    {:reductions, before} = Process.info(self(), :reductions)
    :ok = :tame_spin_driver.spin_inline(500)
    {:reductions, later} = Process.info(self(), :reductions)
    assert later - before > 1000
  end

  # The VM has one asynchronous thread for all drivers, which is the default.
  test "a port waits for another's work in the VM's one asynchronous thread, and not where the driver has its own" do
    flags = [~c"+A", ~c"1", ~c"+S", ~c"2:2"]
    peer = Tame.Test.PeerVm.start_link(%{args: flags})

    wait_us = fn function ->
      Tame.Test.PeerVm.scenario(peer, Tame.DriverScenarios, :second_port_us, [function])
    end

    # Much of 3 s is left of the other's work, where the machine is busy less.
    assert wait_us.(:spin_async) > 400_000
    # It may be late once.
    assert Enum.any?(1..3, fn _ -> wait_us.(:spin_dirty) * 4 < wait_us.(:spin_async) end)
  end
end
