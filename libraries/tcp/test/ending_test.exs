defmodule Tame.Tcp.EndingTest do
  # The ends of connections: half-close, reset, kill, deadlines, cancelled waits; nothing leaks, nobody hangs.
  use ExUnit.Case, async: false

  import Tame.Tcp.Test.Sockets

  describe "close" do
    test "tells the peer, and each process that waits in the socket" do
      {client, server} = pair()
      reader = Task.async(fn -> :tame_tcp.recv(client, 0) end)
      assert until(fn -> waiting?(reader.pid) end)
      assert :tame_tcp.close(client) == :ok
      assert Task.await(reader) == {:error, :closed}
      assert :tame_tcp.recv(server, 0) == {:error, :closed}
      assert :tame_tcp.close(client) == :ok
      assert :tame_tcp.recv(client, 0) == {:error, :closed}
      assert :tame_tcp.send(client, "x") == {:error, :closed}
      assert :tame_tcp.sockname(client) == {:error, :closed}
      assert :tame_tcp.setopts(client, nodelay: true) == {:error, :closed}
      assert :tame_tcp.setopts(client, active: :once) == {:error, :closed}
      assert :tame_tcp.shutdown(client, :write) == {:error, :closed}
      assert :tame_tcp.controlling_process(client, self()) == {:error, :closed}
    end

    test "of a listening socket ends all who accept, and frees the port" do
      {listening, port} = listen(reuseaddr: true)
      acceptors = for _ <- 1..10, do: Task.async(fn -> :tame_tcp.accept(listening) end)
      assert until(fn -> Enum.all?(acceptors, &waiting?(&1.pid)) end)
      assert :tame_tcp.listen(port, ip: :loopback, reuseaddr: true) == {:error, :eaddrinuse}
      assert :tame_tcp.close(listening) == :ok
      for acceptor <- acceptors, do: assert(Task.await(acceptor) == {:error, :closed})
      assert {:ok, again} = :tame_tcp.listen(port, ip: :loopback, reuseaddr: true)
      assert :tame_tcp.close(again) == :ok
    end

    test "delivers what was sent before" do
      {client, server} = pair()
      bytes = :crypto.strong_rand_bytes(100_000)
      assert :tame_tcp.send(client, bytes) == :ok
      assert :tame_tcp.close(client) == :ok
      assert :tame_tcp.recv(server, 100_000) == {:ok, bytes}
      assert :tame_tcp.recv(server, 0) == {:error, :closed}
    end
  end

  test "half-close: one direction ends, the other goes on" do
    {client, server} = pair()
    assert :tame_tcp.send(client, "question") == :ok
    assert :tame_tcp.shutdown(client, :write) == :ok
    assert :tame_tcp.recv(server, 0) == {:ok, "question"}
    assert :tame_tcp.recv(server, 0) == {:error, :closed}
    assert :tame_tcp.send(server, "answer") == :ok
    assert :tame_tcp.recv(client, 6) == {:ok, "answer"}
    assert :tame_tcp.send(client, "more") == {:error, :closed}
  end

  test "a reset ends who reads and who writes" do
    {client, server} = pair()
    reader = Task.async(fn -> :tame_tcp.recv(client, 10) end)
    writer = Task.async(fn -> fill(client) end)
    assert until(fn -> waiting?(reader.pid) and waiting?(writer.pid) end)
    assert :tame_tcp.setopts(server, linger: {true, 0}) == :ok
    assert :tame_tcp.close(server) == :ok
    assert Task.await(reader) == {:error, :closed}
    assert Task.await(writer) == {:error, :closed}
    assert :tame_tcp.setopts(client, linger: {true, 5}) == {:error, :einval}
  end

  describe "a deadline" do
    test "of more than receive can wait is refused, and nothing waits then" do
      {client, server} = pair()
      {listening, port} = listen()
      long = 4_294_967_296
      assert_raise ArgumentError, fn -> :tame_tcp.recv(client, 3, long) end
      assert_raise ArgumentError, fn -> :tame_tcp.accept(listening, long) end
      assert_raise ArgumentError, fn -> :tame_tcp.connect(:loopback, port, [], long) end
      reader = Task.async(fn -> :tame_tcp.recv(client, 3, long - 1) end)
      assert until(fn -> waiting?(reader.pid) end)
      assert :tame_tcp.send(server, "abc") == :ok
      assert Task.await(reader) == {:ok, "abc"}
      refute_received _
    end

    test "of recv ends the wait, and keeps what has come for the next" do
      {client, server} = pair()
      assert :tame_tcp.recv(client, 0, 0) == {:error, :timeout}
      assert :tame_tcp.recv(client, 5, 10) == {:error, :timeout}
      :ok = :tame_tcp.send(server, "abc")
      assert :tame_tcp.recv(client, 5, 10) == {:error, :timeout}
      :ok = :tame_tcp.send(server, "de")
      assert :tame_tcp.recv(client, 5, 5000) == {:ok, "abcde"}
      :ok = :tame_tcp.send(server, "fgh")
      assert :tame_tcp.recv(client, 9, 10) == {:error, :timeout}
      assert :tame_tcp.recv(client, 2, 5000) == {:ok, "fg"}
      assert :tame_tcp.recv(client, 0, 5000) == {:ok, "h"}
      refute_received _
    end

    test "of accept and connect" do
      {listening, _port} = listen()
      assert :tame_tcp.accept(listening, 0) == {:error, :timeout}
      assert :tame_tcp.accept(listening, 10) == {:error, :timeout}
      {:ok, {_, unused}} = :tame_tcp.sockname(listening)
      :ok = :tame_tcp.close(listening)

      assert :tame_tcp.connect({127, 0, 0, 1}, unused, [active: false], 5000) ==
               {:error, :econnrefused}

      refute_received _
    end

    test "of send" do
      {client, server} = pair()
      assert :tame_tcp.setopts(client, send_timeout: 20) == :ok
      assert fill(client) == {:error, :timeout}
      assert :tame_tcp.getopts(client, [:send_timeout]) == {:ok, [send_timeout: 20]}
      assert :tame_tcp.setopts(client, send_timeout_close: true) == :ok
      assert fill(client) == {:error, :timeout}
      assert :tame_tcp.send(client, "x") == {:error, :closed}
      assert :tame_tcp.close(server) == :ok
      refute_received _
    end

    test "that passes while data comes loses and doubles nothing" do
      {client, server} = pair()

      sender =
        Task.async(fn ->
          for n <- 1..2000 do
            :ok = :tame_tcp.send(server, <<n::32>>)
            if rem(n, 10) == 0, do: Process.sleep(1)
          end
        end)

      assert collect(client, 2000) == Enum.to_list(1..2000)
      Task.await(sender)
      assert :tame_tcp.close(server) == :ok
      refute_received _
    end
  end

  describe "who uses a socket" do
    test "may be many: each message of several senders arrives whole" do
      {client, server} = pair()
      message = fn n -> :binary.copy(<<n>>, 300_000) end
      senders = for n <- 1..5, do: Task.async(fn -> :tame_tcp.send(client, message.(n)) end)

      messages =
        for _ <- 1..5 do
          {:ok, bytes} = :tame_tcp.recv(server, 300_000, 10_000)
          assert bytes == message.(:binary.first(bytes))
          :binary.first(bytes)
        end

      assert Enum.sort(messages) == [1, 2, 3, 4, 5]
      for sender <- senders, do: assert(Task.await(sender) == :ok)
      assert :tame_tcp.close(client) == :ok
    end

    test "and dies while it waits leaves the turn to others" do
      {client, server} = pair()
      [first, second] = for _ <- 1..2, do: start_reader(client)
      Process.exit(first, :kill)
      :ok = :tame_tcp.send(server, "x")
      assert_receive {:read, ^second, {:ok, "x"}}
    end
  end

  describe "the owner" do
    test "that is killed closes, whatever the socket does" do
      for state <- [:idle, :recv, :send, :active, :accept] do
        {socket, peer, owner} = owned(state)
        Process.exit(owner, :kill)
        assert until(fn -> :tame_tcp.owner(socket) == {:error, :closed} end), "#{state}"

        case peer do
          :none -> :ok
          peer -> assert drained(peer) == {:error, :closed}
        end
      end
    end

    test "may be another, who says so alone, with the messages that have come" do
      {client, server} = pair()
      test = self()
      other = spawn_link(fn -> forwards(test) end)
      task = Task.async(fn -> :tame_tcp.controlling_process(client, other) end)
      assert Task.await(task) == {:error, :not_owner}
      :ok = :tame_tcp.setopts(client, active: true)
      :ok = :tame_tcp.send(server, "one")

      assert until(fn ->
               match?(
                 {:message_queue_len, n} when n > 0,
                 Process.info(self(), :message_queue_len)
               )
             end)

      assert :tame_tcp.controlling_process(client, other) == :ok
      :ok = :tame_tcp.send(server, "two")
      assert_receive {:forwarded, {:tcp, ^client, "one"}}
      assert_receive {:forwarded, {:tcp, ^client, "two"}}
      assert :tame_tcp.owner(client) == {:ok, other}
      dead = spawn(fn -> :ok end)
      assert until(fn -> not Process.alive?(dead) end)
      assert :tame_tcp.controlling_process(server, dead) == {:error, :badarg}
      assert :tame_tcp.controlling_process(server, :none) == {:error, :badarg}
    end
  end

  test "no descriptor is left when processes are killed at random moments" do
    before = descriptors()

    for n <- 1..300 do
      {listening, port} = listen()

      acceptor =
        spawn(fn ->
          case :tame_tcp.accept(listening) do
            {:ok, socket} -> echo(socket)
            _ -> :ok
          end
        end)

      client =
        spawn(fn ->
          {:ok, socket} = :tame_tcp.connect(:loopback, port, active: false)
          echo(socket, "x")
        end)

      if rem(n, 3) == 0, do: Process.sleep(:rand.uniform(3))
      for pid <- Enum.shuffle([acceptor, client]), do: Process.exit(pid, :kill)
      :tame_tcp.close(listening)
    end

    assert until(fn -> descriptors() <= before end)
  end

  defp echo(socket, first \\ nil) do
    if first, do: :tame_tcp.send(socket, first)

    with {:ok, bytes} <- :tame_tcp.recv(socket, 0),
         :ok <- :tame_tcp.send(socket, bytes),
         do: echo(socket)
  end

  defp owned(:accept) do
    test = self()

    owner =
      spawn(fn ->
        {listening, _} = listen()
        send(test, {:owned, listening})
        :tame_tcp.accept(listening)
      end)

    {receive(do: ({:owned, listening} -> listening)), :none, owner}
  end

  defp owned(state) do
    {client, server} = pair()

    owner =
      spawn(fn ->
        receive(do: (:go -> :ok))

        case state do
          :idle -> :ok
          :recv -> :tame_tcp.recv(client, 10)
          :send -> fill(client)
          :active -> :tame_tcp.setopts(client, active: true)
        end

        Process.sleep(:infinity)
      end)

    :ok = :tame_tcp.controlling_process(client, owner)
    send(owner, :go)
    assert until(fn -> waiting?(owner) end)
    {client, server, owner}
  end

  defp drained(socket) do
    case :tame_tcp.recv(socket, 0, 5000) do
      {:ok, _} -> drained(socket)
      other -> other
    end
  end

  defp forwards(test) do
    receive do
      message -> send(test, {:forwarded, message})
    end

    forwards(test)
  end

  defp start_reader(socket) do
    test = self()
    pid = spawn(fn -> send(test, {:read, self(), :tame_tcp.recv(socket, 0)}) end)
    assert until(fn -> waiting?(pid) end)
    pid
  end

  defp collect(_, 0), do: []

  defp collect(socket, left) do
    case :tame_tcp.recv(socket, 4, :rand.uniform(2) - 1) do
      {:ok, <<n::32>>} -> [n | collect(socket, left - 1)]
      {:error, :timeout} -> collect(socket, left)
    end
  end

  defp fill(socket) do
    case :tame_tcp.send(socket, :binary.copy("x", 100_000)) do
      :ok -> fill(socket)
      other -> other
    end
  end
end
