defmodule Tame.FdModel do
  @moduledoc """
  Random sequences on both ends of a socket pair, beside a model of who waits and what must come.

  Readers read a byte each from one end, in their order; what is written to the other end wakes as many. A command is
  `{:read, reader}`, `{:read_dirty, reader}`, `{:cancel, reader}`, `{:kill, reader}`, `{:give, reader}`, `{:write, bytes}`,
  `{:wake, how}`, `:far_close`, `{:close, how}`, `:kill_owner`. After each of them each reader has told exactly what the model says, and
  in the end everything is closed, once.
  """

  alias Tame.{Await, FdProbe}

  @doc "`true`, or what was wrong."
  def run(commands) do
    before = FdProbe.descriptors()
    {closed, _, _} = FdProbe.counts()
    test = self()
    owner = spawn(fn -> owner(test) end)
    send(owner, {test, :open})
    {near, far} = receive(do: ({^owner, fds} -> fds))

    state = %{
      near: near,
      far: far,
      owner: owner,
      readers: %{},
      waiting: [],
      bytes: 0,
      ended: false,
      open: true
    }

    number = FdProbe.number(near)

    case steps(commands, state) do
      {:wrong, what} -> what
      state -> finish(state, before, closed, number)
    end
  end

  defp finish(state, before, closed, number) do
    with %{} = state <- step({:close, :process}, state),
         true <- Await.until(fn -> FdProbe.number(state.near) == -1 end),
         ^number <- FdProbe.guard(number),
         # What could still close the number: another close, the owner's death, the last term.
         :closed <- FdProbe.close_wait(state.near),
         _ = Process.exit(state.owner, :kill),
         for({_, {pid, monitor}} <- state.readers, do: end_reader(pid, monitor)),
         _ = FdProbe.close_wait(state.far),
         true <- Await.until(fn -> elem(FdProbe.counts(), 0) == closed + 2 end),
         _ = :erlang.garbage_collect(),
         true <- FdProbe.unguard(number),
         true <- Await.until(fn -> FdProbe.descriptors() == before end),
         nil <- stray() do
      true
    else
      {:wrong, what} -> what
      other -> {:at_the_end, other, FdProbe.counts(), closed}
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
      settle(%{state | waiting: state.waiting ++ [reader]})
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
      # EPIPE, ECONNRESET: the other end is closed.
      error when error in [-32, -104] and not state.open -> state
      :closed when state.ended -> state
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

  defp step(:far_close, state) do
    _ = FdProbe.close_wait(state.far)
    settle(%{state | ended: true})
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
