# The figures of the README: throughput, longest slices, and what neighbours feel, beside jiffy.
defmodule Bench do
  @rounds 9
  @beside 5
  @seed Tame.Turns.seed()

  def run do
    IO.puts("seed #{@seed}, OTP #{System.otp_release()}, #{System.schedulers_online()} schedulers")
    throughput("lines of 230 bytes", lines(record(8), 20_000))
    throughput("lines of 20 bytes", lines(~S({"id":12345,"ok":true}), 200_000))

    throughput(
      "lines of 64 kB",
      lines(:jiffy.encode(for(n <- 1..280, do: :jiffy.decode(record(n)))), 70)
    )

    throughput(
      "one line of 5 MB",
      lines(:jiffy.encode(for(n <- 1..22_000, do: :jiffy.decode(record(n)))), 1)
    )

    slices()
    beside()
  end

  defp record(n) do
    :jiffy.encode(%{
      "id" => 123_456 + n,
      "name" => "somebody's name",
      "tags" => ["a", "bb", "ccc"],
      "weight" => 1.25,
      "nested" => %{"deep" => [1, 2, 3, %{"k" => nil}]},
      "text" => String.duplicate("lorem ipsum ", 8)
    })
  end

  defp lines(line, count), do: :binary.copy(IO.iodata_to_binary([line, "\n"]), count)

  defp variants do
    [
      json_lines: fn data -> :json_lines.fold(fn _, count -> count + 1 end, 0, data) end,
      jiffy: fn data ->
        data
        |> :binary.split("\n", [:global, :trim])
        |> Enum.reduce(0, fn line, count ->
          _ = :jiffy.decode(line, [:return_maps])
          count + 1
        end)
      end
    ]
  end

  # Each turn in a process of its own, so that no garbage of another is collected in it.
  defp throughput(title, data) do
    IO.puts("\n#{title}, #{byte_size(data)} bytes in all, median of #{@rounds} turns")
    IO.puts(row(["", "MB/s", "lines/s"]))

    samples =
      for {name, parse} <- Tame.Turns.all(variants(), @rounds, @seed) do
        {us, count} =
          Task.async(fn -> :timer.tc(fn -> parse.(data) end) end) |> Task.await(:infinity)

        {name, {byte_size(data) / us, count / us * 1_000_000}}
      end

    for {name, turns} <- Enum.group_by(samples, &elem(&1, 0), &elem(&1, 1)) do
      IO.puts(row([name | for(i <- 0..1, do: turns |> Enum.map(&elem(&1, i)) |> median())]))
    end
  end

  # Read from outside; the lowest of nine turns, because the operating system takes the core away now and then.
  defp slices do
    IO.puts("\nlongest slice on a regular scheduler, µs: lowest and median of #{@rounds} turns")
    IO.puts(row(["", "lowest", "median"]))
    string = :binary.copy("a long text \\n ", 1_000_000)
    chunks = List.duplicate("1\n", 1_000_000)

    for {name, data} <- [
          "20000 lines": lines(record(8), 20_000),
          "one line of 5 MB":
            lines(:jiffy.encode(for(n <- 1..22_000, do: :jiffy.decode(record(n)))), 1),
          "a list of 1e6 integers": :jiffy.encode(Enum.to_list(1..1_000_000)),
          "a map of 1e5 keys": :jiffy.encode(Map.new(1..100_000, &{to_string(&1), &1})),
          "nested 1e6 deep": String.duplicate("[", 1_000_000) <> String.duplicate("]", 1_000_000),
          "a string of 14 MB": ["\"", string, "\""],
          "a million chunks": chunks
        ],
        do: longest(name, fn -> variants()[:json_lines].(data) end)

    # The VM's own, which json_lines calls first.
    longest("their iolist_to_iovec alone", fn -> :erlang.iolist_to_iovec(chunks) end)
  end

  defp longest(name, fun) do
    longest = for _ <- 1..@rounds, do: longest_us(fun)
    IO.puts(row([name, Enum.min(longest), median(longest)]))
  end

  defp longest_us(fun) do
    parent = self()
    pid = spawn_link(fn -> receive(do: (:go -> fun.())) && send(parent, :done) end)
    {:ok, recording} = :tame_slices.start(pid, %{scheduler: 2})
    send(pid, :go)
    receive do: (:done -> :ok)
    :tame_slices.stop(recording).normal.longest_ns / 1000
  end

  # Ten processes parse for ever. A neighbour wants scheduler 1 every 10 ms.
  defp beside do
    IO.puts(
      "\nbeside ten processes that parse: how late a neighbour wakes, ms; median of #{@beside}"
    )

    IO.puts("turns of 2 s, and the least and the greatest")
    IO.puts(wide(["", "MB/s", "late p50", "late p99", "late max"]))

    for {title, data} <- [
          "lines of 230 bytes": lines(record(8), 4000),
          "lines of 1 MB": lines(:jiffy.encode(for(n <- 1..4400, do: :jiffy.decode(record(n)))), 1)
        ] do
      turns =
        for {name, parse} <- Tame.Turns.all(variants(), @beside, @seed),
            do: {name, beside_turn(parse, data)}

      for {name, _} <- variants() do
        figures = for {^name, figures} <- turns, do: figures
        IO.puts(wide(["#{title} #{name}" | figures |> Enum.zip_with(&spread/1)]))
      end
    end
  end

  # MB/s, and how late: the median, 99 %, the longest, ms.
  defp beside_turn(parse, data) do
    counter = :counters.new(1, [])
    work = fn -> parse.(data) && :counters.add(counter, 1, byte_size(data)) end
    workers = for _ <- 1..10, do: spawn_link(fn -> forever(work) end)
    Process.sleep(300)
    {:ok, neighbour} = :tame_neighbour.start(%{scheduler: 1, period_ms: 10})
    before = :counters.get(counter, 1)
    {us, _} = :timer.tc(fn -> Process.sleep(2000) end)
    done = :counters.get(counter, 1) - before
    late = :tame_neighbour.stop(neighbour)

    for worker <- workers do
      monitor = Process.monitor(worker)
      Process.unlink(worker)
      Process.exit(worker, :kill)
      receive do: ({:DOWN, ^monitor, :process, _, _} -> :ok)
    end

    [p50, p99] = for p <- [50, 99], do: :tame_histogram.percentile(late, p) / 1_000_000
    [done / us, p50, p99, :tame_histogram.max(late) / 1_000_000]
  end

  defp forever(fun) do
    fun.()
    forever(fun)
  end

  defp median(values), do: values |> Enum.sort() |> Enum.at(div(length(values), 2))

  defp row([name | cells]) do
    String.pad_trailing(to_string(name), 32) <>
      Enum.map_join(cells, &String.pad_leading(cell(&1), 12))
  end

  defp wide([name | cells]) do
    String.pad_trailing(to_string(name), 30) <> Enum.map_join(cells, &String.pad_leading(&1, 22))
  end

  # 2.08 (1.90–3.71)
  defp spread(values),
    do: "#{cell(median(values))} (#{cell(Enum.min(values))}–#{cell(Enum.max(values))})"

  defp cell(value) when is_float(value) and value >= 100, do: value |> round() |> to_string()
  defp cell(value) when is_float(value), do: :erlang.float_to_binary(value, decimals: 2)
  defp cell(value), do: to_string(value)
end

Bench.run()
