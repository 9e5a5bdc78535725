defmodule Bench.Promises.There do
  # Runs in the VM of a part. Times are in µs, sorted.
  @compile {:no_warn_undefined, [:bench_jobs, :bench_spin]}

  def rise(function, rounds) do
    sorted(rounds, fn ->
      for _ <- 1..200, do: :ok = apply(:bench_jobs, function, [1000, 2])
      longest(fn -> apply(:bench_jobs, function, [3000, 2000]) end)
    end)
  end

  # The times of each call in µs, for a process with an empty mailbox and for one with `messages` messages. The two take
  # turns in one VM: a worker on its caller's core makes the calls of both slower.
  def mailbox(messages, turns) do
    parent = self()
    callers = for n <- [0, messages], do: spawn_link(fn -> caller(n, parent) end)

    for call <- [:pool, :async, :by_hand] do
      times =
        for _ <- 1..turns, caller <- Enum.shuffle(callers) do
          send(caller, {:turn, call})
          {caller, receive(do: ({^caller, times} -> times))}
        end

      for caller <- callers, do: Enum.sort(for {^caller, turn} <- times, time <- turn, do: time)
    end
  end

  defp caller(messages, parent) do
    for n <- 1..messages//1, do: send(self(), {:earlier, n})
    turns(parent)
  end

  defp turns(parent) do
    call = receive(do: ({:turn, call} -> call))
    # The first call of a turn finds the caches cold.
    [_ | times] = for _ <- 1..21, do: elem(:timer.tc(fn -> call(call) end), 0)
    send(parent, {self(), times})
    turns(parent)
  end

  defp call(:pool), do: :bench_jobs.ignore_pool([])

  defp call(:async) do
    {:ok, ref} = :tame.async(&:bench_jobs.ignore_pool/1, [[]])
    receive do: ({^ref, answer} -> answer)
  end

  # What an async call is without native code: who waits for an earlier reference reads the whole mailbox.
  defp call(:by_hand) do
    ref = spawned(self())
    receive do: ({^ref, answer} -> answer)
  end

  defp spawned(to) do
    ref = make_ref()
    spawn(fn -> send(to, {ref, :ok}) end)
    ref
  end

  def killed({module, function, args}, order) do
    callers = for _ <- 1..10_000, do: spawn(module, function, args)
    Process.sleep(2000)
    {:ok, neighbour} = :tame_neighbour.start(%{scheduler: 1})
    Process.sleep(100)
    for caller <- in_order(callers, order), do: Process.exit(caller, :kill)
    until_dead(callers)
    Process.sleep(100)
    :tame_histogram.max(:tame_neighbour.stop(neighbour)) / 1000
  end

  defp in_order(callers, :first_first), do: callers
  defp in_order(callers, :last_first), do: Enum.reverse(callers)
  defp in_order(callers, :random), do: Enum.shuffle(callers)

  defp until_dead(callers) do
    if Enum.any?(callers, &Process.alive?/1) do
      Process.sleep(10)
      until_dead(callers)
    end
  end

  def overflow(pause_ms) do
    long = for _ <- 1..2, do: spawn(fn -> :tame_spin.spin(8_000_000) end)
    Process.sleep(500)
    parent = self()

    for _ <- 1..300 do
      spawn_link(fn ->
        {us, :ok} = :timer.tc(:tame_spin, :spin, [2000])
        send(parent, {:took, us})
      end)

      if pause_ms > 0, do: Process.sleep(pause_ms)
    end

    times = for _ <- 1..300, do: receive(do: ({:took, us} -> us))
    for pid <- long, do: Process.exit(pid, :kill)
    Enum.sort(times)
  end

  def ignored(function, length, rounds) do
    list = Enum.to_list(1..length//1)

    alone(fn -> timed(rounds, fn -> apply(:bench_jobs, function, [list]) end) end)
  end

  def large(:aligned, rounds) do
    aligned = :binary.copy(<<7>>, 200_000_000)
    sorted(rounds, fn -> longest(fn -> :tame_exor.exor_yielding(aligned, 1) end) end)
  end

  def large(:unaligned, rounds) do
    size = 200_000_000
    bits = <<1::3, :binary.copy(<<7>>, size)::binary, 0::5>>
    <<_::3, unaligned::binary-size(200_000_000), _::5>> = bits
    sorted(rounds, fn -> longest(fn -> :tame_exor.exor_yielding(unaligned, 1) end) end)
  end

  def large(:list, rounds),
    do: sorted(rounds, fn -> longest(fn -> :bench_jobs.list(1_000_000) end) end)

  # What the list is without native code: the VM makes it, and collects the process that has it.
  def large(:in_erlang, rounds),
    do: sorted(rounds, fn -> longest(fn -> counted(1_000_000, []) end) end)

  defp counted(0, list), do: list
  defp counted(n, list), do: counted(n - 1, [n | list])

  # `beside`: how many jobs of the pool there are besides, without a deadline.
  def deadline({function, args}, beside, rounds) do
    call = fn -> apply(__MODULE__, function, args) end
    jobs = for _ <- 1..beside//1, do: spawn(fn -> :tame_spin.spin_pool(3_600_000_000) end)
    busy = jobs ++ for _ <- 1..200, do: spawn(fn -> busy(1) end)

    late =
      alone(fn ->
        late(call)
        sorted(rounds, fn -> late(call) end)
      end)

    for pid <- busy, do: Process.exit(pid, :kill)
    late
  end

  defp late(call) do
    start = :erlang.monotonic_time(:nanosecond)
    call.()
    (:erlang.monotonic_time(:nanosecond) - start) / 1000 - 10_000
  end

  # The calls whose deadline strikes; what is compared with them wakes by the VM's own timer.
  def awaited, do: receive(after: (10 -> :ok))
  def by_hand, do: :bench_spin.dirty(10_000)

  def with_deadline(function) do
    {:tame, :deadline} =
      try do
        :tame.with(%{deadline_ms: 10}, fn -> apply(:tame_spin, function, [1_000_000]) end)
      catch
        :error, reason -> reason
      end
  end

  defp busy(n), do: busy(rem(n * 7919, 1_000_003))

  def stopped do
    :ok = :tame_spin.spin_inline(1000)
    elem(:timer.tc(:tame_spin, :spin_inline, [500_000]), 0) / 1000
  end

  def fill(function) do
    before = resident_kb()

    {slice, {us, 67_108_864}} =
      longest(fn -> :timer.tc(:bench_jobs, function, [67_108_864]) end, fn {us, value} ->
        {us, byte_size(value)}
      end)

    resident = resident_kb() - before
    {us / 1000, warm(function) / 1000, slice, resident / 1024}
  end

  # The fastest of five more calls: the pages of the one before are at hand.
  defp warm(function) do
    Enum.min(
      for _ <- 1..5 do
        alone(fn -> elem(:timer.tc(:bench_jobs, function, [67_108_864]), 0) end)
      end
    )
  end

  defp resident_kb do
    [kb] = Regex.run(~r/VmRSS:\s+(\d+)/, File.read!("/proc/self/status"), capture: :all_but_first)
    String.to_integer(kb)
  end

  # How long they took all together, in ms, and how late a neighbour woke meanwhile, p99 and max in µs.
  def pools(libraries) do
    calls = [
      fn -> :tame_spin.spin_pool(100_000) end,
      fn -> :bench_jobs.cost_pool(10_000, 2000) end
    ]

    for call <- calls, do: call.()
    {:ok, neighbour} = :tame_neighbour.start(%{scheduler: 1})
    start = :erlang.monotonic_time(:millisecond)
    calls = calls |> Enum.take(libraries) |> Stream.cycle() |> Enum.take(200)

    for {_, monitor} <- Enum.map(calls, &spawn_monitor/1),
        do: receive(do: ({:DOWN, ^monitor, _, _, _} -> :ok))

    took = :erlang.monotonic_time(:millisecond) - start
    late = :tame_neighbour.stop(neighbour)
    {took, :tame_histogram.percentile(late, 99.0) / 1000, :tame_histogram.max(late) / 1000}
  end

  def sums(turns) do
    list = Enum.to_list(1..10_000_000)
    alone(fn -> for f <- turns, do: {f, elem(:timer.tc(:bench_jobs, f, [list]), 0) / 1000} end)
  end

  # ---- how it is measured

  # In µs, after as many that are not timed: a caller that has waited in vain for a worker three times in a row
  # looks for its result at once again only in one call of 64.
  defp timed(rounds, call) do
    for _ <- 1..rounds, do: call.()
    sorted(rounds, fn -> elem(:timer.tc(call), 0) end)
  end

  defp sorted(rounds, fun), do: Enum.sort(for _ <- 1..rounds, do: fun.())

  # In a process whose heap is its own.
  defp alone(fun) do
    parent = self()
    spawn_link(fn -> send(parent, {:alone, fun.()}) end)
    receive do: ({:alone, value} -> value)
  end

  # The longest slice on a regular scheduler, in µs. The process has what the call gave until it is over.
  defp longest(call), do: elem(longest(call, fn _ -> :ok end), 0)

  defp longest(call, told) do
    parent = self()

    pid =
      spawn_link(fn ->
        receive do: (:go -> :ok)
        value = call.()
        send(parent, {:done, told.(value)})
        receive do: ({:end, ^parent} -> value)
      end)

    {:ok, watch} = :tame_slices.start(pid, %{scheduler: 2})
    send(pid, :go)
    said = receive do: ({:done, said} -> said)
    longest = :tame_slices.stop(watch).normal.longest_ns / 1000
    send(pid, {:end, parent})
    {longest, said}
  end
end
