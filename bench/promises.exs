# What tame.h promises, each beside what it is compared with. Each part runs in a VM of its own, and says how many rounds it made.
#
#   mix run ../bench/promises.exs             all parts, six minutes
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

[{_, beam}] = Code.require_file("promises/there.ex", __DIR__)
Process.put(:beam, beam)

defmodule Bench.Promises do
  alias Bench.Promises.There
  import Bench, only: [table: 2, decimals: 2, at: 2, median: 1]

  @parts ~w(rise mailbox killed overflow ignored large deadline stopped pages pools sum)

  def run([]), do: run(@parts)

  def run(parts) do
    Bench.known!(parts, @parts)
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
          :peer.call(peer, There, :stopped, [], 60_000) - 3000
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

  defp asked(function, args), do: in_peer(&:peer.call(&1, There, function, args, 300_000))

  defp in_peer(fun) do
    Bench.in_peer([{There, Process.get(:beam)}], fn peer ->
      {:ok, _} = :peer.call(peer, :application, :ensure_all_started, [:tame])
      fun.(peer)
    end)
  end
end

Bench.Promises.run(System.argv())
