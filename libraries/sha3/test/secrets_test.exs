defmodule Tame.SHA3.SecretsTest do
  # The memory of a VM, read from outside: whether what a key leads to is in it. Who has such a state can make MACs.
  use ExUnit.Case, async: true
  alias Tame.SHA3.Test.{Peer, Secrets}

  @moduletag :memory

  unless File.exists?("/proc/self/mem") do
    IO.puts("skipped: tests of what is left of keys, because there is no /proc/self/mem")
    @moduletag skip: "there is no /proc/self/mem"
  end

  setup do
    # What a scheduler's stack keeps stays there while it has nothing to do: calls are made on the second one.
    peer = Peer.start_link(%{args: [~c"+S", ~c"2"]})
    %{peer: peer, os_pid: Peer.call(peer, :os, :getpid)}
  end

  test "this would see a state that lives", %{peer: peer, os_pid: os_pid} do
    Peer.call(peer, Secrets, :keep, [])
    assert [_ | _] = Secrets.found(os_pid)
  end

  for calls <- [:in_one_call, :in_pieces, :without_end, :killed] do
    test "nothing is left of a key: #{calls}", %{peer: peer, os_pid: os_pid} do
      Peer.call(peer, Secrets, :use_key, [unquote(calls)])
      assert Secrets.left(os_pid) == []
    end
  end
end
