defmodule Tame.Nng.Test.Far do
  @moduledoc false
  # What tests call in another VM: a process there owns the socket.

  # A server that replies with what it was asked, twice; its address.
  def serve(by, url) do
    caller = self()

    pid =
      spawn(fn ->
        {:ok, rep} = :tame_nng.open(:rep0, by: by)
        {:ok, listener} = :tame_nng.listen(rep, url)
        {:ok, url} = :tame_nng.url(listener)
        send(caller, {self(), url})
        serve(rep)
      end)

    receive(do: ({^pid, url} -> {pid, url}))
  end

  defp serve(rep) do
    {:ok, bytes} = :tame_nng.recv(rep)
    :ok = :tame_nng.send(rep, [bytes, bytes])
    serve(rep)
  end

  # What a receiver has of a message that is too large, and whether the next one comes.
  def too_large(by) do
    import Tame.Nng.Test.Sockets
    {a, b} = pair(:pair0, :pair0, [by: by, recv_max_size: 1000, reconnect_min: 5], :tcp)
    :ok = :tame_nng.send(b, :binary.copy("x", 1001))
    large = :tame_nng.recv(a, 50)

    small = fn ->
      _ = :tame_nng.send(b, "small", 0)
      :tame_nng.recv(a, 20) == {:ok, "small"}
    end

    {large, until(small)}
  end

  # Surveys of 1 ms, each sent about when the one before ends.
  def survey_after_survey(by, surveys) do
    {:ok, surveyor} = :tame_nng.open(:surveyor0, by: by, survey_time: 1)

    for _ <- 1..surveys do
      at = System.monotonic_time(:microsecond) + 1000 + :rand.uniform(200) - 50
      :ok = :tame_nng.send(surveyor, "who?")
      awake(at)
    end

    :tame_nng.close(surveyor)
    :done
  end

  defp awake(at), do: if(System.monotonic_time(:microsecond) < at, do: awake(at))

  # What sockets of an isolated NIF do, before and after the process that has them is killed as by a fault of its own.
  def isolated do
    :ok = :logger.set_primary_config(:level, :none)
    {:ok, _} = Application.ensure_all_started(:tame)
    :ok = :tame.isolate(:tame_nng_nif)
    import Tame.Nng.Test.Sockets
    {rep, req} = pair(:rep0, :req0)
    server = spawn(fn -> contexts(rep) end)

    requests =
      1..20
      |> Enum.map(fn n -> Task.async(fn -> :tame_nng.request(req, <<n>>, 10_000) end) end)
      |> Enum.map(fn task -> with({:ok, <<"re:", n>>} <- Task.await(task, 20_000), do: n) end)

    {a, b} = pair(:pair0, :pair0)
    :ok = :tame_nng.setopts(a, active: true)
    for message <- ["a", "b"], do: :ok = :tame_nng.send(b, message, 5000)

    active =
      for _ <- 1..2, do: receive(do: ({:nng, ^a, message} -> message), after: (5000 -> nil))

    deadline = :tame_nng.recv(b, 20)
    test = self()
    owner = spawn(fn -> send(test, {:owned, open(:pull0)}) && Process.sleep(:infinity) end)
    owned = receive(do: ({:owned, socket} -> socket))
    Process.exit(owner, :kill)
    until(fn -> :tame_nng.owner(owned) == {:error, :closed} end)
    owner_died = :tame_nng.recv(owned, 0)

    crashed = crash(b)
    Process.exit(server, :kill)
    {rep, req} = pair(:rep0, :req0)
    spawn(fn -> contexts(rep) end)

    %{
      requests: requests,
      active: active,
      deadline: deadline,
      owner_died: owner_died,
      crashed: crashed,
      afterwards: :tame_nng.request(req, "still there?", 5000)
    }
  end

  defp contexts(rep) do
    {:ok, context} = :tame_nng.context(rep)
    in_context(context)
  end

  defp in_context(context) do
    {:ok, bytes} = :tame_nng.recv(context)
    :ok = :tame_nng.send(context, ["re:", bytes])
    in_context(context)
  end

  # What a call says when the process that has the socket dies in it; the next has other sockets.
  defp crash(socket) do
    %{tame_nng_nif: %{hosts: [%{os_pid: os_pid} | _]}} = :tame.info()
    {_, 0} = System.cmd("kill", ["-SEGV", to_string(os_pid)])
    for _ <- 1..1000, do: :tame_nng.recv(socket, 5)
    :none
  catch
    :error, {:tame, {:crashed, %{signal: :sigsegv}}} -> :told
    :error, :badarg -> :told
  end

  # The driver goes when nobody has it loaded and its last port is closed, and comes back.
  def unload do
    :ok = :logger.set_primary_config(:level, :none)
    {:ok, a} = :tame_nng.open(:pair0, by: :driver)
    {:ok, b} = :tame_nng.open(:pair0, by: :driver)
    {:ok, _} = :tame_nng.listen(a, "inproc://unload")
    {:ok, _} = :tame_nng.dial(b, "inproc://unload", [:wait])
    :ok = Application.stop(:tame_nng)
    :ok = :tame_nng.send(a, "still there", 5000)
    {:ok, "still there"} = :tame_nng.recv(b, 5000)
    true = ~c"tame_nng_drv" in loaded()
    for socket <- [a, b], do: :ok = :tame_nng.close(socket)
    true = Tame.Nng.Test.Sockets.until(fn -> ~c"tame_nng_drv" not in loaded() end)

    for _ <- 1..3 do
      {:ok, c} = :tame_nng.open(:rep0, by: :driver)
      {:ok, _} = :tame_nng.listen(c, "inproc://unload")
      {:error, :timeout} = :tame_nng.recv(c, 5)
      :ok = :tame_nng.close(c)
      :ok = :erl_ddll.unload(~c"tame_nng_drv")
      true = Tame.Nng.Test.Sockets.until(fn -> ~c"tame_nng_drv" not in loaded() end)
    end

    :done
  end

  # Pairs that exchange messages over ipc are killed, until nng 1.5 closes nothing to its end any more, or 1500 were. What
  # closing does all the same, for a socket that listens, one that is connected to it and one that dials and waits: the
  # address is free, the connection is gone, the call returns. And how long closing takes at most, in ms.
  def close_beside_hung(by) do
    :ok = :logger.set_primary_config(:level, :none)
    import Tame.Nng.Test.Sockets
    before = descriptors()

    Enum.find(1..15, fn _ ->
      :ok = kill_pairs(by, 100)
      not until(fn -> descriptors() <= before end, 2000)
    end)

    {:ok, a} = :tame_nng.open(:pull0, by: by)
    {:ok, listener} = :tame_nng.listen(a, "tcp://127.0.0.1:0")
    {:ok, url} = :tame_nng.url(listener)
    # A peer without nng: it says that it pushes, and is told by whom.
    "tcp://127.0.0.1:" <> number = to_string(url)

    {:ok, b} =
      :gen_tcp.connect({127, 0, 0, 1}, String.to_integer(number), [:binary, active: false])

    :ok = :gen_tcp.send(b, <<0, "SP", 0, 80::16, 0::16>>)
    {:ok, <<0, "SP", 0, 81::16, 0::16>>} = :gen_tcp.recv(b, 8, 10_000)
    {:ok, silent} = :gen_tcp.listen(0, ip: :loopback)
    {:ok, port} = :inet.port(silent)
    {:ok, c} = :tame_nng.open(:req0, by: by)
    test = self()
    spawn(fn -> send(test, {:dialled, :tame_nng.dial(c, "tcp://127.0.0.1:#{port}", [:wait])}) end)
    {:ok, _} = :gen_tcp.accept(silent)

    closers =
      for socket <- [a, c],
          do: spawn_monitor(fn -> exit(:timer.tc(fn -> :tame_nng.close(socket) end)) end)

    dialled = receive(do: ({:dialled, result} -> result), after: (20_000 -> :nothing))
    {:ok, d} = :tame_nng.open(:pull0, by: by)
    free = until(fn -> match?({:ok, _}, :tame_nng.listen(d, url)) end, 20_000)
    gone = :gen_tcp.recv(b, 0, 20_000) == {:error, :closed}

    closed =
      for {pid, _} <- closers, do: receive(do: ({:DOWN, _, _, ^pid, {us, _}} -> div(us, 1000)))

    %{dialled: dialled, free: free, gone: gone, ms: Enum.max(closed)}
  end

  defp kill_pairs(by, count) do
    Enum.each(1..count, fn n ->
      url = Tame.Nng.Test.Sockets.address(:ipc)
      server = spawn(fn -> pong(by, :rep0, fn s -> {:ok, _} = :tame_nng.listen(s, url) end) end)

      client =
        spawn(fn ->
          pong(by, :req0, fn s ->
            {:ok, _} = :tame_nng.dial(s, url)
            :ok = :tame_nng.send(s, "x")
          end)
        end)

      if rem(n, 3) == 0, do: Process.sleep(:rand.uniform(5))
      for pid <- Enum.shuffle([server, client]), do: Process.exit(pid, :kill)
    end)
  end

  defp pong(by, protocol, begin) do
    {:ok, socket} = :tame_nng.open(protocol, by: by)
    begin.(socket)
    pong(socket)
  end

  defp pong(socket) do
    with {:ok, bytes} <- :tame_nng.recv(socket),
         :ok <- :tame_nng.send(socket, bytes),
         do: pong(socket)
  end

  defp loaded, do: elem(:erl_ddll.loaded_drivers(), 1)

  # The library is loaded anew, and the old code purged, while messages go to and fro.
  def reload(by) do
    {:ok, a} = :tame_nng.open(:pair1, by: by)
    {:ok, b} = :tame_nng.open(:pair1, by: by)
    {:ok, _} = :tame_nng.listen(a, "inproc://reload")
    {:ok, _} = :tame_nng.dial(b, "inproc://reload", [:wait])
    {:ok, context_of} = :tame_nng.open(:req0, by: by)
    {:ok, context} = :tame_nng.context(context_of)
    asks = spawn(fn -> exit(:tame_nng.send(context, "x")) end)
    sender = spawn_link(fn -> for n <- 1..2000, do: :ok = :tame_nng.send(a, <<n::32>>) end)

    for n <- 1..2000 do
      if rem(n, 100) == 0 do
        {:module, _} = :code.load_file(:tame_nng_nif)
        :code.purge(:tame_nng_nif)
      end

      {:ok, <<^n::32>>} = :tame_nng.recv(b, 5000)
    end

    true = Process.alive?(asks) and not Process.alive?(sender)
    for socket <- [a, b, context_of], do: :ok = :tame_nng.close(socket)
    :done
  end
end
