defmodule Tame.DestructorsTest do
  # A destructor that waits for a call must not keep that call, nor any other, from being answered.
  use ExUnit.Case, async: true

  alias Tame.DestructorScenarios
  alias Tame.Test.PeerVm

  defp scenario(name, args),
    do: PeerVm.scenario(PeerVm.start_link(), DestructorScenarios, name, args)

  for workers <- [1, 2] do
    test "one that waits for a lock keeps no other call, and is done when the lock is free: #{workers} workers" do
      n = 4

      assert {answers, {:ok, :ok}, {:ok, :ok}, true} =
               scenario(:waits_for_call, [%{workers: unquote(workers)}, n])

      assert answers == List.duplicate({:ok, 1}, n)
    end
  end

  test "what was let go of before a call is destroyed when the call runs" do
    assert scenario(:destroyed_before, [100]) == 0
  end
end
