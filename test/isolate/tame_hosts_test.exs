defmodule Tame.HostsTest do
  # Where the calls, resources and atoms of a library go that has several hosts or waits in one.
  use ExUnit.Case, async: true

  alias Tame.HostsScenarios
  alias Tame.Test.PeerVm

  setup do
    %{peer: PeerVm.start_link()}
  end

  defp scenario(peer, name, args \\ []), do: PeerVm.scenario(peer, HostsScenarios, name, args)

  test "a call goes to the host of its resources; one that names two hosts is refused", %{
    peer: peer
  } do
    {sums, places, mixed} = scenario(peer, :resources, [2])
    assert sums == for(n <- 1..20, do: {n, 2 * n})
    assert places == 2
    assert {:error, {:tame, {:two_hosts, %{function: {:sum, 1}, advice: _}}}} = mixed
  end

  test "callers at once go to different hosts", %{peer: peer} do
    assert scenario(peer, :spread, [3, 3]) == 3
  end

  test "calls that wait for each other find a worker each", %{peer: peer} do
    assert scenario(peer, :met, [2, 6]) == List.duplicate({:ok, :ok}, 6)
  end

  test "a call that is not dirty begins, however many dirty ones there are", %{peer: peer} do
    assert scenario(peer, :let_go, [2, 20]) == {{:ok, :ok}, List.duplicate({:ok, :ok}, 20)}
  end

  test "a library finds processes of the application, none of the system's", %{peer: peer} do
    assert scenario(peer, :whom) == {true, true, [false, false, false, false]}
  end

  # What it is told for: while the VM corrects its own clock, the two go apart.
  test "a host is told the VM's clock while it lives", %{peer: peer} do
    {told, own} = scenario(peer, :clock)
    assert abs(told - own) < 1_000_000_000
  end

  test "only atoms that are new count, over the host's restarts", %{peer: peer} do
    {old, new, last, again, count} = scenario(peer, :atoms, [50])
    assert old == [:ok]
    assert new == 50
    assert {:error, :system_limit} = last
    assert again == :tame_places_atom_1
    assert count == 50
  end

  test "an idle host whose resource somebody holds is not stopped", %{peer: peer} do
    assert scenario(peer, :idle_with_resource) == {2, true}
  end
end
