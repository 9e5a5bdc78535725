defmodule Tame.ProcessWalkTest do
  # The processes of isolation, ended, stopped and starved at random.
  use ExUnit.Case, async: true

  alias Tame.ProcessWalk
  alias Tame.Test.PeerVm

  setup do
    %{peer: PeerVm.start_link()}
  end

  defp scenario(peer, name, args), do: PeerVm.scenario(peer, ProcessWalk, name, args)

  @well %{answers: true, known: true, in_vm: false}

  for n <- 1..3 do
    test "a walk over every state (#{n}): isolated and answering in the end, no lease left, nothing wrong on the way",
         %{peer: peer} do
      seed = ExUnit.configuration()[:seed] + unquote(n)
      {taken, seen, well, resources?, restored} = scenario(peer, :walk, [seed, 25])
      context = inspect({seed, taken, seen, well, restored}, limit: :infinity)
      assert well == @well, context
      assert resources?, context
      assert restored == :ok, context

      assert Map.keys(seen) -- [:right, :badarg, :crashed, :no_host, :deadline, :busy] == [],
             context
    end
  end
end
