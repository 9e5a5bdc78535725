defmodule Tame.Tcp.ActiveTest do
  # Messages for credit, as gen_tcp's active modes.
  use ExUnit.Case, async: false

  import Tame.Tcp.Test.Sockets

  test "once gives one message, then none" do
    {client, server} = pair()
    :ok = :tame_tcp.send(server, "a")
    assert :tame_tcp.setopts(client, active: :once) == :ok
    assert_receive {:tcp, ^client, "a"}
    assert :tame_tcp.getopts(client, [:active]) == {:ok, [active: false]}
    :ok = :tame_tcp.send(server, "b")
    refute_receive _, 50
    assert :tame_tcp.recv(client, 0) == {:ok, "b"}
    assert :tame_tcp.setopts(client, active: :once) == :ok
    assert :tame_tcp.getopts(client, [:active]) == {:ok, [active: :once]}
    assert :tame_tcp.recv(client, 0) == {:error, :einval}
    :ok = :tame_tcp.send(server, "c")
    assert_receive {:tcp, ^client, "c"}
    refute_receive _, 10
  end

  test "a number gives as many, and then says that it is passive" do
    {client, server} = pair()
    assert :tame_tcp.setopts(client, active: 3) == :ok

    for n <- 1..3 do
      :ok = :tame_tcp.send(server, <<n>>)
      assert_receive {:tcp, ^client, <<^n>>}
    end

    assert_receive {:tcp_passive, ^client}
    :ok = :tame_tcp.send(server, "rest")
    refute_receive _, 50
    assert :tame_tcp.setopts(client, active: 2) == :ok
    assert_receive {:tcp, ^client, "rest"}
    assert :tame_tcp.getopts(client, [:active]) == {:ok, [active: 1]}
    assert :tame_tcp.setopts(client, active: -1) == :ok
    assert_receive {:tcp_passive, ^client}
    assert :tame_tcp.setopts(client, active: 40_000) == {:error, :einval}
    assert :tame_tcp.setopts(client, active: :twice) == {:error, :einval}
    # Until here it is known, and not closed by the garbage collector.
    assert :tame_tcp.close(server) == :ok
  end

  test "always: everything, in its order, and the end" do
    {client, server} = pair()
    :ok = :tame_tcp.setopts(client, active: true)
    bytes = :crypto.strong_rand_bytes(3_000_000)
    :ok = :tame_tcp.send(server, bytes)
    :ok = :tame_tcp.close(server)
    assert gather(client, []) == bytes
    assert :tame_tcp.recv(client, 0) == {:error, :closed}
    refute_received _
  end

  test "credit is the back-pressure: a sender waits for who gives none" do
    {client, server} = pair()
    :ok = :tame_tcp.setopts(client, active: :once)
    sender = Task.async(fn -> :tame_tcp.send(server, :binary.copy("x", 20_000_000)) end)
    assert_receive {:tcp, ^client, first}
    assert Task.yield(sender, 100) == nil
    assert gather_once(client, byte_size(first), 20_000_000) == 20_000_000
    assert Task.await(sender) == :ok
    assert :tame_tcp.close(server) == :ok
    refute_received {:tcp, _, _}
  end

  test "passive again: after setopts nothing comes, and recv has the rest" do
    {client, server} = pair()

    for _ <- 1..100 do
      :ok = :tame_tcp.setopts(client, active: true)
      sender = Task.async(fn -> for _ <- 1..20, do: :ok = :tame_tcp.send(server, "abc") end)
      Process.sleep(:rand.uniform(2) - 1)
      :ok = :tame_tcp.setopts(client, active: false)
      came = flush(client, 0)
      Task.await(sender)
      refute_received _
      left = 60 - came

      if left > 0 do
        assert {:ok, bytes} = :tame_tcp.recv(client, left, 5000)
        assert byte_size(bytes) == left
      end
    end
  end

  test "credit that is given without an end, by many, loses nothing" do
    {client, server} = pair()
    sender = Task.async(fn -> for n <- 1..5000, do: :ok = :tame_tcp.send(server, <<n::32>>) end)
    assert once_each(client, <<>>, 5000 * 4) == for(n <- 1..5000, into: <<>>, do: <<n::32>>)
    Task.await(sender)
    assert :tame_tcp.close(server) == :ok
  end

  test "modes that change while data comes: nothing is lost, nothing stalls" do
    {client, server} = pair()
    total = 4 * 20_000
    sender = Task.async(fn -> for n <- 1..20_000, do: :ok = :tame_tcp.send(server, <<n::32>>) end)
    assert modes(client, [], 0, total) == for(n <- 1..20_000, into: <<>>, do: <<n::32>>)
    Task.await(sender, 60_000)
    # Its term until here: a socket that nobody knows any more may be closed.
    assert :tame_tcp.close(server) == :ok
  end

  test "the library is loaded anew while sockets are open and wait" do
    {client, server} = pair()
    :ok = :tame_tcp.setopts(client, active: :once)
    waits = Task.async(fn -> :tame_tcp.recv(server, 3) end)
    assert until(fn -> Process.info(waits.pid, :status) == {:status, :waiting} end)
    assert {:module, _} = :code.load_file(:tame_tcp_nif)
    refute :code.purge(:tame_tcp_nif)
    :ok = :tame_tcp.send(server, "to")
    assert_receive {:tcp, ^client, "to"}
    :ok = :tame_tcp.send(client, "fro")
    assert Task.await(waits) == {:ok, "fro"}
    :ok = :tame_tcp.close(client)
    assert :tame_tcp.recv(server, 0) == {:error, :closed}
  end

  describe "a receive that waits" do
    setup do
      {client, server} = pair()
      {pid, _} = spawn_monitor(fn -> exit(:tame_tcp.recv(client, 0)) end)
      assert until(fn -> waiting?(pid) end)
      %{client: client, server: server, pid: pid}
    end

    test "gives way to credit when data comes", %{client: client, server: server, pid: pid} do
      assert :tame_tcp.setopts(client, active: :once) == :ok
      :ok = :tame_tcp.send(server, "a")
      assert_receive {:DOWN, _, _, ^pid, {:error, :einval}}
      assert_receive {:tcp, ^client, "a"}
      :ok = :tame_tcp.send(server, "b")
      assert :tame_tcp.recv(client, 1) == {:ok, "b"}
    end

    test "and is killed frees the socket", %{client: client, server: server, pid: pid} do
      assert :tame_tcp.setopts(client, active: true) == :ok
      Process.exit(pid, :kill)
      assert_receive {:DOWN, _, _, ^pid, :killed}
      :ok = :tame_tcp.send(server, "a")
      assert_receive {:tcp, ^client, "a"}
      refute_received _
    end

    test "does not hold up who takes credit back, and gets the data then",
         %{client: client, server: server, pid: pid} do
      assert :tame_tcp.setopts(client, active: true) == :ok
      task = Task.async(fn -> :tame_tcp.setopts(client, active: false) end)
      assert Task.yield(task, 20_000) == {:ok, :ok}
      :ok = :tame_tcp.send(server, "a")
      assert_receive {:DOWN, _, _, ^pid, {:ok, "a"}}
    end

    test "and ends by its time leaves the credit to messages" do
      {client, server} = pair()
      {pid, _} = spawn_monitor(fn -> exit(:tame_tcp.recv(client, 0, 1000)) end)
      assert until(fn -> waiting?(pid) end)
      assert :tame_tcp.setopts(client, active: :once) == :ok
      assert_receive {:DOWN, _, _, ^pid, {:error, :timeout}}
      :ok = :tame_tcp.send(server, "a")
      assert_receive {:tcp, ^client, "a"}
    end
  end

  describe "a receive of a length that has a part" do
    setup do
      {client, server} = pair()
      :ok = :tame_tcp.send(server, "abc")
      %{client: client, server: server}
    end

    # It has the part, and waits again, or its time is over.
    defp receiver(client, ms) do
      {pid, _} = spawn_monitor(fn -> exit(:tame_tcp.recv(client, 10, ms)) end)
      assert until(fn -> :tame_tcp.getstat(client, [:recv_oct]) == {:ok, [recv_oct: 3]} end)
      assert until(fn -> waiting?(pid) or not Process.alive?(pid) end)
      pid
    end

    test "and ends by its time leaves it to credit that came meanwhile", context do
      %{client: client, server: server} = context
      pid = receiver(client, 500)
      :ok = :tame_tcp.setopts(client, active: :once)
      assert_receive {:DOWN, _, _, ^pid, {:error, reason}}
      assert reason in [:timeout, :einval]
      assert_receive {:tcp, ^client, "abc"}
      assert :tame_tcp.getopts(client, [:active]) == {:ok, [active: false]}
      # Its term until here: a socket that nobody knows any more may be closed.
      assert :tame_tcp.close(server) == :ok
    end

    test "and has no end leaves it to credit at once", %{client: client, server: server} do
      pid = receiver(client, :infinity)
      :ok = :tame_tcp.setopts(client, active: :once)
      assert_receive {:DOWN, _, _, ^pid, {:error, :einval}}
      assert_receive {:tcp, ^client, "abc"}
      :ok = :tame_tcp.send(server, "d")
      assert :tame_tcp.recv(client, 1) == {:ok, "d"}
    end

    test "and is killed leaves it to credit", %{client: client, server: server} do
      pid = receiver(client, :infinity)
      Process.exit(pid, :kill)
      assert_receive {:DOWN, _, _, ^pid, :killed}
      :ok = :tame_tcp.setopts(client, active: :once)
      assert_receive {:tcp, ^client, "abc"}
      assert :tame_tcp.close(server) == :ok
    end

    test "and ended by its time leaves it to credit that comes then", context do
      %{client: client, server: server} = context
      assert :tame_tcp.recv(client, 10, 100) == {:error, :timeout}
      :ok = :tame_tcp.setopts(client, active: :once)
      assert_receive {:tcp, ^client, "abc"}
      assert :tame_tcp.close(server) == :ok
    end
  end

  test "of a listening socket is what those that it accepts begin with" do
    {listening, port} = listen(active: :once)
    assert :tame_tcp.getopts(listening, [:active]) == {:ok, active: :once}
    assert begins_with(listening, port) == :once

    for active <- [true, 3, false, :once] do
      assert :tame_tcp.setopts(listening, active: active) == :ok
      assert :tame_tcp.getopts(listening, [:active]) == {:ok, active: active}
      assert begins_with(listening, port) == active
    end

    assert :tame_tcp.setopts(listening, active: 40_000) == {:error, :einval}
    other = spawn_link(fn -> Process.sleep(:infinity) end)
    assert :tame_tcp.controlling_process(listening, other) == :ok
    assert :tame_tcp.getopts(listening, [:active]) == {:ok, active: :once}
    assert begins_with(listening, port) == :once
    refute_received {_, ^listening}
    refute_received {_, ^listening, _}
    assert :tame_tcp.close(listening) == :ok
  end

  defp begins_with(listening, port) do
    {:ok, client} = :tame_tcp.connect(:loopback, port, [active: false], 5000)
    {:ok, server} = :tame_tcp.accept(listening, 5000)
    {:ok, active: active} = :tame_tcp.getopts(server, [:active])
    for socket <- [client, server], do: :ok = :tame_tcp.close(socket)
    active
  end

  test "credit that a negative number takes away leaves the turn to recv" do
    {client, server} = pair()
    :ok = :tame_tcp.setopts(client, active: 3)
    :ok = :tame_tcp.setopts(client, active: -3)
    assert_receive {:tcp_passive, ^client}
    :ok = :tame_tcp.send(server, "a")
    assert :tame_tcp.recv(client, 0, 5000) == {:ok, "a"}
  end

  test "numbers that are given while messages take them: the sum is right" do
    {client, server} = pair()
    :ok = :tame_tcp.setopts(client, active: 1)
    sender = Task.async(fn -> for _ <- 1..3000, do: :ok = :tame_tcp.send(server, "x") end)
    # Each reads some bytes; none stays negative, which would be credit without an end.
    for n <- 1..3000, do: :ok = :tame_tcp.setopts(client, active: rem(n, 5) - 1)
    Task.await(sender)
    :ok = :tame_tcp.setopts(client, active: -32_768)
    assert :tame_tcp.getopts(client, [:active]) == {:ok, [active: false]}
    assert :tame_tcp.setopts(client, active: -40_000) == {:error, :einval}
    assert :tame_tcp.setopts(client, active: 2_147_483_647) == {:error, :einval}
    # Its term until here, as above.
    assert :tame_tcp.close(server) == :ok
  end

  test "who gives the socket away has no message of it afterwards" do
    {client, server} = pair()
    test = self()
    other = spawn_link(fn -> gives_back(test) end)

    for _ <- 1..300 do
      :ok = :tame_tcp.setopts(client, active: :once)
      spawn(fn -> :tame_tcp.send(server, :binary.copy("x", 50_000)) end)
      if :rand.uniform(2) == 1, do: :erlang.yield()
      :ok = :tame_tcp.controlling_process(client, other)
      refute_received {:tcp, _, _}
      send(other, {:back, client})
      assert_receive :gave
      :ok = :tame_tcp.setopts(client, active: false)
      flush(client, 0)
      {:error, :timeout} = drain(client)
    end
  end

  test "a reader outlives its module's code, idle or not" do
    {client, server} = pair()
    reader = :tame_fd_readers.of_fd(:tame_tcp_nif, client)
    :ok = :tame_tcp.setopts(client, active: true)

    for _ <- 1..3 do
      :code.purge(:tame_fd_readers)
      assert {:module, _} = :code.load_file(:tame_fd_readers)
      refute :code.purge(:tame_fd_readers)
      :ok = :tame_tcp.send(server, "x")
      assert_receive {:tcp, ^client, "x"}
    end

    assert :tame_fd_readers.of_fd(:tame_tcp_nif, client) == reader
    refute_received _
  end

  test "accepted sockets begin as the listening one says" do
    for active <- [true, :once, 5] do
      {listening, port} = listen(active: active)
      {:ok, client} = :tame_tcp.connect(:loopback, port, active: false)
      {:ok, server} = :tame_tcp.accept(listening)
      :ok = :tame_tcp.send(client, "x")
      assert_receive {:tcp, ^server, "x"}
      :ok = :tame_tcp.close(server)
      :ok = :tame_tcp.close(client)
    end
  end

  test "a reader that dies ends the sockets that wait with it, and another takes its place" do
    {client, server} = pair()
    :ok = :tame_tcp.setopts(client, active: true)
    reader = :tame_fd_readers.of_fd(:tame_tcp_nif, client)
    Process.exit(reader, :kill)
    assert_receive {:tcp_error, ^client, :reader_down}
    assert_receive {:tcp_closed, ^client}
    assert :tame_tcp.recv(server, 0) == {:error, :closed}

    assert until(fn ->
             :tame_fd_readers.of_fd(:tame_tcp_nif, client) not in [reader, :undefined]
           end)

    {client, server} = pair()
    :ok = :tame_tcp.setopts(client, active: :once)
    :ok = :tame_tcp.send(server, "x")
    assert_receive {:tcp, ^client, "x"}
  end

  test "a reset of an active socket says that it is closed" do
    {client, server} = pair(active: true)
    :ok = :tame_tcp.setopts(client, active: true)
    :ok = :tame_tcp.setopts(server, linger: {true, 0}, active: false)
    :ok = :tame_tcp.close(server)
    assert_receive {:tcp_closed, ^client}
  end

  # One way of receiving after the other, each for a while.
  defp modes(_, parts, total, total), do: parts |> Enum.reverse() |> IO.iodata_to_binary()

  defp modes(socket, parts, bytes, total) do
    case Enum.random([:once, :number, :always, :passive]) do
      :once -> :ok = :tame_tcp.setopts(socket, active: :once)
      :number -> :ok = :tame_tcp.setopts(socket, active: Enum.random(1..5))
      :always -> :ok = :tame_tcp.setopts(socket, active: true)
      :passive -> :ok
    end

    :ok = :tame_tcp.setopts(socket, active: Enum.random([false, false, :once, 2]))
    came = Enum.random([&came/1, &passive/1]).(socket)
    modes(socket, Enum.reverse(came, parts), bytes + IO.iodata_length(came), total)
  end

  defp passive(socket) do
    :ok = :tame_tcp.setopts(socket, active: false)
    before = came(socket)

    case :tame_tcp.recv(socket, 0, 2) do
      {:ok, bytes} -> before ++ [bytes]
      {:error, :timeout} -> before
    end
  end

  defp came(socket) do
    receive do
      {:tcp, ^socket, bytes} -> [bytes | came(socket)]
      {:tcp_passive, ^socket} -> came(socket)
    after
      0 -> []
    end
  end

  defp gather(socket, parts) do
    receive do
      {:tcp, ^socket, bytes} -> gather(socket, [bytes | parts])
      {:tcp_closed, ^socket} -> parts |> Enum.reverse() |> IO.iodata_to_binary()
    after
      10_000 -> flunk("no end after #{IO.iodata_length(parts)} bytes")
    end
  end

  defp gather_once(_, total, total), do: total

  defp gather_once(socket, bytes, total) do
    :ok = :tame_tcp.setopts(socket, active: :once)
    assert_receive {:tcp, ^socket, part}
    gather_once(socket, bytes + byte_size(part), total)
  end

  defp once_each(_, bytes, size) when byte_size(bytes) == size, do: bytes

  defp once_each(socket, bytes, size) do
    :ok = :tame_tcp.setopts(socket, active: :once)
    assert_receive {:tcp, ^socket, part}
    once_each(socket, bytes <> part, size)
  end

  defp gives_back(test) do
    receive do
      {:back, socket} ->
        :ok = :tame_tcp.controlling_process(socket, test)
        send(test, :gave)
        gives_back(test)
    end
  end

  defp drain(socket) do
    with {:ok, _} <- :tame_tcp.recv(socket, 0, 1), do: drain(socket)
  end

  defp flush(socket, bytes) do
    receive do
      {:tcp, ^socket, part} -> flush(socket, bytes + byte_size(part))
    after
      0 -> bytes
    end
  end
end
