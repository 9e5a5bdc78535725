# What tame.h promises, each beside what it is compared with. Each part runs in a VM of its own, and says how many rounds it made.
#
#   mix run ../bench/promises.exs             all parts, four minutes
#   mix run ../bench/promises.exs rise sum    some of them
#
#   rise       slices of a call whose units cost 1000 times as much as those of the 200 calls before
#   mailbox    a call into the pool, and an async call, with 1,000,000 messages in the caller's mailbox, and with none
#   killed     how late a neighbour wakes while 10,000 callers that wait for the pool are killed; beside it processes that call
#              nothing
#   overflow   300 calls of 2 ms by auto beside two of 8 s: one call every 10 ms, and all at once
#   ignored    how long a call of one short step takes with a list of 3,000,000 elements as argument, and with none
#   large      slices of a call whose input is 200 MB and unaligned, and of one whose result is a list of 1,000,000; beside it
#              a process that makes that list in Erlang
#   deadline   how late a deadline of 10 ms strikes beside 200 busy processes; beside it a process that wakes by `receive after`,
#              without and with a thread that computes, as one does for each call that leaves the schedulers; and a
#              dirty NIF by hand that is over after 10 ms
#   stopped    how long a job of 500 ms takes, inline, when the VM is stopped for 3 s meanwhile
#   pages      an output of 64 MiB on fresh pages (cold) and on pages at hand (warm), against the same in one NIF; what it
#              costs in memory; and how fast this machine gives fresh pages to a program that does nothing else
#   pools      200 jobs of 100 ms in the pool of one library, and in those of two, which have twice as many threads
#   sum        the sum of a list of 10,000,000 in steps, against one uncut NIF

Code.require_file("bench.ex", __DIR__)

{:module, _, beam, _} =
  defmodule Bench.Promises do
    # Runs in the VM of a part. Times are in µs, sorted.

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

Process.put(:beam, beam)

defmodule Bench.Promises.Run do
  import Bench, only: [table: 2, decimals: 2, at: 2, median: 1]

  @parts ~w(rise mailbox killed overflow ignored large deadline stopped pages pools sum)
  @ours Bench.Promises

  def run([]), do: run(@parts)

  def run(parts) do
    Bench.natives()

    for part <- parts do
      IO.puts("\n== #{part}\n")
      part(part)
    end
  end

  defp part("rise") do
    rows =
      for function <- [:cost, :cost_yielding] do
        sorted = asked(:rise, [function, 20])
        [to_string(function) | figures(sorted, [0.5, 1.0], 0)]
      end

    table(["longest slice, 20 rounds", "p50 µs", "max µs"], rows)
  end

  defp part("mailbox") do
    rows =
      for {name, times} <-
            Enum.zip(["pool", "async", "spawn and send"], asked(:mailbox, [1_000_000, 30])) do
        [without, with] = Enum.map(times, &median/1)
        [name, decimals(without, 1), decimals(with, 1), decimals(with / without, 2)]
      end

    table(["600 calls in 30 turns", "empty, µs", "1,000,000, µs", "ratio"], rows)
  end

  defp part("killed") do
    calls = [
      {"in the pool's queue", {:tame_spin, :spin_pool, [600_000_000]}},
      {"sleeping", {:timer, :sleep, [:infinity]}}
    ]

    rows =
      for order <- [:first_first, :last_first, :random], {what, call} <- calls do
        rounds = for _ <- 1..3, do: asked(:killed, [call, order])
        [what, to_string(order) | figures(Enum.sort(rounds), [0.5, 1.0], 0)]
      end

    table(["10,000 killed, 3 rounds", "order", "gap p50 µs", "gap max µs"], rows)
  end

  defp part("overflow") do
    rows =
      for {what, pause_ms} <- [{"one every 10 ms", 10}, {"all at once", 0}] do
        [what | figures(asked(:overflow, [pause_ms]), [0.5, 0.99, 1.0], 1, 1000)]
      end

    cores = :erlang.system_info(:schedulers_online)
    table(["300 calls of 2 ms", "p50 ms", "p99 ms", "max ms"], rows)
    IO.puts("at once they need #{div(600, cores)} ms of #{cores} cores that do nothing else")
  end

  defp part("ignored") do
    rows =
      for function <- [:ignore, :ignore_yielding, :ignore_pool] do
        [with, without] =
          for length <- [3_000_000, 0], do: median(asked(:ignored, [function, length, 101]))

        [to_string(function), decimals(without, 1), decimals(with, 1)]
      end

    table(["a call, median of 101", "no list, µs", "3,000,000, µs"], rows)
  end

  defp part("large") do
    rows =
      for what <- [:aligned, :unaligned, :list, :in_erlang],
          do: [to_string(what) | figures(asked(:large, [what, 5]), [0.5, 1.0], 0)]

    table(["longest slice, 5 rounds", "p50 µs", "max µs"], rows)
  end

  defp part("deadline") do
    functions = ~w(spin spin_yielding spin_dirty spin_yielding_dirty spin_pool spin_thread)a

    calls =
      [
        {"receive after", {:awaited, []}, 0},
        {"receive after, beside a job in the pool", {:awaited, []}, 1},
        {"a dirty NIF by hand, of 10 ms", {:by_hand, []}, 0}
      ] ++ for name <- functions, do: {to_string(name), {:with_deadline, [name]}, 0}

    late =
      for {what, call, beside} <- Tame.Turns.all(calls, 5, Tame.Turns.seed()),
          do: {what, asked(:deadline, [call, beside, 40])}

    rows =
      for {what, _, _} <- calls do
        late = Enum.sort(for {^what, times} <- late, time <- times, do: time)
        [what | figures(late, [0.5, 0.99, 1.0], 1, 1000)]
      end

    table(["late, 200 rounds", "p50 ms", "p99 ms", "max ms"], rows)
  end

  defp part("stopped") do
    times =
      for _ <- 1..3 do
        in_peer(fn peer ->
          os_pid = :peer.call(peer, :os, :getpid, [])

          spawn_link(fn ->
            Process.sleep(600)
            {_, 0} = System.cmd("kill", ["-STOP", "#{os_pid}"])
            Process.sleep(3000)
            {_, 0} = System.cmd("kill", ["-CONT", "#{os_pid}"])
          end)

          Process.sleep(400)
          :peer.call(peer, @ours, :stopped, [], 60_000) - 3000
        end)
      end

    table(["500 ms inline, VM stopped for 3 s", "p50 ms", "max ms"], [
      ["without the stop" | figures(Enum.sort(times), [0.5, 1.0], 0)]
    ])
  end

  # Each round has the two NIFs, each in a VM of its own, and a program that does nothing but write fresh memory.
  defp part("pages") do
    program = Path.join(Path.dirname(:code.which(:bench_jobs)), "pages_limit")
    limits = for pages <- ["small", "large"], threads <- ["1", "2"], do: {pages, threads}
    turns = Tame.Turns.all([:zeros, :zeros_uncut] ++ limits, 7, Tame.Turns.seed())

    rounds =
      for what <- turns do
        case what do
          {pages, threads} ->
            {said, 0} = System.cmd(program, ["64", threads, pages])
            [us, large] = said |> String.split() |> Enum.map(&String.to_integer/1)
            {what, [us / 1000, large]}

          function ->
            {what, Tuple.to_list(asked(:fill, [function]))}
        end
      end

    medians = fn what -> Enum.zip_with(for({^what, all} <- rounds, do: all), &median/1) end

    rows =
      for function <- [:zeros, :zeros_uncut],
          do: [to_string(function) | Enum.zip_with(medians.(function), [1, 1, 0, 1], &decimals/2)]

    columns = ["64 MiB, 7 rounds", "cold ms", "warm ms", "longest slice, cold, µs", "resident MiB"]
    table(columns, rows)
    IO.puts("")

    rows =
      for {pages, threads} = limit <- limits do
        [ms, large] = medians.(limit)
        [pages, threads, decimals(ms, 1), decimals(large, 0)]
      end

    table(["limit of this machine: pages", "threads", "cold ms", "MiB on large pages"], rows)
    [ours, uncut] = for function <- [:zeros, :zeros_uncut], do: hd(medians.(function))
    limit = hd(medians.({"large", "1"}))

    IO.puts(
      "uncut ÷ ours #{decimals(uncut / ours, 2)}; uncut ÷ one thread with large pages and nothing else to do, " <>
        decimals(uncut / limit, 2)
    )
  end

  defp part("pools") do
    rows =
      for libraries <- [1, 2] do
        rounds = for _ <- 1..3, do: Tuple.to_list(asked(:pools, [libraries]))

        [
          to_string(libraries)
          | for(figure <- Enum.zip_with(rounds, &median/1), do: decimals(figure, 0))
        ]
      end

    table(["libraries, 3 rounds", "all done after ms", "neighbour p99 µs", "max µs"], rows)
  end

  defp part("sum") do
    times = asked(:sums, [Tame.Turns.all([:sum, :sum_uncut], 15, Tame.Turns.seed())])
    [steps, uncut] = for name <- [:sum, :sum_uncut], do: median(for {^name, ms} <- times, do: ms)

    table(["list of 10,000,000, 15 rounds", "p50 ms"], [
      ["sum", decimals(steps, 1)],
      ["sum_uncut", decimals(uncut, 1)]
    ])

    IO.puts("uncut ÷ steps #{decimals(uncut / steps, 2)}")
  end

  defp figures(sorted, parts, places, unit \\ 1),
    do: for(part <- parts, do: decimals(at(sorted, part) / unit, places))

  defp asked(function, args), do: in_peer(&:peer.call(&1, @ours, function, args, 300_000))

  defp in_peer(fun) do
    Bench.in_peer([{@ours, Process.get(:beam)}], fn peer ->
      {:ok, _} = :peer.call(peer, :application, :ensure_all_started, [:tame])
      fun.(peer)
    end)
  end
end

Bench.Promises.Run.run(System.argv())
