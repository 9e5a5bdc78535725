defmodule Tame.FdScenarios do
  @moduledoc "What `Tame.FdTest` has done in a throw-away emulator: functions that return what it looks at."

  alias Tame.{Await, FdProbe}

  @doc "A read that waits, in a process of its own that tells what came."
  def reader(fd, read \\ &FdProbe.read/2) do
    test = self()
    {pid, _} = spawn_monitor(fn -> send(test, {:read, self(), FdProbe.read_wait(fd, read)}) end)
    true = Await.until(fn -> Process.info(pid, :status) == {:status, :waiting} end)
    pid
  end

  def came(pid), do: receive(do: ({:read, ^pid, what} -> what), after: (10_000 -> :nothing))

  @doc "All readers are served, a byte each, in the order in which they came."
  def many_readers(count) do
    {near, far} = FdProbe.open(:sockets)
    readers = for _ <- 1..count, do: reader(near)

    order =
      for _ <- 1..count do
        1 = FdProbe.write(far, "x", make_ref())
        receive(do: ({:read, pid, 1} -> pid), after: (10_000 -> :nothing))
      end

    {order == readers, FdProbe.close_wait(near), FdProbe.close_wait(far)}
  end

  @doc "Both directions wait at once and are served apart."
  def both_directions do
    {near, far} = FdProbe.open(:sockets)
    fill(near)
    writer = spawn_write(near)
    reader = reader(near)
    1 = FdProbe.write(far, "x", make_ref())
    read = came(reader)
    drain(far)
    receive(do: ({:written, ^writer, bytes} -> {read, bytes}), after: (10_000 -> :nothing))
  end

  defp fill(fd) do
    case FdProbe.write(fd, :binary.copy("x", 65_536), make_ref()) do
      :wait -> :done = FdProbe.cancel(fd, :write)
      bytes when bytes > 0 -> fill(fd)
    end
  end

  defp drain(fd) do
    case FdProbe.read(fd, make_ref()) do
      1 -> drain(fd)
      :wait -> :done = FdProbe.cancel(fd, :read)
    end
  end

  defp spawn_write(fd) do
    test = self()
    pid = spawn_link(fn -> send(test, {:written, self(), write_wait(fd)}) end)
    true = Await.until(fn -> Process.info(pid, :status) == {:status, :waiting} end)
    pid
  end

  defp write_wait(fd) do
    ref = make_ref()

    case FdProbe.write(fd, "y", ref) do
      :wait -> receive(do: ({:tame_fd, ^ref, :ready} -> write_wait(fd)))
      other -> other
    end
  end

  @doc """
  Owners that are killed: what they had was never waited for, armed, fired or cancelled. Half of them are killed at any
  moment after they began, the others when they have opened and waited. The counts of closed and
  destroyed after them.
  """
  def owners_killed(kind, cycles) do
    # What scenarios before this one closed is destroyed with its last term.
    true = Await.until(&closed_are_destroyed/0, 30_000)
    before = FdProbe.descriptors()
    {closed, destroyed, _} = FdProbe.counts()

    test = self()

    for n <- 1..cycles do
      {pid, monitor} =
        spawn_monitor(fn ->
          send(test, :began)
          own(kind, rem(n, 4))
        end)

      receive(do: (:began -> :ok))
      if rem(n, 8) < 4, do: Process.exit(pid, :kill)
      receive(do: ({:DOWN, ^monitor, _, _, _} -> :ok))
    end

    quiet = fn -> FdProbe.descriptors() == before and closed_are_destroyed() end
    true = Await.until(quiet, 30_000)
    {now_closed, now_destroyed, _} = FdProbe.counts()
    {now_closed - closed, now_destroyed - destroyed}
  end

  defp closed_are_destroyed, do: match?({count, count, _}, FdProbe.counts())

  defp own(kind, what) do
    opened = FdProbe.open(kind)
    fd = elem(opened, 0)
    ref = make_ref()

    case what do
      0 -> :ok
      1 -> FdProbe.wait(fd, :read, ref)
      2 -> FdProbe.wait(fd, :write, ref)
      3 -> FdProbe.wait(fd, :read, ref) && FdProbe.cancel(fd, :read)
    end

    Process.exit(self(), :kill)
  end

  @doc """
  A descriptor is closed and another takes its number; whatever could close the first once more happens. Whether the
  other lives, and what a second close answered.
  """
  def guarded(kind, close) do
    {fd, _} = FdProbe.open(kind)
    ref = make_ref()
    :wait = FdProbe.wait(fd, :read, ref)
    number = FdProbe.number(fd)
    first = close(close, fd)
    true = Await.until(fn -> match?({_, _, _}, FdProbe.counts()) and FdProbe.number(fd) == -1 end)
    true = Await.until(fn -> FdProbe.guard(number) == number end)
    second = close(close, fd)
    third = FdProbe.close(fd, make_ref())
    message = receive(do: ({:tame_fd, ^ref, what} -> what), after: (10_000 -> :nothing))
    stray = receive(do: (other -> other), after: (0 -> nil))
    {first, second, third, message in [:ready, :closed], stray, FdProbe.unguard(number)}
  end

  defp close(:process, fd), do: FdProbe.close_wait(fd)
  defp close(:dirty, fd), do: FdProbe.close_wait(fd, &FdProbe.close_dirty/2)
  defp close(:thread, fd), do: FdProbe.thread(fd, 0, self())

  @doc "A close while another call holds the direction: it waits for that, and closes when it has ended."
  def close_while_held do
    {near, far} = FdProbe.open(:sockets)
    number = FdProbe.number(near)
    :go = FdProbe.begin(near, :read)
    queued = reader(near)
    ref = make_ref()
    :wait = FdProbe.close(near, ref)
    told = came(queued)
    refused = FdProbe.begin(near, :read)
    open = File.exists?("/proc/self/fd/#{number}")
    :ok = FdProbe.done(near, :read)
    closed = receive(do: ({:tame_fd, ^ref, what} -> what), after: (10_000 -> :nothing))
    FdProbe.close_wait(far)
    {told, refused, open, closed, File.exists?("/proc/self/fd/#{number}")}
  end

  @doc "/dev/null, which epoll does not take, then other kinds on the number that it had, and again."
  def sticky_numbers(rounds) do
    for _ <- 1..rounds, kind <- [:null, :eventfd, :null, :pipe, :sockets, :timerfd] do
      {fd, other} = FdProbe.open(kind)
      ref = make_ref()
      :wait = FdProbe.wait(fd, :read, ref)

      cond do
        kind == :null ->
          receive(do: ({:tame_fd, ^ref, :ready} -> :ok), after: (10_000 -> raise("null")))

        kind == :eventfd ->
          8 = FdProbe.write(fd, <<1::native-64>>, make_ref())
          receive(do: ({:tame_fd, ^ref, :ready} -> :ok), after: (10_000 -> raise("eventfd")))

        kind == :sockets ->
          1 = FdProbe.write(other, "x", make_ref())
          receive(do: ({:tame_fd, ^ref, :ready} -> :ok), after: (10_000 -> raise("sockets")))

        true ->
          :done = FdProbe.cancel(fd, :read)
      end

      :done = FdProbe.close_wait(fd)
      if other != :none, do: :done = FdProbe.close_wait(other)
    end

    receive(do: (message -> message), after: (0 -> :quiet))
  end

  @doc "Who waits is woken, by a process and by a thread, once for each wait; nobody is when nobody waits."
  def woken do
    {near, far} = FdProbe.open(:sockets)
    refs = for _ <- 1..3, do: make_ref()

    woken =
      for {ref, by} <- Enum.zip(refs, [:process, :thread, :process]) do
        :wait = FdProbe.read(near, ref)
        for _ <- 1..2, do: wake(by, near)
        receive(do: ({:tame_fd, ^ref, what} -> what), after: (10_000 -> :nothing))
      end

    waits = FdProbe.read(near, make_ref())
    cancelled = FdProbe.cancel(near, :read)
    wake(:process, near)
    for fd <- [near, far], do: :done = FdProbe.close_wait(fd)
    wake(:process, near)
    {woken, waits, cancelled, receive(do: (message -> message), after: (0 -> :quiet))}
  end

  defp wake(:process, fd), do: :ok = FdProbe.wake(fd, :read)
  defp wake(:thread, fd), do: :done = FdProbe.thread(fd, 3, self())

  @doc "One process re-arms many times, then another: no message is lost, none comes twice."
  def rearm(times) do
    {fd, _} = FdProbe.open(:eventfd)

    read = fn ->
      for _ <- 1..times do
        reader = self()
        spawn(fn -> FdProbe.write(fd, <<1::native-64>>, make_ref()) && send(reader, :wrote) end)
        8 = FdProbe.read_wait(fd)
        receive(do: (:wrote -> :ok))
      end

      receive(do: (message -> message), after: (0 -> :quiet))
    end

    {read.(), Task.await(Task.async(read), 600_000), FdProbe.close_wait(fd)}
  end

  @doc "Waiters that die, in all places of the line: the others are served."
  def waiters_killed do
    {near, far} = FdProbe.open(:sockets)
    [first, second, third, fourth] = for _ <- 1..4, do: reader(near)
    for pid <- [first, third], do: kill(pid)
    2 = FdProbe.write(far, "xx", make_ref())
    served = [came(second), came(fourth)]
    {_, _, lost} = FdProbe.counts()
    true = FdProbe.close_wait(near) == :done and FdProbe.close_wait(far) == :done
    {served, lost}
  end

  @doc "Of many who wait a third is killed and a third cancels, in any order; the others are served in theirs."
  def crowd(count) do
    {near, far} = FdProbe.open(:sockets)
    readers = for n <- 1..count, do: {reader(near), Enum.at([:stay, :kill, :cancel], rem(n, 3))}

    for {pid, how} <- Enum.shuffle(readers), how != :stay do
      if how == :kill, do: Process.exit(pid, :kill), else: send(pid, :cancel)
    end

    for {pid, :kill} <- readers, do: receive(do: ({:DOWN, _, _, ^pid, _} -> :ok))
    # Its turn may come while it cancels; then it goes on to the next.
    cancelled = for {pid, :cancel} <- readers, do: came(pid) in [:cancelled, {:late, :ready}]
    stay = for {pid, :stay} <- readers, do: pid

    served =
      for _ <- stay do
        1 = FdProbe.write(far, "x", make_ref())
        receive(do: ({:read, pid, 1} -> pid), after: (10_000 -> :nothing))
      end

    {served == stay, Enum.all?(cancelled), FdProbe.close_wait(near), FdProbe.close_wait(far)}
  end

  @doc "A process that asks again while others are first keeps its place, and is told by its last reference."
  def asks_again do
    {near, far} = FdProbe.open(:sockets)
    :go = FdProbe.begin(near, :read)
    test = self()

    again =
      spawn_link(fn ->
        [first, second] = [make_ref(), make_ref()]
        answers = [FdProbe.read(near, first), FdProbe.read(near, second)]
        send(test, {:queued, answers})
        told = receive(do: ({:tame_fd, ref, :ready} -> ref), after: (10_000 -> :nothing))
        send(test, {:read, self(), {told == second, FdProbe.read(near, make_ref())}})
      end)

    answers = receive(do: ({:queued, answers} -> answers))
    other = reader(near)
    2 = FdProbe.write(far, "xx", make_ref())
    :ok = FdProbe.done(near, :read)
    {answers, came(again), came(other)}
  end

  defp kill(pid) do
    Process.exit(pid, :kill)
    receive(do: ({:DOWN, _, _, ^pid, _} -> :ok))
  end

  @doc "A turn that was told to a process that dies before it takes it goes on to the next."
  def told_and_killed do
    {near, far} = FdProbe.open(:sockets)
    :go = FdProbe.begin(near, :read)
    test = self()

    # Queued, and deaf to its turn.
    {deaf, _} =
      spawn_monitor(fn ->
        send(test, {:queued, FdProbe.read(near, make_ref())})
        Process.sleep(:infinity)
      end)

    :wait = receive(do: ({:queued, answer} -> answer))
    waits = reader(near)
    :ok = FdProbe.done(near, :read)
    1 = FdProbe.write(far, "x", make_ref())
    nothing = receive(do: ({:read, ^waits, _} -> :too_early), after: (50 -> :in_line))
    kill(deaf)
    {nothing, came(waits)}
  end

  @doc "What own threads may do, and what they are refused."
  def threads do
    {near, far} = FdProbe.open(:sockets)
    turn = FdProbe.thread(near, 1, self())
    waits = reader(near)
    busy = FdProbe.thread(near, 1, self())
    taken = FdProbe.thread(near, 2, waits)
    free = FdProbe.thread(near, 1, self())
    wait = FdProbe.thread(near, 4, self())
    closed = FdProbe.thread(near, 0, self())
    # Until here: without a term the other end closes.
    _ = FdProbe.close_wait(far)
    {turn, busy, taken, free, wait, closed, FdProbe.thread(near, 1, self())}
  end

  @doc "Owners: who may give, to whom, and what the deaths of the old and the new one do."
  def owners do
    {fd, _} = FdProbe.open(:eventfd)
    other = spawn(fn -> Process.sleep(:infinity) end)
    {dead, monitor} = spawn_monitor(fn -> :ok end)
    receive(do: ({:DOWN, ^monitor, _, _, _} -> :ok))
    not_owner = Task.await(Task.async(fn -> FdProbe.give(fd, other) end))
    no_process = FdProbe.give(fd, dead)

    # The old owner waits, gives and dies: its wait is gone, the descriptor is not.
    test = self()

    {old, _} =
      spawn_monitor(fn ->
        {near, far} = FdProbe.open(:sockets)
        :wait = FdProbe.read(near, make_ref())
        send(test, {:made, near, far, FdProbe.give(near, test), FdProbe.give(far, test)})
        Process.sleep(:infinity)
      end)

    {near, far} = receive(do: ({:made, near, far, :done, :done} -> {near, far}))
    waits = reader(near)
    kill(old)
    1 = FdProbe.write(far, "x", make_ref())
    {not_owner, no_process, came(waits), FdProbe.give(fd, other), kill_and_closed(other, fd)}
  end

  defp kill_and_closed(pid, fd) do
    Process.exit(pid, :kill)
    Await.until(fn -> FdProbe.number(fd) == -1 end)
  end

  @doc "The library is replaced while descriptors are armed and owned; they move, work, and are closed once."
  def upgraded(library) do
    before = FdProbe.descriptors()
    {near, far} = FdProbe.open(:sockets)
    waits = reader(near)
    owner = owning(:eventfd)
    :os.putenv(~c"TAME_FD_LIBRARY", String.to_charlist(library))
    {:module, _} = :code.load_file(FdProbe)
    1 = FdProbe.write(far, "x", make_ref())
    # The reader is in old code, which it leaves before that is purged.
    served = came(waits)
    purged = :code.purge(FdProbe)
    Process.exit(owner, :kill)
    closed = FdProbe.close_wait(near)
    FdProbe.close_wait(far)
    {served, purged, closed, Await.until(fn -> FdProbe.descriptors() == before end)}
  end

  @doc "The module is deleted and purged; what was open is closed by its owner's death all the same."
  def purged do
    before = FdProbe.descriptors()
    owners = for kind <- [:eventfd, :null, :sockets, :pipe], do: owning(kind)
    true = :code.delete(FdProbe)
    _ = :code.purge(FdProbe)
    still = length(File.ls!("/proc/self/fd")) - before
    for owner <- owners, do: Process.exit(owner, :kill)
    {still, Await.until(fn -> length(File.ls!("/proc/self/fd")) == before end)}
  end

  # A process that owns an armed descriptor, and is in none of our code.
  defp owning(kind) do
    test = self()

    pid =
      spawn(fn ->
        opened = Tuple.to_list(FdProbe.open(kind))
        for fd <- opened, fd != :none, do: FdProbe.wait(fd, :read, make_ref())
        send(test, {:owns, self()})
        :erlang.hibernate(:timer, :sleep, [:infinity])
      end)

    receive(do: ({:owns, ^pid} -> pid))
  end

  @doc "Ends the emulator while all kinds are armed, held and owned."
  def halt(how) do
    for kind <- [:eventfd, :null, :sockets, :pipe, :timerfd], do: owning(kind)
    {near, _} = FdProbe.open(:sockets)
    :go = FdProbe.begin(near, :read)
    _ = reader(near)
    if how == :halt, do: System.halt(0), else: :init.stop()
    :ok
  end

  @doc """
  Many processes at both ends of many descriptors, killed, cancelled and closed at any moment. Nothing is left: no
  descriptor, no process that waits. Which happens first is the machine's.
  """
  def storm(rounds) do
    before = FdProbe.descriptors()
    {closed, _, _} = FdProbe.counts()
    for _ <- 1..rounds, do: storm_round()

    # The probe counts a descriptor after it has closed it.
    quiet = fn ->
      {now, _, _} = FdProbe.counts()
      FdProbe.descriptors() == before and now - closed >= 2 * rounds
    end

    quiet = Await.until(quiet, 30_000)
    {now, _, _} = FdProbe.counts()
    {quiet, now - closed}
  end

  defp storm_round do
    test = self()

    {owner, _} =
      spawn_monitor(fn ->
        send(test, {:fds, FdProbe.open(:sockets)})
        Process.sleep(:infinity)
      end)

    {near, far} = receive(do: ({:fds, fds} -> fds))

    readers =
      for n <- 1..8 do
        read = if rem(n, 2) == 0, do: &FdProbe.read/2, else: &FdProbe.read_dirty/2
        spawn_monitor(fn -> FdProbe.read_wait(near, read) end)
      end

    {writer, _} = spawn_monitor(fn -> writes(far) end)
    for {pid, _} <- Enum.take_random(readers, 3), do: send(pid, :cancel)
    for {pid, _} <- Enum.take_random(readers, 2), do: Process.exit(pid, :kill)

    case :rand.uniform(4) do
      1 -> Process.exit(owner, :kill)
      2 -> FdProbe.close_wait(near)
      3 -> FdProbe.thread(near, 0, self())
      4 -> FdProbe.close_wait(near, &FdProbe.close_dirty/2)
    end

    # Everybody hears: nobody waits for ever.
    for {pid, monitor} <- readers do
      receive do
        {:DOWN, ^monitor, _, _, _} -> :ok
      after
        20_000 -> raise "a reader waits for ever: #{inspect(Process.info(pid))}"
      end
    end

    for pid <- [owner, writer], do: Process.exit(pid, :kill)
    flush()
  end

  defp writes(far) do
    case FdProbe.write(far, "xx", make_ref()) do
      2 -> writes(far)
      _ -> :ok
    end
  end

  defp flush do
    receive do
      _ -> flush()
    after
      0 -> :ok
    end
  end
end
