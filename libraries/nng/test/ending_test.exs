defmodule Tame.Nng.EndingTest do
  # Deadlines, closing, owners that die, processes that are killed at random: nothing leaks, nobody hangs.
  use ExUnit.Case, async: false

  import Tame.Nng.Test.Sockets

  @protocols [:req0, :rep0, :pub0, :sub0, :push0, :pull0, :pair0, :pair1] ++
               [:surveyor0, :respondent0, :bus0]

  for by <- [:nif, :driver] do
    describe "#{by}:" do
      @describetag by: by

      test "a deadline ends a receive and a send", %{by: by} do
        {a, b} = pair(:push0, :pull0, by: by)
        assert :tame_nng.recv(b, 0) == {:error, :timeout}
        assert :tame_nng.recv(b, 20) == {:error, :timeout}
        assert fill(a, 0) == {:error, :timeout}
        assert fill(a, 20) == {:error, :timeout}
        assert {:ok, _} = :tame_nng.recv(b, 5000)
        alone = open(:push0, by: by)
        assert :tame_nng.send(alone, "nobody is there", 20) == {:error, :timeout}
        close([a, b, alone])
      end

      test "a deadline ends the send of a large message as well", %{by: by} do
        alone = open(:push0, by: by)
        large = :binary.copy(<<0>>, 70_000)

        for ms <- [0, 0, 20] do
          task = Task.async(fn -> :tame_nng.send(alone, large, ms) end)
          assert Task.yield(task, 20_000) == {:ok, {:error, :timeout}}
        end

        # More than a port takes before it is busy.
        tasks = for _ <- 1..200, do: Task.async(fn -> :tame_nng.send(alone, large, 50) end)
        results = Task.yield_many(tasks, 20_000)
        assert Enum.all?(results, &match?({_, {:ok, {:error, :timeout}}}, &1))
        assert :tame_nng.close(alone) == :ok
        {a, b} = pair(:pair0, :pair0, by: by)
        assert :tame_nng.send(a, large, 0) == :ok
        assert :tame_nng.recv(b, 5000) == {:ok, large}
        for socket <- [a, b], do: assert(:tame_nng.close(socket) == :ok)
      end

      test "a deadline that passes while messages come loses and doubles none", %{by: by} do
        {a, b} = pair(:pull0, :push0, by: by)

        task =
          Task.async(fn ->
            for n <- 1..2000 do
              :ok = :tame_nng.send(b, <<n::32>>)
              if rem(n, 10) == 0, do: Process.sleep(1)
            end
          end)

        assert collect(a, 2000) == Enum.to_list(1..2000)
        Task.await(task)
        close([a, b])
      end

      test "close tells each process that waits, and all after it", %{by: by} do
        {a, b} = pair(:pair0, :pair0, by: by)
        readers = for _ <- 1..5, do: Task.async(fn -> :tame_nng.recv(a) end)
        writers = for _ <- 1..3, do: Task.async(fn -> fill(a, :infinity) end)
        assert until(fn -> Enum.all?(readers ++ writers, &waiting?(&1.pid)) end)
        assert :tame_nng.close(a) == :ok
        for task <- readers ++ writers, do: assert(Task.await(task) == {:error, :closed})
        assert :tame_nng.close(a) == :ok
        assert :tame_nng.recv(a, 10) == {:error, :closed}
        assert :tame_nng.send(a, "x") == {:error, :closed}
        assert :tame_nng.send(a, :binary.copy("x", 1_000_000)) == {:error, :closed}
        assert :tame_nng.listen(a, "inproc://x") == {:error, :closed}
        assert :tame_nng.setopts(a, active: true) == {:error, :closed}
        assert :tame_nng.setopts(a, recv_buffer: 1) == {:error, :closed}
        assert :tame_nng.getstat(a) == {:error, :closed}
        assert :tame_nng.owner(a) == {:error, :closed}
        assert :tame_nng.controlling_process(a, self()) == {:error, :closed}
        assert :tame_nng.context(a) == {:error, :closed}
        close([b])
      end

      test "close frees the address", %{by: by} do
        for transport <- [:tcp, :ipc, :inproc] do
          a = open(:pull0, by: by)
          url = listen(a, transport)
          b = open(:pull0, by: by)
          assert :tame_nng.listen(b, url) == {:error, :eaddrinuse}
          assert :tame_nng.close(a) == :ok
          assert {:ok, listener} = :tame_nng.listen(b, url)
          assert :tame_nng.url(listener) == {:ok, url}
          assert :tame_nng.hang_up(listener) == :ok
          assert {:error, _} = :tame_nng.url(listener)
          close([b])
        end
      end

      test "who waits and dies leaves its turn to the next, and takes no message", %{by: by} do
        {a, b} = pair(:pull0, :push0, by: by)

        # At once: before the VM has told the socket of the death.
        for _ <- 1..500 do
          [{first, down}, {second, _}] = for _ <- 1..2, do: receiver(a)
          Process.exit(first, :kill)
          assert_receive {:DOWN, ^down, _, _, _}
          :ok = :tame_nng.send(b, "x")
          assert_receive {:DOWN, _, _, ^second, {:received, {:ok, "x"}}}, 5000
        end

        close([a, b])
      end

      test "the owner's death closes, whatever the socket does", %{by: by} do
        before = descriptors()

        for state <- [:idle, :recv, :send, :active, :context, :dial] do
          {owner, socket} = owned(by, state)
          Process.exit(owner, :kill)
          assert until(fn -> :tame_nng.owner(socket) == {:error, :closed} end), "#{state}"
          assert :tame_nng.recv(socket, 0) == {:error, :closed}
        end

        assert until(fn -> descriptors() <= before end)
      end

      test "a socket that was opened and closed leaves no descriptor", %{by: by} do
        before = descriptors()

        for protocol <- @protocols, _ <- 1..10 do
          socket = open(protocol, by: by)
          assert :tame_nng.close(socket) == :ok
        end

        assert until(fn -> descriptors() <= before end)
      end

      test "another owner, with the messages that have come", %{by: by} do
        {a, b} = pair(:pull0, :push0, by: by)
        test = self()
        other = spawn_link(fn -> forwards(test) end)
        task = Task.async(fn -> :tame_nng.controlling_process(a, other) end)
        assert Task.await(task) == {:error, :not_owner}
        :ok = :tame_nng.setopts(a, active: true)
        :ok = :tame_nng.send(b, "one")
        assert until(fn -> Process.info(self(), :message_queue_len) > {:message_queue_len, 0} end)
        assert :tame_nng.controlling_process(a, other) == :ok
        :ok = :tame_nng.send(b, "two")
        assert_receive {:forwarded, {:nng, ^a, "one"}}
        assert_receive {:forwarded, {:nng, ^a, "two"}}
        assert :tame_nng.owner(a) == {:ok, other}
        dead = spawn(fn -> :ok end)
        assert until(fn -> not Process.alive?(dead) end)
        assert :tame_nng.controlling_process(b, dead) == {:error, :badarg}
        assert :tame_nng.controlling_process(b, :none) == {:error, :badarg}
        assert :tame_nng.controlling_process(b, self()) == :ok
        Process.unlink(other)
        Process.exit(other, :kill)
        assert until(fn -> :tame_nng.owner(a) == {:error, :closed} end)
        close([b])
      end

      test "no descriptor is left when processes are killed at random moments", %{by: by} do
        before = descriptors()

        # Not over ipc and tcp, where nng 1.5 itself may hang when a connection ends amid a message.
        for n <- 1..300 do
          url = address(:inproc)
          server = spawn(fn -> echo(open(:rep0, by: by), url, :listen) end)
          client = spawn(fn -> echo(open(:req0, by: by), url, :dial) end)
          if rem(n, 3) == 0, do: Process.sleep(:rand.uniform(5))
          for pid <- Enum.shuffle([server, client]), do: Process.exit(pid, :kill)
        end

        assert until(fn -> descriptors() <= before end, 20_000)
      end

      test "users that are killed in the midst of small and large messages", %{by: by} do
        {a, b} = pair(:pull0, :push0, by: by)
        # A port has a descriptor more from the first time on that something of it is outside.
        for socket <- [a, b], do: assert({:ok, _} = :tame_nng.getstat(socket))
        # And nng has some from the first time on that a call waits.
        assert :tame_nng.recv(a, 0) == {:error, :timeout}
        assert fill(b, 0) == {:error, :timeout}
        before = descriptors()

        for n <- 1..200 do
          size = Enum.random([1, 5000, 70_000, 300_000])

          users = [
            spawn(fn -> fill(b, :infinity, :binary.copy("x", size)) end),
            spawn(fn -> drain(a) end),
            spawn(fn -> drain(a) end)
          ]

          if rem(n, 3) == 0, do: Process.sleep(:rand.uniform(3))
          for user <- Enum.shuffle(users), do: Process.exit(user, :kill)
        end

        # What is left of them, and then ours, which those who are about to die may take at first.
        ours = fn ->
          :tame_nng.send(b, "ours", 0) in [:ok, {:error, :timeout}] and drained?(a, "ours")
        end

        assert until(ours)
        assert until(fn -> descriptors() <= before end)
        close([a, b])
      end

      test "a dial that waits for a peer which says nothing ends with its socket", %{by: by} do
        {:ok, silent} = :gen_tcp.listen(0, ip: :loopback)
        {:ok, port} = :inet.port(silent)
        url = "tcp://127.0.0.1:#{port}"
        socket = open(:req0, by: by)
        task = Task.async(fn -> :tame_nng.dial(socket, url, [:wait]) end)
        assert Task.yield(task, 100) == nil
        assert :tame_nng.recv(socket, 0) == {:error, :estate}
        assert :tame_nng.close(socket) == :ok
        assert {:error, reason} = Task.await(task)
        assert reason in [:closed, :ecanceled, :econnaborted]

        :gen_tcp.close(silent)
      end

      # nng itself forgets who dials when its socket is closed before the dial has begun to connect.
      test "a dial that waits ends with its socket at whatever moment that ends", %{by: by} do
        {:ok, silent} = :gen_tcp.listen(0, ip: :loopback, backlog: 1000)
        {:ok, port} = :inet.port(silent)
        url = "tcp://127.0.0.1:#{port}"
        before = descriptors()

        for _ <- 1..200 do
          owner = spawn(fn -> :tame_nng.dial(open(:req0, by: by), url, [:wait]) end)
          assert until(fn -> descriptors() > before end)
          busy(:rand.uniform(200))
          Process.exit(owner, :kill)
          assert until(fn -> descriptors() <= before end)
        end

        for _ <- 1..200 do
          socket = open(:req0, by: by)
          task = Task.async(fn -> :tame_nng.dial(socket, url, [:wait]) end)
          busy(:rand.uniform(200))
          assert :tame_nng.close(socket) == :ok
          assert {:ok, {:error, _}} = Task.yield(task, 20_000)
        end

        assert until(fn -> descriptors() <= before end)
        :gen_tcp.close(silent)
      end

      test "a dial that waits holds up nothing else of its socket", %{by: by} do
        socket = open(:pair0, by: by)
        {silent, dial} = dial_in_vain(socket)
        large = :binary.copy(<<0>>, 2_000_000)
        alone = Task.async(fn -> :tame_nng.send(socket, large, 50) end)
        assert Task.yield(alone, 20_000) == {:ok, {:error, :timeout}}
        peer = open(:pair0, by: by)
        dial(peer, listen(socket, :inproc))
        assert connected(socket, 1)

        task =
          Task.async(fn ->
            :ok = :tame_nng.send(socket, large)
            {:ok, ^large} = :tame_nng.recv(peer)
            :ok = :tame_nng.send(peer, large)
            {:ok, ^large} = :tame_nng.recv(socket)
            :ok = :tame_nng.setopts(socket, recv_buffer: 3)
            :tame_nng.getopts(socket, [:recv_buffer])
          end)

        assert Task.yield(task, 20_000) == {:ok, {:ok, [recv_buffer: 3]}}
        assert Task.yield(dial, 0) == nil
        for socket <- [socket, peer], do: assert(:tame_nng.close(socket) == :ok)
        dialled_in_vain({silent, dial})
      end

      test "a deadline ends what a context sends, though a dial waits", %{by: by} do
        socket = open(:req0, by: by)
        {silent, dial} = dial_in_vain(socket)

        for size <- [10, 70_000, 2_000_000], ms <- [0, 20] do
          large = :binary.copy(<<0>>, size)
          task = Task.async(fn -> :tame_nng.request(socket, large, ms) end)
          assert Task.yield(task, 20_000) == {:ok, {:error, :timeout}}
        end

        assert Task.yield(dial, 0) == nil
        assert :tame_nng.close(socket) == :ok
        dialled_in_vain({silent, dial})
      end

      test "who waits for nothing uses no CPU", %{by: by} do
        sockets =
          for protocol <- [:rep0, :sub0, :pull0, :pair0, :pair1, :respondent0, :bus0] do
            socket = open(protocol, by: by)
            pid = spawn_link(fn -> :tame_nng.recv(socket) end)
            assert until(fn -> waiting?(pid) end)
            socket
          end

        {a, b} = pair(:push0, :pull0, by: by)
        assert fill(a, 50) == {:error, :timeout}
        pid = spawn_link(fn -> fill(a, :infinity) end)
        assert until(fn -> waiting?(pid) end)
        before = cpu_ms()
        Process.sleep(500)
        # One that span would take 500.
        assert cpu_ms() - before < 250
        close([a, b | sockets])
      end

      test "closed by many at once: each returns, and it is closed once", %{by: by} do
        for _ <- 1..50 do
          {a, b} = pair(:pair0, :pair0, by: by)
          tasks = for _ <- 1..4, do: Task.async(fn -> :tame_nng.close(a) end)
          for task <- tasks, do: assert(Task.await(task) == :ok)
          assert :tame_nng.send(a, "x", 0) == {:error, :closed}
          close([b])
        end
      end
    end
  end

  test "by driver: more dials that wait than have threads of their own all end with their sockets" do
    before = descriptors()
    sockets = for _ <- 1..70, do: open(:req0, by: :driver)
    dials = Enum.map(sockets, &dial_in_vain/1)
    for socket <- sockets, do: assert(:tame_nng.close(socket) == :ok)

    Enum.each(dials, &dialled_in_vain/1)
    assert until(fn -> descriptors() <= before end)
  end

  # A peer that takes a connection and says nothing, and a dial that waits for it.
  defp dial_in_vain(socket) do
    {:ok, silent} = :gen_tcp.listen(0, ip: :loopback, active: false)
    {:ok, port} = :inet.port(silent)
    dial = Task.async(fn -> :tame_nng.dial(socket, "tcp://127.0.0.1:#{port}", [:wait]) end)
    {:ok, accepted} = :gen_tcp.accept(silent, 10_000)
    {[silent, accepted], dial}
  end

  # Its socket is closed, and it ends.
  defp dialled_in_vain({peer, dial}) do
    assert {:error, _} = Task.await(dial, 20_000)
    Enum.each(peer, &:gen_tcp.close/1)
  end

  # Without giving up the scheduler.
  defp busy(us) do
    until = System.monotonic_time(:microsecond) + us
    Stream.repeatedly(fn -> System.monotonic_time(:microsecond) end) |> Enum.find(&(&1 >= until))
  end

  # Waits for a message, and ends with it.
  defp receiver(socket) do
    {pid, monitor} = spawn_monitor(fn -> exit({:received, :tame_nng.recv(socket)}) end)
    assert until(fn -> waiting?(pid) end)
    {pid, monitor}
  end

  defp echo(socket, url, :listen) do
    {:ok, _} = :tame_nng.listen(socket, url)
    echo(socket)
  end

  defp echo(socket, url, :dial) do
    {:ok, _} = :tame_nng.dial(socket, url)
    :ok = :tame_nng.send(socket, "x")
    echo(socket)
  end

  defp echo(socket) do
    with {:ok, bytes} <- :tame_nng.recv(socket),
         :ok <- :tame_nng.send(socket, bytes),
         do: echo(socket)
  end

  defp owned(by, state) do
    test = self()

    owner =
      spawn(fn ->
        socket = open(:req0, by: by)
        send(test, {:socket, socket})
        held = hold(state, socket)
        send(test, {held, socket})
        Process.sleep(:infinity)
      end)

    socket = receive(do: ({:socket, socket} -> socket))
    # It waits in what it does, or at its end.
    assert until(fn -> waiting?(owner) end)
    {owner, socket}
  end

  defp hold(:idle, _), do: :ok
  defp hold(:recv, socket), do: :tame_nng.recv(socket)
  defp hold(:send, socket), do: :tame_nng.send(socket, "x")
  defp hold(:active, socket), do: :tame_nng.setopts(socket, active: true)
  defp hold(:dial, socket), do: :tame_nng.dial(socket, "tcp://127.0.0.1:1")
  defp hold(:context, socket), do: :tame_nng.request(socket, "x")

  # Of this VM's threads, user and system.
  defp cpu_ms do
    for thread <- File.ls!("/proc/self/task"), reduce: 0 do
      sum ->
        case File.read("/proc/self/task/#{thread}/schedstat") do
          {:ok, text} ->
            sum + div(text |> String.split() |> hd() |> String.to_integer(), 1_000_000)

          {:error, _} ->
            sum
        end
    end
  end

  defp fill(socket, timeout, message \\ "x") do
    case :tame_nng.send(socket, message, timeout) do
      :ok -> fill(socket, timeout, message)
      other -> other
    end
  end

  defp drain(socket) do
    case :tame_nng.recv(socket) do
      {:ok, _} -> drain(socket)
      other -> other
    end
  end

  # Whether this message is the next; another is dropped.
  defp drained?(socket, message), do: :tame_nng.recv(socket, 100) == {:ok, message}

  defp forwards(test) do
    receive do
      message -> send(test, {:forwarded, message})
    end

    forwards(test)
  end

  defp close(sockets) do
    for socket <- sockets, do: assert(:tame_nng.close(socket) == :ok)
    refute_received _
  end
end
