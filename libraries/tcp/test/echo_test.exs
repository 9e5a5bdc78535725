defmodule Tame.Tcp.EchoTest do
  # Data from one end to the other: all families, all sizes, as gen_tcp has it.
  use ExUnit.Case, async: true

  import Tame.Tcp.Test.Sockets

  test "what is sent arrives, both ways, whatever its size" do
    {client, server} = pair()

    for size <- [1, 2, 100, 8191, 8192, 8193, 65_536, 1_000_000, 5_000_000] do
      bytes = :crypto.strong_rand_bytes(size)
      sender = Task.async(fn -> :tame_tcp.send(client, bytes) end)
      assert :tame_tcp.recv(server, size, 5000) == {:ok, bytes}
      assert Task.await(sender) == :ok
      sender = Task.async(fn -> :tame_tcp.send(server, bytes) end)
      assert receive_available(client, size) == bytes
      assert Task.await(sender) == :ok
    end

    assert :tame_tcp.getstat(client, [:recv_oct]) == :tame_tcp.getstat(server, [:recv_oct])
  end

  test "iodata of thousands of parts arrives in its order" do
    {client, server} = pair()
    parts = for n <- 1..5000, do: [<<n::32>>, [], ~c"x", [:binary.copy(<<n>>, 70)]]
    bytes = IO.iodata_to_binary(parts)
    sender = Task.async(fn -> :tame_tcp.send(client, parts) end)
    assert :tame_tcp.recv(server, byte_size(bytes), 5000) == {:ok, bytes}
    assert Task.await(sender) == :ok
    assert :tame_tcp.send(client, []) == :ok
    assert :tame_tcp.send(client, [:none]) == {:error, :einval}
  end

  test "a binary that begins within a byte, a part of another, and what is no binary" do
    {client, server} = pair()

    for size <- [1, 64, 65, 8192, 8193, 3_000_000] do
      bytes = :crypto.strong_rand_bytes(size)
      <<_::3, unaligned::binary>> = <<5::3, bytes::binary>>
      part = binary_part(<<"before", bytes::binary, "after">>, 6, size)
      sender = Task.async(fn -> for b <- [unaligned, part], do: :tame_tcp.send(client, b) end)
      assert :tame_tcp.recv(server, size, 5000) == {:ok, bytes}
      assert :tame_tcp.recv(server, size, 5000) == {:ok, bytes}
      assert Task.await(sender) == [:ok, :ok]
    end

    assert :tame_tcp.send(client, "") == :ok

    for wrong <- [<<1::3>>, :atom, 1, ["a" | :b]],
        do: assert(:tame_tcp.send(client, wrong) == {:error, :einval})
  end

  test "a receive of a length takes what comes in parts, the first of them in one try" do
    {client, server} = pair()

    for size <- [2, 64, 8191, 8192, 8193] do
      bytes = :crypto.strong_rand_bytes(size)
      <<first, rest::binary>> = bytes
      receiver = Task.async(fn -> :tame_tcp.recv(server, size, 5000) end)
      assert until(fn -> waiting?(receiver.pid) end)
      assert :tame_tcp.send(client, <<first>>) == :ok

      assert until(fn -> total(server, :recv_oct) == total(client, :send_oct) end)

      assert :tame_tcp.send(client, rest) == :ok
      assert Task.await(receiver) == {:ok, bytes}
      # What one receive left is the next one's, of any length.
      assert :tame_tcp.send(client, <<first>>) == :ok
      come_early(server, total(client, :send_oct), size, 50)
      assert :tame_tcp.send(client, rest) == :ok
      assert :tame_tcp.recv(server, 0, 5000) == {:ok, <<first>>}
      assert :tame_tcp.recv(server, size - 1, 5000) == {:ok, rest}
    end
  end

  test "small receives of much that came early take as long as any" do
    {client, server} = pair()
    bytes = :crypto.strong_rand_bytes(16_000_000)
    sender = Task.async(fn -> :tame_tcp.send(client, bytes) end)
    come_early(server, 16_000_000, 16_000_001, 2000)
    assert Task.await(sender) == :ok

    {times, parts} =
      Enum.unzip(
        for _ <- 1..1000 do
          {us, {:ok, part}} = :timer.tc(fn -> :tame_tcp.recv(server, 1000) end)
          {us, part}
        end
      )

    # 1 us; to move the rest each time takes 200. The median: some wait for a core.
    assert Enum.at(Enum.sort(times), 500) < 60
    assert IO.iodata_to_binary(parts) == binary_part(bytes, 0, 1_000_000)
    assert :tame_tcp.recv(server, 15_000_001, 0) == {:error, :timeout}
    assert :tame_tcp.recv(server, 1000) == {:ok, binary_part(bytes, 1_000_000, 1000)}
    assert {:ok, rest} = :tame_tcp.recv(server, 0)
    assert rest == binary_part(bytes, 1_001_000, 14_999_000)
  end

  test "what came early and what comes late are one" do
    {client, server} = pair()
    bytes = :crypto.strong_rand_bytes(300_000)
    :ok = :tame_tcp.send(client, bytes)
    come_early(server, 300_000, 300_001, 200)
    assert :tame_tcp.recv(server, 1000) == {:ok, binary_part(bytes, 0, 1000)}
    :ok = :tame_tcp.send(client, "end")
    {:ok, rest} = :tame_tcp.recv(server, 299_003, 5000)
    assert rest == binary_part(bytes, 1000, 299_000) <> "end"
  end

  describe "of much that came early no call copies more than a slice:" do
    setup do
      {client, server} = pair()
      bytes = :crypto.strong_rand_bytes(16_000_000)
      sender = Task.async(fn -> :tame_tcp.send(client, bytes) end)
      come_early(server, 16_000_000, 16_000_001, 2000)
      assert Task.await(sender) == :ok
      %{client: client, server: server, bytes: bytes}
    end

    test "a large part", %{client: client, server: server, bytes: bytes} do
      assert {slices, {:ok, part}} = slices(server, 10_000_000)
      assert slices >= 9
      assert part == binary_part(bytes, 0, 10_000_000)
      assert {slices, {:ok, part}} = slices(server, 3_000_000)
      assert slices >= 2
      assert part == binary_part(bytes, 10_000_000, 3_000_000)
      assert :tame_tcp.recv(server, 0) == {:ok, binary_part(bytes, 13_000_000, 3_000_000)}
      # Its term until here: a socket that nobody knows any more may be closed.
      assert :tame_tcp.close(client) == :ok
    end

    test "what is to be more", %{client: client, server: server, bytes: bytes} do
      :ok = :tame_tcp.send(client, "end")
      early = &(:tame_tcp.getstat(&1, [:recv_oct]) < {:ok, [recv_oct: 16_000_003]})
      assert {slices, :wait} = slices(server, 30_000_000, early)
      assert slices >= 15
      assert :tame_tcp_nif.cancel(server, :read) == :done
      :ok = :tame_tcp.send(client, "!")
      assert {:ok, all} = :tame_tcp.recv(server, 16_000_004)
      assert all == bytes <> "end!"
      assert :tame_tcp.close(client) == :ok
    end

    test "a part that is given up for another", context do
      %{client: client, server: server, bytes: bytes} = context
      for size <- [8_000_000, 9_000_000], do: assert(given_up(server, size) == :sent)
      :ok = :tame_tcp.send(client, "x")
      assert until(fn -> given_up(server, 30_000_000) == :sent end)
      assert :tame_tcp.recv(server, 1000) == {:ok, binary_part(bytes, 0, 1000)}
      assert :tame_tcp.recv(server, 8_000_000) == {:ok, binary_part(bytes, 1000, 8_000_000)}
      assert given_up(server, 2_000_000) == :sent
      :ok = :tame_tcp.setopts(server, active: :once)
      assert_receive {:tcp, ^server, rest}
      assert rest == binary_part(bytes, 8_001_000, 7_999_000) <> "x"
      assert :tame_tcp.close(client) == :ok
    end
  end

  test "whatever is asked for, in whatever order: the bytes are those that were sent" do
    {client, server} = pair()
    bytes = :crypto.strong_rand_bytes(60_000_000)
    sender = Task.async(fn -> :tame_tcp.send(client, bytes) end)
    assert received(server, [], byte_size(bytes)) == bytes
    assert Task.await(sender) == :ok
    :ok = :tame_tcp.close(client)
  end

  defp received(_, parts, 0), do: parts |> Enum.reverse() |> IO.iodata_to_binary()

  defp received(socket, parts, left) do
    size = Enum.random([0, 1, 1000, 8192, 70_000, 300_000, 1_100_000, 5_000_000, 12_000_000])

    case :tame_tcp.recv(socket, min(size, left), Enum.random([0, 0, 1, 5])) do
      {:ok, part} -> received(socket, [part | parts], left - byte_size(part))
      {:error, :timeout} -> received(socket, parts, left)
    end
  end

  # A receive that gives way, and is not called again: sent. Or waits: done.
  defp given_up(socket, size) do
    assert :tame_tcp_nif.recv(socket, size, make_ref()) == :wait
    answer = :tame_tcp_nif.cancel(socket, :read)
    if answer == :sent, do: assert_receive({:tame_fd, _, :ready})
    answer
  end

  # How often a receive gives way until it ends, or does more than the condition says.
  defp slices(socket, size, goes_on \\ fn _ -> true end, count \\ 0) do
    ref = make_ref()
    answer = :tame_tcp_nif.recv(socket, size, ref)

    if answer == :wait and goes_on.(socket) do
      receive do: ({:tame_fd, ^ref, :ready} -> slices(socket, size, goes_on, count + 1))
    else
      {count, answer}
    end
  end

  test "IPv6 and Unix sockets" do
    {:ok, listening} = :tame_tcp.listen(0, [:inet6, ip: :loopback, active: false])
    {:ok, {{0, 0, 0, 0, 0, 0, 0, 1}, port}} = :tame_tcp.sockname(listening)
    {:ok, client} = :tame_tcp.connect({0, 0, 0, 0, 0, 0, 0, 1}, port, active: false)
    {:ok, server} = :tame_tcp.accept(listening)
    assert :tame_tcp.peername(client) == {:ok, {{0, 0, 0, 0, 0, 0, 0, 1}, port}}
    assert :tame_tcp.send(server, "six") == :ok
    assert :tame_tcp.recv(client, 0) == {:ok, "six"}

    path = Path.join(System.tmp_dir!(), "tame_tcp_#{System.unique_integer([:positive])}.sock")
    on_exit(fn -> File.rm(path) end)
    {:ok, listening} = :tame_tcp.listen(0, ip: {:local, path}, active: false)
    assert :tame_tcp.listen(0, ip: {:local, path}) == {:error, :eaddrinuse}
    {:ok, client} = :tame_tcp.connect({:local, path}, 0, active: false)
    {:ok, server} = :tame_tcp.accept(listening)
    assert :tame_tcp.sockname(server) == {:ok, {:local, path}}
    assert :tame_tcp.send(server, "local") == :ok
    assert :tame_tcp.recv(client, 5) == {:ok, "local"}
  end

  test "a gen_tcp socket at the other end" do
    {socket, peer} = with_gen_tcp()
    :ok = :gen_tcp.send(peer, "to")
    assert :tame_tcp.recv(socket, 2) == {:ok, "to"}
    :ok = :tame_tcp.send(socket, "fro")
    assert :gen_tcp.recv(peer, 3) == {:ok, "fro"}
    assert :tame_tcp.peername(socket) == :inet.sockname(peer)
    :ok = :gen_tcp.close(peer)
    assert :tame_tcp.recv(socket, 0) == {:error, :closed}
  end

  # A root that was just made has no /etc/hosts.
  test "a Unix socket whose backlog is full is tried until there is room, or the time is over" do
    path = Path.join(System.tmp_dir!(), "tame_tcp_#{System.unique_integer([:positive])}")
    on_exit(fn -> File.rm(path) end)
    {:ok, listening} = :tame_tcp.listen(0, ip: {:local, path}, active: false, backlog: 1)
    connect = fn ms -> :tame_tcp.connect({:local, path}, 0, [active: false], ms) end
    # Connections that nobody has accepted yet, as many as fit.
    full = Enum.take_while(Stream.repeatedly(fn -> connect.(50) end), &match?({:ok, _}, &1))
    assert length(full) in 1..10
    assert connect.(0) == {:error, :timeout}
    assert connect.(100) == {:error, :timeout}
    waits = for _ <- 1..5, do: Task.async(fn -> elem(connect.(10_000), 0) end)
    assert until(fn -> Enum.all?(waits, &waiting?(&1.pid)) end)
    for _ <- 1..(length(full) + 5), do: assert({:ok, _} = :tame_tcp.accept(listening, 10_000))
    assert Enum.map(waits, &Task.await/1) == List.duplicate(:ok, 5)
  end

  @no_localhost (with {:error, _} <- :inet.getaddr(~c"localhost", :inet) do
                   IO.puts("skip: localhost: this machine does not know the name")
                   "the name localhost is not known"
                 else
                   {:ok, _} -> nil
                 end)
  @tag skip: @no_localhost
  test "a host's name is looked up" do
    {listening, port} = listen()
    assert {:ok, client} = :tame_tcp.connect(~c"localhost", port, [active: false], 5000)
    assert {:ok, _} = :tame_tcp.accept(listening, 5000)
    assert :tame_tcp.close(client) == :ok
  end

  test "a name that no host has is told" do
    {listening, port} = listen()
    assert :tame_tcp.close(listening) == :ok
    assert {:error, :nxdomain} = :tame_tcp.connect(~c"no.such.host.invalid", port, [], 5000)
  end

  # Asks for more than there is, again and again, until `bytes` have come in all. The next receive has them.
  defp come_early(socket, bytes, size, ms) do
    assert until(fn ->
             assert :tame_tcp.recv(socket, size, ms) == {:error, :timeout}
             total(socket, :recv_oct) == bytes
           end)
  end

  defp total(socket, name) do
    {:ok, [{^name, bytes}]} = :tame_tcp.getstat(socket, [name])
    bytes
  end

  defp receive_available(socket, size, parts \\ [])
  defp receive_available(_, 0, parts), do: IO.iodata_to_binary(Enum.reverse(parts))

  defp receive_available(socket, size, parts) do
    {:ok, bytes} = :tame_tcp.recv(socket, 0, 5000)
    receive_available(socket, size - byte_size(bytes), [bytes | parts])
  end
end
