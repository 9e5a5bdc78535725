defmodule Tame.IsolationNameTest do
  # Isolation on nodes that have a name. Not beside others: a VM that starts the name server ends it again, and with it
  # the names that other tests gave it.
  use ExUnit.Case, async: false

  alias Tame.IsolationScenarios

  setup do
    %{peer: Tame.Test.PeerVm.start_link()}
  end

  test "a node that has a name already", %{peer: peer} do
    assert run(peer, :named, []) == {true, true}
  end

  test "a node that gets a name keeps its pids, references and resources", %{peer: peer} do
    assert run(peer, :rename, [%{}]) == {true, true, true}
  end

  defp run(peer, name, args), do: :peer.call(peer, IsolationScenarios, name, args, 600_000)
end
