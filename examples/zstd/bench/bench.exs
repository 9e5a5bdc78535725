# The figures of the README: throughput, longest slices, and what neighbours feel, beside a hand-written dirty NIF.
defmodule ZstdDirty do
  @on_load :load
  def load, do: :erlang.load_nif(:filename.absname("priv/zstd_dirty"), 0)
  def compressor(_level), do: :erlang.nif_error(:nif_not_loaded)
  def decompressor, do: :erlang.nif_error(:nif_not_loaded)
  def compress(_compressor, _data), do: :erlang.nif_error(:nif_not_loaded)
  def decompress(_decompressor, _data), do: :erlang.nif_error(:nif_not_loaded)
end

defmodule Bench do
  @rounds 9
  @beside 5
  @seed Tame.Turns.seed()

  def run do
    IO.puts("seed #{@seed}, OTP #{System.otp_release()}, #{System.schedulers_online()} schedulers")
    # Compiled code compresses as logs do, to a third or so.
    text =
      :code.lib_dir(:stdlib)
      |> Path.join("ebin/*.beam")
      |> Path.wildcard()
      |> Enum.map(&File.read!/1)

    text = IO.iodata_to_binary(text) |> :base64.encode()

    for {size, calls} <- [{1_000, 2000}, {100_000, 50}, {16_777_216, 1}] do
      data = text |> :binary.copy(div(size, byte_size(text)) + 1) |> binary_part(0, size)
      throughput(data, calls)
    end

    slices(text)
    beside(binary_part(text, 0, 1_000_000))
  end

  defp variants(level) do
    {c, d} = {Zstd.compressor(level: level), Zstd.decompressor()}
    {dirty_c, dirty_d} = {ZstdDirty.compressor(level), ZstdDirty.decompressor()}

    [
      job: {&Zstd.compress(c, &1), &Zstd.decompress(d, &1, [])},
      dirty: {&ZstdDirty.compress(dirty_c, &1), &ZstdDirty.decompress(dirty_d, &1)}
    ]
  end

  defp throughput(data, calls) do
    IO.puts("\n#{byte_size(data)} bytes, level 3, median of #{@rounds} turns")
    IO.puts(row(["", "compress MB/s", "decompress MB/s", "ratio"]))

    samples =
      for {name, {compress, decompress}} <- Tame.Turns.all(variants(3), @rounds, @seed) do
        packed = compress.(data)
        ^data = decompress.(packed)
        :erlang.garbage_collect()
        in_us = us(fn -> compress.(data) end, calls)
        out_us = us(fn -> decompress.(packed) end, calls)

        {name,
         {byte_size(data) / in_us, byte_size(data) / out_us, byte_size(data) / byte_size(packed)}}
      end

    for {name, turns} <- Enum.group_by(samples, &elem(&1, 0), &elem(&1, 1)) do
      IO.puts(row([name | for(i <- 0..2, do: turns |> Enum.map(&elem(&1, i)) |> median())]))
    end
  end

  defp us(fun, calls) do
    {us, _} = :timer.tc(fn -> for _ <- 1..calls, do: fun.() end)
    max(us, 1) / calls
  end

  # Read from outside, in µs; the lowest of nine turns, because the operating system takes the core away now and then.
  defp slices(text) do
    data = :binary.copy(text, div(67_108_864, byte_size(text)))
    noise = :rand.bytes(67_108_864)

    IO.puts(
      "\nlongest slice on a regular scheduler, 64 MiB, µs: lowest and median of #{@rounds} turns"
    )

    IO.puts(row(["", "lowest", "median"]))

    for {name, data} <- [text: data, noise: noise] do
      packed = Zstd.compress(data)
      sum = fn parts -> Enum.reduce(parts, 0, &(byte_size(&1) + &2)) end

      for {what, fun} <- [
            compress: fn -> Zstd.compress(data) end,
            decompress: fn -> Zstd.decompress(packed) end,
            compress_stream: fn -> sum.(Zstd.compress_stream([data])) end,
            decompress_stream: fn -> sum.(Zstd.decompress_stream([packed])) end
          ] do
        longest = for _ <- 1..@rounds, do: longest_us(fun)
        IO.puts(row(["#{name} #{what}", Enum.min(longest), median(longest)]))
      end
    end
  end

  defp longest_us(fun) do
    parent = self()
    pid = spawn_link(fn -> receive(do: (:go -> fun.())) && send(parent, :done) end)
    {:ok, recording} = :tame_slices.start(pid, %{scheduler: 2})
    send(pid, :go)
    receive do: (:done -> :ok)
    :tame_slices.stop(recording).normal.longest_ns / 1000
  end

  # Ten processes compress and decompress 1 MB for ever. A neighbour wants scheduler 1 every 10 ms; a caller wants a
  # short call of its own.
  defp beside(data) do
    turns =
      for {name, _} <- Tame.Turns.all([job: 3, dirty: 3], @beside, @seed),
          do: {name, beside_turn(name, data)}

    IO.puts(
      "\nbeside ten processes that work on 1 MB each; median of #{@beside} turns of 2 s, and the"
    )

    IO.puts("least and the greatest")

    for {title, from} <- ["a neighbour wakes late by": 1, "a call for 1 kB takes": 4] do
      IO.puts(wide(["", "MB/s", "ms: p50", "p99", "max"]))

      for name <- [:job, :dirty] do
        figures = for {^name, figures} <- turns, do: [hd(figures) | Enum.slice(figures, from, 3)]
        IO.puts(wide(["#{title}: #{name}" | Enum.zip_with(figures, &spread/1)]))
      end
    end
  end

  # MB/s; how late the neighbour was, and how long the short calls took: the median, 99 %, the longest, ms.
  defp beside_turn(name, data) do
    counter = :counters.new(1, [])

    workers =
      for _ <- 1..10 do
        spawn_link(fn ->
          {compress, decompress} = variants(3)[name]
          forever(fn -> :counters.add(counter, 1, byte_size(decompress.(compress.(data)))) end)
        end)
      end

    Process.sleep(300)
    {compress, _} = variants(3)[name]
    {:ok, neighbour} = :tame_neighbour.start(%{scheduler: 1, period_ms: 10})
    before = :counters.get(counter, 1)
    until = :erlang.monotonic_time(:millisecond) + 2000
    {us, calls} = :timer.tc(fn -> calls(compress, binary_part(data, 0, 1000), until) end)
    done = :counters.get(counter, 1) - before
    late = :tame_neighbour.stop(neighbour)

    for worker <- workers do
      monitor = Process.monitor(worker)
      Process.unlink(worker)
      Process.exit(worker, :kill)
      receive do: ({:DOWN, ^monitor, :process, _, _} -> :ok)
    end

    late_ms = for p <- [50, 99], do: :tame_histogram.percentile(late, p) / 1_000_000
    calls_ms = calls |> Enum.sort() |> List.to_tuple()
    last = tuple_size(calls_ms) - 1
    at = fn share -> elem(calls_ms, min(trunc(share * tuple_size(calls_ms)), last)) end

    [done / us | late_ms] ++
      [:tame_histogram.max(late) / 1_000_000, at.(0.5), at.(0.99), at.(1.0)]
  end

  defp forever(fun) do
    fun.()
    forever(fun)
  end

  defp calls(compress, data, until) do
    {us, _} = :timer.tc(fn -> compress.(data) end)
    Process.sleep(5)

    if :erlang.monotonic_time(:millisecond) < until,
      do: [us / 1000 | calls(compress, data, until)],
      else: [us / 1000]
  end

  defp median(values), do: values |> Enum.sort() |> Enum.at(div(length(values), 2))

  defp row([name | cells]) do
    String.pad_trailing(to_string(name), 24) <>
      Enum.map_join(cells, &String.pad_leading(cell(&1), 16))
  end

  defp wide([name | cells]) do
    String.pad_trailing(to_string(name), 34) <> Enum.map_join(cells, &String.pad_leading(&1, 22))
  end

  # 2.08 (1.90–3.71)
  defp spread(values),
    do: "#{cell(median(values))} (#{cell(Enum.min(values))}–#{cell(Enum.max(values))})"

  defp cell(value) when is_float(value) and value >= 100, do: value |> round() |> to_string()
  defp cell(value) when is_float(value), do: :erlang.float_to_binary(value, decimals: 2)
  defp cell(value), do: to_string(value)
end

Bench.run()
