defmodule Tame.Nng.IsolatedTest do
  # The NIF in an OS process of its own: what libnng does to its process it does not do to the VM.
  use ExUnit.Case, async: false

  alias Tame.Nng.Test.{Far, Peer}

  test "all there is goes on there, and a crash of libnng ends that process alone" do
    peer = Peer.start_link()

    assert Peer.call(peer, Far, :isolated) == %{
             requests: Enum.to_list(1..20),
             active: ["a", "b"],
             deadline: {:error, :timeout},
             owner_died: {:error, :closed},
             crashed: :told,
             afterwards: {:ok, "re:still there?"}
           }
  end
end
