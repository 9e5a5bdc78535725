# What tame.h costs and gains: the figures of the job library, each a ratio within one interleaved run.
#
#   mix run bench/jobs.exs            all parts
#   mix run bench/jobs.exs exor echo  some of them
#
#   exor    exor in every placement against one uncut C loop, memcpy, the classic yielding form and
#           crypto:exor/2, warm (the heap is collected between calls, so memory comes back faulted in)
#   small   what a job adds to a hand-written inline NIF at 64 B and 4 KiB
#   echo    handing a tiny job to the pool or a thread, against a dirty CPU NIF and a bare thread
#   load    200 jobs of 10 ms wait: jobs per second by placement

defmodule Bench.Jobs do
  @parts ~w(exor small echo load)

  def run([]), do: run(@parts)

  def run(parts) do
    :ok = Tame.Native.build()

    for part <- parts do
      IO.puts("\n== #{part}\n")
      part(part)
    end
  end

  # The median of each function's times in ns, the functions taking turns.
  defp medians(functions, turns, calls) do
    samples =
      for _ <- 1..turns, {name, function} <- functions do
        :erlang.garbage_collect()
        start = :erlang.monotonic_time()
        repeat(function, calls)
        {name, (:erlang.monotonic_time() - start) / calls}
      end

    samples
    |> Enum.group_by(&elem(&1, 0), &elem(&1, 1))
    |> Map.new(fn {name, times} -> {name, Enum.at(Enum.sort(times), div(length(times), 2))} end)
  end

  defp repeat(_function, 0), do: :ok

  defp repeat(function, count) do
    function.()
    repeat(function, count - 1)
  end

  defp table(columns, rows), do: IO.write(Tame.TextTable.format(columns, rows))
  defp decimals(value, count), do: :erlang.float_to_binary(value / 1, decimals: count)

  defp part("exor") do
    for {bytes, turns} <- [{1_000_000, 201}, {67_108_864, 21}] do
      {a, b} = {:binary.copy(<<1>>, bytes), :binary.copy(<<2>>, bytes)}

      functions =
        [
          loop: fn -> :tame_exor_classic.exor_loop(a, b) end,
          memcpy: fn -> :tame_exor_classic.memcpy(a) end,
          classic: fn -> :tame_exor_classic.exor_classic(a, b) end,
          crypto: fn -> :crypto.exor(a, b) end
        ] ++
          for name <- ~w(exor exor_inline exor_yielding exor_dirty exor_yielding_dirty exor_pool)a do
            {name, fn -> apply(:tame_exor, name, [a, b]) end}
          end

      medians = medians(functions, turns, 1)

      rows =
        for {name, _} <- functions do
          [
            to_string(name),
            decimals(medians[name] / 1000, 1),
            decimals(bytes / medians[name], 2),
            decimals(medians[name] / medians[:loop], 3)
          ]
        end

      IO.puts("#{bytes} bytes, median of #{turns} turns")
      table(["function", "p50 µs", "GB/s", "time ÷ loop"], rows)
      ratio = &decimals(medians[&1] / medians[:exor_yielding], 2)

      IO.puts(
        "crypto ÷ yielding #{ratio.(:crypto)}, classic ÷ yielding #{ratio.(:classic)}, " <>
          "memcpy ÷ yielding #{ratio.(:memcpy)}\n"
      )
    end
  end

  defp part("small") do
    for bytes <- [64, 4096] do
      {a, b} = {:binary.copy(<<1>>, bytes), :binary.copy(<<2>>, bytes)}

      functions = [
        loop: fn -> :tame_exor_classic.exor_loop(a, b) end,
        inline: fn -> :tame_exor.exor_inline(a, b) end,
        yielding: fn -> :tame_exor.exor_yielding(a, b) end,
        auto: fn -> :tame_exor.exor(a, b) end
      ]

      medians = medians(functions, 101, 1000)

      rows =
        for {name, _} <- functions do
          [
            to_string(name),
            decimals(medians[name], 0),
            decimals(medians[name] - medians[:loop], 0)
          ]
        end

      IO.puts("#{bytes} bytes")
      table(["function", "p50 ns", "more than loop, ns"], rows)
      IO.puts("")
    end
  end

  defp part("echo") do
    payload = :binary.copy(<<1>>, 16)

    functions = [
      dirty_cpu: fn -> :tame_echo_nif.echo_dirty_cpu(payload) end,
      pool: fn -> :tame_exor.exor_pool(payload, payload) end,
      bare_thread: fn -> Tame.Latency.Methods.NIFThreadNew.echo(nil, payload) end,
      thread: fn -> :tame_exor.exor_thread(payload, payload) end
    ]

    medians = medians(functions, 501, 20)
    rows = for {name, _} <- functions, do: [to_string(name), decimals(medians[name] / 1000, 2)]
    table(["function", "p50 µs"], rows)
    IO.puts("pool ÷ dirty CPU #{decimals(medians.pool / medians.dirty_cpu, 2)}")
    IO.puts("thread ÷ bare thread #{decimals(medians.thread / medians.bare_thread, 2)}")
  end

  defp part("load") do
    jobs = 200
    functions = ~w(spin_dirty spin_pool spin spin_yielding spin_yielding_dirty)a

    samples =
      for _ <- 1..3, name <- functions do
        start = :erlang.monotonic_time(:microsecond)

        callers = for _ <- 1..jobs, do: spawn_monitor(fn -> apply(:tame_spin, name, [10_000]) end)

        ends =
          for {pid, monitor} <- callers do
            receive do
              {:DOWN, ^monitor, :process, ^pid, _} -> :erlang.monotonic_time(:microsecond) - start
            end
          end

        {name, Enum.max(ends)}
      end

    medians =
      samples
      |> Enum.group_by(&elem(&1, 0), &elem(&1, 1))
      |> Map.new(fn {name, times} -> {name, Enum.at(Enum.sort(times), 1)} end)

    rows =
      for name <- functions do
        [
          to_string(name),
          decimals(jobs * 1_000_000 / medians[name], 1),
          decimals(medians.spin_dirty / medians[name], 3)
        ]
      end

    IO.puts("#{jobs} jobs of 10 ms at once")
    table(["function", "jobs/s", "÷ dirty"], rows)
  end
end

Bench.Jobs.run(System.argv())
