defmodule Tame.RingScenarios do
  @moduledoc "What becomes of rings in a throw-away emulator, as the emulator may not survive, or is measured whole."

  alias Tame.{Await, OsThreads}
  alias Tame.Test.{RingHost, RingTerms}

  @doc """
  Loads the ring's NIF again, `rounds` times, each from a file of its own, while callers spin, wait for a slot and
  wait; then unloads it. Returns how those calls ended, each once, what a call on the ring came to that was open all the time,
  and whether the reader threads are gone.
  """
  def upgrade(rounds) do
    threads = OsThreads.count()
    RingHost.load_from_copy(0)
    {:module, :tame_ring_nif} = :code.load_file(:tame_ring_nif)
    first = RingHost.start_ring()

    results =
      for round <- 1..rounds do
        host = RingHost.start_ring(~w(slots=4 workers=2))
        callers = callers(host)
        true = Await.until(fn -> :tame_ring.info(host.ring).in_line > 0 end)

        RingHost.load_from_copy(round)
        :code.purge(:tame_ring_nif)
        {:module, :tame_ring_nif} = :code.load_file(:tame_ring_nif)
        # No process may be left in the code that goes: else it dies with it.
        true = Await.until(fn -> :code.soft_purge(:tame_ring_nif) end)
        ends = Enum.map(callers, &ending/1)
        old = {RingHost.call(first, :echo, [round]), RingHost.call(first, :slow_echo, [round])}
        RingHost.stop(host)
        {round, old, ends}
      end

    RingHost.stop(first)
    :code.delete(:tame_ring_nif)
    :code.purge(:tame_ring_nif)
    # References to rings lie about in heaps.
    Enum.each(Process.list(), &:erlang.garbage_collect/1)
    {results, Await.until(fn -> OsThreads.count() <= threads end, 20_000)}
  end

  @doc "Loads a ring's NIF of another layout, from `folder`, while a caller waits: what it, and what every function, says then."
  def other_layout(folder) do
    host = RingHost.start_ring(~w(slots=1))
    waits = Task.async(fn -> RingHost.call(host, :until_cancelled, []) end)
    true = Await.until(fn -> :tame_ring.info(host.ring).slots_in_use == 1 end)
    in_line = Task.async(fn -> RingHost.call(host, :echo, [1]) end)
    true = Await.until(fn -> :tame_ring.info(host.ring).in_line == 1 end)
    true = Await.until(fn -> :tame_ring.info(host.ring).waits == 1 end)
    :os.putenv(~c"TAME_NATIVE_DIR", folder)
    {:module, :tame_ring_nif} = :code.load_file(:tame_ring_nif)

    rest =
      {RingHost.call(host, :echo, [1]), :tame_ring.close(host.ring, :any),
       :tame_ring.leases(host.ring, 1), :tame_ring.used(host.ring, [1]),
       :tame_ring.hold(host.ring, [make_ref()]), :tame_ring.abandoned(host.ring, 0),
       :tame_ring.info(host.ring).slots, :tame_ring.pulse(host.ring),
       :tame_ring.choose({host.ring})}

    {Task.await(waits), Task.await(in_line), rest}
  end

  @doc "Halts the emulator under calls that spin, wait for a slot and wait for a reply."
  def halt do
    host = RingHost.start_ring(~w(slots=4 workers=2))
    callers(host)
    true = Await.until(fn -> :tame_ring.info(host.ring).in_line > 0 end)
    :erlang.halt(0)
  end

  @doc """
  Callers that are killed while they poll, `times`, one after another on a ring of few slots, with a call before and after
  each, so that they poll in company; in an emulator with one scheduler, so that a process that runs finds the caller between
  two looks at its reply. Returns how many were not in receive when they were killed, how long all that took, in ms, and
  whether all slots are free at last.
  """
  def killed_while_polling(times) do
    host = RingHost.start_ring(~w(slots=4 workers=8))
    start = System.monotonic_time(:millisecond)

    polled =
      for number <- 1..times do
        %{calls: calls, waits: waits} = :tame_ring.info(host.ring)
        pid = spawn(fn -> RingHost.call(host, :until_cancelled, []) end)
        :ok = yield_until(fn -> :tame_ring.info(host.ring).calls > calls end)
        polls? = :tame_ring.info(host.ring).waits == waits
        Process.exit(pid, :kill)
        {:value, ^number} = RingHost.call(host, :echo, [number])
        polls?
      end

    ms = System.monotonic_time(:millisecond) - start
    free? = Await.until(fn -> :tame_ring.info(host.ring).slots_in_use == 0 end)
    RingHost.stop(host)
    {Enum.count(polled, & &1), ms, free?}
  end

  defp yield_until(condition) do
    true = :erlang.yield()
    if condition.(), do: :ok, else: yield_until(condition)
  end

  @doc """
  `callers` processes call a function of 2 µs at the same time, in an emulator with one scheduler. Returns which part of
  the replies came by polling, of those that came by polling or by spinning in ten rounds: the first ten (of up to 300) of which
  `enough` holds, because on a busy machine all callers wait in receive for some rounds, or spin after bad turns. One alone may spin
  for longer than a call is ever believed to take (0.8 ms), so it has no other cause to poll.
  """
  def polled(callers, enough) do
    host = RingHost.start_ring(["workers=1"], %{spin_us: 1000})
    polled = polled(host, callers, enough, 1)
    RingHost.stop(host)
    polled
  end

  defp polled(host, callers, enough, ten) do
    before = :tame_ring.info(host.ring)

    for _ <- 1..10 do
      fn -> for n <- 1..200, do: {:value, ^n} = RingHost.call(host, :spin_echo, [n]) end
      |> List.duplicate(callers)
      |> Enum.map(&Task.async/1)
      |> Task.await_many(:infinity)
    end

    later = :tame_ring.info(host.ring)
    [polls, spins] = for name <- [:polls_paid, :spins_paid], do: later[name] - before[name]
    polled = polls / max(1, polls + spins)

    if ten == 30 or enough?(polled, enough),
      do: polled,
      else: polled(host, callers, enough, ten + 1)
  end

  defp enough?(polled, {:above, part}), do: polled > part
  defp enough?(polled, {:below, part}), do: polled < part

  @doc "Maps of every size and kind of key, each `times` times, by callers that spin, that wait, and that wait long."
  def maps(times) do
    hosts = for us <- [0, 20], do: RingHost.start_ring(["workers=2"], %{spin_us: us})

    tasks =
      for host <- hosts, caller <- 1..3 do
        Task.async(fn ->
          for {_, term} <- RingTerms.maps(),
              _ <- 1..if(map_size(term) > 2700, do: 1, else: times) do
            name = if caller == 3, do: :echo_list, else: :echo
            {:value, back} = RingHost.call(host, name, [term])
            true = back == if(name == :echo_list, do: [term], else: term)
          end
        end)
      end

    for host <- hosts, size <- [33, 129, 160, 100_000] do
      map = RingTerms.map(size, :small)
      {:value, ^map} = RingHost.call(host, :slow_echo, [map])
    end

    Task.await_many(tasks, 300_000)
    Enum.each(hosts, &RingHost.stop/1)
    :alive
  end

  @doc """
  Receives replies of every kind that is large. Returns for each how long, in ms, the caller has held a scheduler at the
  longest, by the emulator's own long_schedule without the time that threads waited for a core, in the best of five calls:
  what the machine adds hits some of them, what the ring does hits all. The first row is that machine: a process that only
  counts.
  """
  def long_schedules do
    host = RingHost.start_ring(["workers=1"], %{spin_us: 0})

    terms = [
      {:map_of_integers, RingTerms.map(100_000, :small)},
      {:map_of_binaries, RingTerms.map(100_000, :binary)},
      {:map_of_1500, RingTerms.map(1500, :binary)},
      {:small_maps, List.duplicate(%{a: 1, b: 2, c: 3}, 100_000)},
      {:list, Enum.to_list(1..1_000_000)},
      {:strings, List.duplicate(~c"abcdefgh", 100_000)},
      {:tuple, :erlang.make_tuple(1_000_000, [])},
      {:binary, :binary.copy("x", 100_000_000)},
      {:binaries, List.duplicate(:binary.copy("y", 1_000_000), 30)}
    ]

    calls =
      for {name, term} <- terms, bytes = :erlang.term_to_binary(term) do
        {name, fn -> {:value, _} = RingHost.call(host, :raw, [bytes]) end}
      end

    for {name, fun} <- [{:machine, fn -> count(20_000_000) end} | calls] do
      {name, Enum.min(for _ <- 1..5, do: longest_of(fun))}
    end
  end

  defp count(0), do: :ok
  defp count(n), do: count(n - 1)

  defp longest_of(fun) do
    {pid, monitor} =
      spawn_monitor(fn ->
        receive do
          :go -> fun.()
        end
      end)

    before = waited_ms()
    :erlang.system_monitor(self(), [{:long_schedule, 1}])
    send(pid, :go)

    receive do
      {:DOWN, ^monitor, :process, ^pid, :normal} -> :ok
    end

    :erlang.system_monitor(:undefined)
    max(0, longest(pid, 0) - (waited_ms() - before))
  end

  # For how long threads of this VM were ready to run while others had the cores, as Linux counts it. The wall clock of
  # long_schedule holds it too.
  defp waited_ms do
    waited =
      for file <- Path.wildcard("/proc/self/task/*/schedstat"),
          {:ok, text} <- [File.read(file)],
          [_, ns | _] <- [String.split(text)],
          do: String.to_integer(ns)

    div(Enum.sum(waited), 1_000_000)
  end

  defp longest(pid, ms) do
    receive do
      {:monitor, ^pid, :long_schedule, info} -> longest(pid, max(ms, info[:timeout]))
      {:monitor, _, :long_schedule, _} -> longest(pid, ms)
    after
      0 -> ms
    end
  end

  @doc """
  Calls hosts that lie, each by a generator of its own seed from this `seed` on, from four processes; each for a second:
  later most slots of a host belong to calls that it will not answer. Returns how many calls that were, by how many
  bytes the emulator has grown meanwhile, and what a call on each closed ring came to.
  """
  def hostile(seed, hosts) do
    # First until the memory that such calls need at a time is there.
    for number <- 1..5, do: endure_liar(seed - number)
    before = memory()
    {calls, closed} = Enum.unzip(for number <- 1..hosts, do: endure_liar(seed + number))
    %{calls: Enum.sum(calls), grown: memory() - before, closed: Enum.uniq(closed)}
  end

  defp endure_liar(seed) do
    host = liar(~w(slots=16 reply_bytes=1048576 hostile=#{abs(seed)}), 10)
    calls = endure(host, System.monotonic_time(:millisecond) + 1000)
    :ok = :tame_ring.close(host.ring, :hostile)
    closed = RingHost.call(host, :echo, [1])
    RingHost.stop(host)
    {calls, closed}
  end

  # One that scribbles over its geometry before the ring is open is refused, rightly; this is about later.
  defp liar(args, tries) when tries > 0 do
    host = RingHost.start(args)

    case :tame_ring.open(host.os_pid, host.fd, %{}) do
      {:ok, ring} ->
        Map.put(host, :ring, ring)

      {:error, :not_a_ring} ->
        RingHost.stop(host)
        liar(args, tries - 1)
    end
  end

  defp endure(host, until) do
    tasks = for _ <- 1..4, do: Task.async(fn -> endure(host, until, 0) end)
    tasks |> Task.await_many(:infinity) |> Enum.sum()
  end

  # As many calls as fit; large arguments and proxies now and then.
  defp endure(host, until, calls) do
    if System.monotonic_time(:millisecond) >= until do
      calls
    else
      argument = if rem(calls, 50) == 0, do: :binary.copy("x", 100_000), else: calls
      _ = RingHost.call(host, :echo, [argument], 100)
      if rem(calls, 100) == 0, do: :tame_ring.leases(host.ring, 1)
      endure(host, until, calls + 1)
    end
  end

  # With +Mea min, as sanitizers want it, the emulator does not know.
  defp memory do
    Enum.each(Process.list(), &:erlang.garbage_collect/1)
    :erlang.memory(:total)
  rescue
    ErlangError -> 0
  end

  # Some whose calls are short and many, some whose calls are slow: more than there are slots.
  defp callers(host) do
    for number <- 1..12 do
      name = if rem(number, 2) == 0, do: :slow_echo, else: :echo
      times = if name == :echo, do: 2000, else: 4

      spawn_monitor(fn -> exit(outcome(fn -> calls(host, name, times, number) end)) end)
    end
  end

  defp calls(host, name, times, number) do
    for turn <- 1..times do
      term = {turn, List.duplicate(number, 100)}
      {:value, ^term} = RingHost.call(host, name, [term])
    end

    :done
  end

  defp ending({pid, monitor}) do
    receive do
      {:DOWN, ^monitor, :process, ^pid, reason} -> reason
    end
  end

  defp outcome(fun) do
    fun.()
  catch
    kind, reason -> {kind, reason}
  end
end
