defmodule Tame.FdModel do
  @moduledoc """
  Random sequences on both ends of a socket pair, beside a model of who waits and what must come.

  Readers read a byte each from one end, in their order; what is written to the other end wakes as many. A command is
  `{:read, reader}`, `{:read_dirty, reader}`, `{:cancel, reader}`, `{:kill, reader}`, `{:give, reader}`, `{:write, bytes}`,
  `{:wake, how}`, `:half_close` (of the far end), `:far_close`, `:reset`, `{:close, how}`, `:kill_owner`, `:upgrade` (to the next of the
  libraries), `:purge` (of the code before that), `:exhaust` and `:relieve` (the process gets no descriptor meanwhile). After
  each of them each reader has told exactly what the model says, and in the end everything is closed, once.
  """

  alias Tame.{Await, FdProbe}

  @doc "`true`, or what was wrong."
  def run(commands, libraries) do
    before = FdProbe.descriptors()
    state = begin(libraries)
    number = FdProbe.number(state.near)

    case steps(commands, state) do
      {:wrong, what} -> what
      state -> finish(state, before, number)
    end
  after
    FdProbe.relieve()
  end

  @doc "Ends the emulator after the commands, by `:halt` or by `:stop`."
  def run_and_end(commands, libraries, how) do
    case steps(commands, begin(libraries)) do
      {:wrong, what} -> what
      _ -> if how == :halt, do: System.halt(0), else: :init.stop()
    end
  end

  defp begin(libraries) do
    load()
    test = self()
    owner = spawn(fn -> owner(test) end)
    send(owner, {test, :open})
    {near, far} = receive(do: ({^owner, fds} -> fds))

    %{
      near: near,
      far: far,
      owner: owner,
      readers: %{},
      waiting: [],
      bytes: 0,
      ended: false,
      far_closed: false,
      reset: false,
      open: true,
      libraries: libraries,
      # Who waits in the code before the last upgrade.
      old: [],
      # Closed of ours by the libraries before, and what this one had closed at first.
      closed: 0,
      base: elem(FdProbe.counts(), 0)
    }
  end

  # No code can be loaded where there is no descriptor, and which modules a protocol asks for differs by version.
  defp load do
    languages =
      for application <- [:kernel, :stdlib, :elixir], do: Application.spec(application, :modules)

    :ok = :code.ensure_modules_loaded([Await | Enum.concat(languages)])
  end

  defp closed(state), do: state.closed + elem(FdProbe.counts(), 0) - state.base

  defp finish(state, before, number) do
    :ok = FdProbe.relieve()

    with %{} = state <- step({:close, :process}, state),
         true <- Await.until(fn -> FdProbe.number(state.near) == -1 end),
         # The VM closes it, and maybe a little later.
         true <- Await.until(fn -> FdProbe.guard(number) == number end),
         # What could still close the number: another close, the owner's death, the last term.
         :closed <- FdProbe.close_wait(state.near),
         _ = Process.exit(state.owner, :kill),
         for({_, {pid, monitor}} <- state.readers, do: end_reader(pid, monitor)),
         _ = FdProbe.close_wait(state.far),
         true <- Await.until(fn -> closed(state) == 2 end),
         _ = :erlang.garbage_collect(),
         true <- FdProbe.unguard(number),
         true <- Await.until(fn -> FdProbe.descriptors() == before end),
         nil <- stray() do
      true
    else
      {:wrong, what} -> what
      other -> {:at_the_end, other, closed(state)}
    end
  end

  defp end_reader(pid, monitor) do
    Process.demonitor(monitor, [:flush])
    Process.exit(pid, :kill)
  end

  defp stray, do: receive(do: (message -> {:stray, message}), after: (0 -> nil))

  defp steps([], state), do: state

  defp steps([command | more], state) do
    case step(command, state) do
      %{} = state -> steps(more, state)
      {:wrong, what} -> {:wrong, {command, what}}
    end
  end

  # Each returns the state that the model has then, after all that must have come has come.
  defp step({read, reader}, state) when read in [:read, :read_dirty] do
    if reader in state.waiting do
      state
    else
      state = reader(reader, state)
      pid = pid(state, reader)
      send(pid, {read, state.near})
      # It stands in the line, or is served already.
      receive(do: ({^pid, :began} -> :ok))
      settle(%{state | waiting: state.waiting ++ [reader], old: state.old -- [reader]})
    end
  end

  defp step({:cancel, reader}, state) do
    if reader in state.waiting do
      send(pid(state, reader), :cancel)
      expect(reader, :cancelled, %{state | waiting: state.waiting -- [reader]})
    else
      state
    end
  end

  defp step({:kill, reader}, state) do
    case state.readers do
      %{^reader => {pid, monitor}} ->
        Process.exit(pid, :kill)
        receive(do: ({:DOWN, ^monitor, _, _, _} -> :ok))
        state = %{state | readers: Map.delete(state.readers, reader)}
        state = %{state | waiting: state.waiting -- [reader]}
        if pid == state.owner, do: owner_died(state), else: state

      %{} ->
        state
    end
  end

  defp step({:give, reader}, %{open: true} = state) do
    state = reader(reader, state)
    to = pid(state, reader)
    send(state.owner, {self(), {:give, state.near, to}})
    owner = state.owner

    receive do
      {^owner, :done} -> %{state | owner: to}
      {^owner, other} -> {:wrong, {:give, other}}
    end
  end

  defp step({:give, _}, state), do: state

  defp step({:write, bytes}, state) do
    case FdProbe.write(state.far, :binary.copy("x", bytes), make_ref()) do
      ^bytes -> settle(%{state | bytes: state.bytes + bytes})
      # EPIPE, ECONNRESET: the other end is closed, or this one's half is.
      error when error in [-32, -104] and (state.ended or not state.open) -> state
      :closed when state.far_closed -> state
      other -> {:wrong, {:write, other}}
    end
  end

  # Who waits tries in vain, and keeps its place.
  defp step({:wake, how}, state) do
    case how do
      :process -> :ok = FdProbe.wake(state.near, :read)
      :thread -> :done = FdProbe.thread(state.near, 3, self())
    end

    state
  end

  defp step(:half_close, %{far_closed: true} = state), do: state

  defp step(:half_close, state) do
    case FdProbe.half_close(state.far) do
      0 -> settle(%{state | ended: true})
      # ENOTCONN: the near end is closed.
      -107 when not state.open -> state
      other -> {:wrong, {:half_close, other}}
    end
  end

  defp step(:far_close, state) do
    _ = FdProbe.close_wait(state.far)
    settle(%{state | ended: true, far_closed: true})
  end

  # The system resets where bytes are unread at the end that closes.
  defp step(:reset, %{open: true, far_closed: false} = state) do
    1 = FdProbe.write(state.near, "x", make_ref())
    :done = FdProbe.close_wait(state.far)
    settle(%{state | ended: true, far_closed: true, reset: true})
  end

  defp step(:reset, state), do: state

  defp step(:exhaust, state) do
    _ = FdProbe.exhaust()
    state
  end

  defp step(:relieve, state) do
    :ok = FdProbe.relieve()
    state
  end

  defp step(:upgrade, state) do
    :ok = FdProbe.relieve()
    expected = Enum.count([not state.open, state.far_closed], & &1)
    true = Await.until(fn -> closed(state) == expected end)
    if :code.soft_purge(FdProbe), do: upgraded(state), else: state
  end

  # Who would take others with it is spared: they would be told, or killed, as it happens.
  defp step(:purge, state) do
    killed = for reader <- state.old, reader in state.waiting, do: {reader, state.readers[reader]}

    if Enum.any?(killed, fn {_, {pid, _}} -> pid == state.owner end) do
      state
    else
      _ = :code.purge(FdProbe)

      for {_, {_, monitor}} <- killed, do: receive(do: ({:DOWN, ^monitor, _, _, :killed} -> :ok))
      gone = for {reader, _} <- killed, do: reader
      %{state | readers: Map.drop(state.readers, gone), waiting: state.waiting -- gone, old: []}
    end
  end

  defp step({:close, how}, state) do
    expected = if state.open, do: :done, else: :closed

    case close(how, state.near) do
      ^expected -> settle(%{state | open: false})
      other -> {:wrong, {:close, other, expected}}
    end
  end

  defp step(:kill_owner, state) do
    case Enum.find(state.readers, fn {_, {pid, _}} -> pid == state.owner end) do
      {reader, _} ->
        step({:kill, reader}, state)

      nil ->
        monitor = Process.monitor(state.owner)
        Process.exit(state.owner, :kill)
        receive(do: ({:DOWN, ^monitor, _, _, _} -> :ok))
        owner_died(state)
    end
  end

  defp upgraded(%{libraries: [next | more]} = state) do
    closed = closed(state)
    true = :os.putenv(~c"TAME_FD_LIBRARY", String.to_charlist(next))
    {:module, _} = :code.load_file(FdProbe)
    base = elem(FdProbe.counts(), 0)
    %{state | libraries: more ++ [next], old: state.waiting, closed: closed, base: base}
  end

  defp owner_died(state) do
    if Await.until(fn -> FdProbe.number(state.near) == -1 end),
      do: settle(%{state | open: false}),
      else: {:wrong, :still_open}
  end

  defp close(:process, fd), do: FdProbe.close_wait(fd)
  defp close(:dirty, fd), do: FdProbe.close_wait(fd, &FdProbe.close_dirty/2)
  defp close(:thread, fd), do: FdProbe.thread(fd, 0, self())

  # Who must have been served, in their order, is.
  defp settle(%{waiting: []} = state), do: state

  defp settle(%{waiting: [first | others]} = state) do
    served = %{state | waiting: others}

    cond do
      not state.open -> next(expect(first, :closed, served))
      state.bytes > 0 -> next(expect(first, 1, %{served | bytes: state.bytes - 1}))
      # ECONNRESET, once.
      state.reset -> next(expect(first, -104, %{served | reset: false}))
      state.ended -> next(expect(first, :end, served))
      true -> state
    end
  end

  defp next(%{} = state), do: settle(state)
  defp next(wrong), do: wrong

  defp expect(reader, what, state) do
    pid = pid(state, reader)

    receive do
      {^pid, ^what} -> state
      {^pid, other} -> {:wrong, {reader, other, :instead_of, what}}
    after
      10_000 -> {:wrong, {reader, :nothing, :instead_of, what}}
    end
  end

  defp pid(state, reader), do: elem(state.readers[reader], 0)

  defp reader(reader, state) do
    test = self()

    readers =
      Map.put_new_lazy(state.readers, reader, fn -> spawn_monitor(fn -> reads(test) end) end)

    %{state | readers: readers}
  end

  # A process that reads when it is told, and gives away what it owns.
  defp reads(test) do
    receive do
      {:read, fd} -> read(test, fd, &FdProbe.read/2)
      {:read_dirty, fd} -> read(test, fd, &FdProbe.read_dirty/2)
      {from, {:give, fd, to}} -> send(from, {self(), FdProbe.give(fd, to)})
      :cancel -> :ok
    end

    reads(test)
  end

  defp read(test, fd, read) do
    Process.delete(:began)

    told = fn fd, ref ->
      answer = read.(fd, ref)
      if Process.put(:began, true) == nil, do: send(test, {self(), :began})
      answer
    end

    send(test, {self(), FdProbe.read_wait(fd, told)})
  end

  defp owner(test) do
    receive do
      {^test, :open} ->
        {near, far} = FdProbe.open(:sockets)
        send(test, {self(), {near, far}})
        :done = FdProbe.give(far, test)

      {from, {:give, fd, to}} ->
        send(from, {self(), FdProbe.give(fd, to)})
    end

    owner(test)
  end
end
