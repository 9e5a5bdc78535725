defmodule Tame.SHA3.SchedulersTest do
  use ExUnit.Case
  alias Tame.SHA3.Test.{Neighbour, Peer}

  @moduletag :timing

  # Each of these would take longer than that in one piece. A millisecond is what is meant; the rest is the machine's.
  @late_ms 30

  setup_all do
    %{peer: Peer.start_link(%{args: [~c"+S", ~c"1"]})}
  end

  for name <- Neighbour.calls() do
    test "#{name} leaves the only scheduler to others", %{peer: peer} do
      assert Peer.call(peer, Neighbour, :late_ms, [unquote(name), @late_ms]) < @late_ms
    end
  end

  test "this would see one that is held", %{peer: peer} do
    assert Peer.call(peer, Neighbour, :late_ms_beside_comparison) > @late_ms
  end
end
