# What tame.h costs and gains: the figures of the job library, each a ratio within one interleaved run. In each round the
# functions take their turns in another order, drawn from a seed that is printed.
#
#   mix run ../bench/jobs.exs            all parts
#   mix run ../bench/jobs.exs exor echo  some of them
#
#   exor    exor in every placement against one uncut C loop, memcpy, the classic yielding form and
#           crypto:exor/2, warm: before each timed call the same function is called once untimed, and the heap
#           collected, so that its output's pages are at hand, regardless of the turn before
#   small   what a job adds to a hand-written inline NIF at 64 B and 4 KiB
#   echo    handing a tiny job to the pool or a thread, against a dirty CPU NIF and a bare thread
#   load    200 jobs of 10 ms wait: jobs per second by placement
#   beside  how late a neighbour wakes beside 20 jobs of 10 ms: yielding, against the same by hand in
#           slices of 1 ms
#   kill    how long a job goes on after its caller was killed
#   slices  slices of a 256 MB run of exor, read from outside: in a VM that has just begun (cold), and warm;
#           and the first call of all, with a fresh output of 2 GB

Code.require_file("bench.ex", __DIR__)

{:module, _, slices_beam, _} =
  defmodule Bench.Slices do
    # Runs in a VM of its own. The durations in µs of the normal slices of that number of calls; the last
    # call's alone when there are several.
    def read(function, bytes, runs) do
      a = :binary.copy(<<1>>, bytes)
      Enum.reduce(1..runs, [], fn _, _ -> read(fn -> apply(:tame_exor, function, [a, a]) end) end)
    end

    defp read(call) do
      parent = self()

      pid =
        spawn(fn ->
          receive do: (:go -> call.())
          send(parent, :done)
        end)

      {:ok, watch} = :tame_slices.start(pid, %{keep: 1_000_000, scheduler: 2})
      send(pid, :go)
      receive do: (:done -> :ok)
      for {_, duration_ns, :normal} <- :tame_slices.stop(watch).slices, do: duration_ns / 1000
    end
  end

Process.put(:slices_beam, slices_beam)

defmodule Bench.Jobs do
  import Bench, only: [table: 2, decimals: 2]

  @seed Tame.Turns.seed()
  @parts ~w(exor small echo load beside kill slices)

  def run([]), do: run(@parts)

  def run(parts) do
    Bench.known!(parts, @parts)
    Bench.natives()
    IO.puts("seed #{@seed}")

    for part <- parts do
      IO.puts("\n== #{part}\n")
      part(part)
    end
  end

  # The hand-written twins of the placements thread and pool.
  defp bare(function, payload) do
    ref = make_ref()
    :ok = apply(:bench_threads, function, [ref, payload])

    receive do
      {^ref, back} -> back
    end
  end

  # How late a neighbour woke while 20 processes called the function for 10 ms each, again and again, for 1 s.
  defp beside(function) do
    callers = for _ <- 1..20, do: spawn_link(fn -> forever(function) end)
    {:ok, neighbour} = :tame_neighbour.start(%{scheduler: 1, period_ms: 10})
    Process.sleep(1000)
    histogram = :tame_neighbour.stop(neighbour)

    for caller <- callers do
      Process.unlink(caller)
      Process.exit(caller, :kill)
    end

    Process.sleep(50)
    histogram
  end

  defp forever(function) do
    if function.(10_000) == :ok and function.(0) == :ok, do: :erlang.yield()
    forever(function)
  end

  # A job of 10 s is killed after 20 ms; it has ended when its counter stands still.
  defp outlived_us(name) do
    caller = spawn(fn -> apply(:tame_spin, name, [10_000_000]) end)
    Process.sleep(20)
    1 = :tame_spin.running()
    killed_at = :erlang.monotonic_time()
    Process.exit(caller, :kill)
    wait_for_none()
    :erlang.convert_time_unit(:erlang.monotonic_time() - killed_at, :native, :nanosecond) / 1000
  end

  defp wait_for_none, do: if(:tame_spin.running() > 0, do: wait_for_none(), else: :ok)

  # The median of each function's times in ns, the functions taking turns.
  defp medians(functions, turns, calls) do
    samples =
      for {name, function} <- turns(functions, turns) do
        function.()
        :erlang.garbage_collect()
        start = :erlang.monotonic_time()
        repeat(function, calls)
        {name, (:erlang.monotonic_time() - start) / calls}
      end

    samples
    |> Enum.group_by(&elem(&1, 0), &elem(&1, 1))
    |> Map.new(fn {name, times} -> {name, Enum.at(Enum.sort(times), div(length(times), 2))} end)
  end

  defp turns(items, rounds), do: Tame.Turns.all(items, rounds, @seed)

  defp repeat(_function, 0), do: :ok

  defp repeat(function, count) do
    function.()
    repeat(function, count - 1)
  end

  defp part("exor") do
    for {bytes, turns} <- [{1_000_000, 201}, {67_108_864, 21}] do
      {a, b} = {:binary.copy(<<1>>, bytes), :binary.copy(<<2>>, bytes)}

      # One binary and a byte, as in the talk: it reads as much as memcpy does.
      functions =
        [
          loop: fn -> :tame_exor_classic.exor_loop(a, b) end,
          memcpy: fn -> :tame_exor_classic.memcpy(a) end,
          classic: fn -> :tame_exor_classic.exor_classic(a, b) end,
          crypto: fn -> :crypto.exor(a, b) end
        ] ++
          for name <- ~w(exor exor_inline exor_yielding exor_dirty exor_yielding_dirty exor_pool)a do
            {name, fn -> apply(:tame_exor, name, [a, b]) end}
          end ++
          [yielding_byte: fn -> :tame_exor.exor_yielding(a, 255) end]

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
          "memcpy ÷ yielding with a byte #{decimals(medians.memcpy / medians.yielding_byte, 2)}\n"
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
      bare_thread: fn -> bare(:in_new_thread, payload) end,
      bare_queue: fn -> bare(:in_queue, payload) end,
      thread: fn -> :tame_exor.exor_thread(payload, payload) end
    ]

    medians = medians(functions, 501, 20)
    rows = for {name, _} <- functions, do: [to_string(name), decimals(medians[name] / 1000, 2)]
    table(["function", "p50 µs"], rows)
    IO.puts("pool ÷ dirty CPU #{decimals(medians.pool / medians.dirty_cpu, 2)}")
    IO.puts("thread ÷ bare thread #{decimals(medians.thread / medians.bare_thread, 2)}")
  end

  defp part("beside") do
    functions = [
      nothing: fn _ -> :ok end,
      by_hand: &:bench_spin.spin/1,
      yielding: &:tame_spin.spin_yielding/1,
      auto: &:tame_spin.spin/1
    ]

    samples = for {name, function} <- turns(functions, 5), do: {name, beside(function)}

    rows =
      for {name, _} <- functions do
        late = for {^name, histogram} <- samples, do: histogram
        all = :tame_histogram.new()
        Enum.each(late, &:tame_histogram.merge(all, &1))

        [
          to_string(name)
          | for(p <- [50.0, 99.0], do: decimals(:tame_histogram.percentile(all, p) / 1000, 0))
        ]
      end

    table(["beside 20 jobs", "p50 µs", "p99 µs"], rows)

    [by_hand, yielding] =
      for n <- [1, 2], do: rows |> Enum.at(n) |> Enum.at(1) |> String.to_integer()

    IO.puts("yielding ÷ by hand #{decimals(yielding / by_hand, 3)}")
  end

  defp part("kill") do
    placements = ~w(spin_yielding spin spin_dirty spin_yielding_dirty spin_thread spin_pool)a

    samples = for name <- turns(placements, 200), do: {name, outlived_us(name)}

    rows =
      for name <- placements do
        sorted = Enum.sort(for {^name, us} <- samples, do: us)
        [to_string(name), decimals(Enum.at(sorted, 100), 0), decimals(Enum.at(sorted, 197), 0)]
      end

    IO.puts("how long a job goes on after its caller was killed, 200 of each")
    table(["function", "p50 µs", "p99 µs"], rows)
  end

  defp part("slices") do
    beam = Process.get(:slices_beam)

    rows =
      for {what, bytes, runs} <- [
            {"cold", 268_435_456, 1},
            {"warm", 268_435_456, 6},
            {"first 2 GB", 2_000_000_000, 1}
          ],
          function <- ~w(exor_yielding exor)a do
        slices =
          Bench.in_peer([{Bench.Slices, beam}], fn peer ->
            :peer.call(peer, Bench.Slices, :read, [function, bytes, runs], 120_000)
          end)

        sorted = Enum.sort(slices)
        count = length(sorted)
        at = &decimals(Enum.at(sorted, min(count - 1, floor(count * &1))), 0)
        [what, to_string(function), to_string(count), at.(0.5), at.(0.99), at.(0.999), at.(1.0)]
      end

    table(["run", "function", "slices", "p50 µs", "p99 µs", "p99.9 µs", "longest µs"], rows)
  end

  defp part("load") do
    jobs = 200
    functions = ~w(spin_dirty spin_pool spin spin_yielding spin_yielding_dirty)a

    samples =
      for name <- turns(functions, 3) do
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
