# The figures of the README: each line beside crypto:hash(sha3_256, _), in interleaved turns. `make bench` builds the driver
# and the NIF by hand that are two of them.
#
#     mix run bench/bench.exs [MiB of the slices, default 1024]
#
# TAME_SHA3_IMPL=portable|avx2|avx512 forces an implementation.
defmodule Bench do
  @rounds 15
  @seed Tame.Turns.seed()
  @mb 1_000_000
  # What the NIF by hand holds a scheduler for is short.
  @by_hand 10_000

  @compile {:no_warn_undefined, :by_hand}

  def run(slices_mib) do
    :ok = :erl_ddll.load(~c"build/bench", ~c"tame_sha3_driver")
    true = :code.add_path(~c"build/bench")

    IO.puts(
      "seed #{@seed}, OTP #{System.otp_release()}, #{:tame_sha3.implementation()}, OpenSSL " <>
        (:crypto.info_lib() |> hd() |> elem(2) |> to_string())
    )

    one_stream()
    abreast()
    slices(slices_mib)
    neighbour()
  end

  # One stream: µs of a call, the least of the turns.
  defp one_stream do
    IO.puts(
      "\nsha3_256, one stream; µs a call, and how many times as fast as crypto; driver: by driver_async; " <>
        "by hand: a NIF of the same core without tame.h"
    )

    row(["bytes", "crypto", "driver", "ratio", "tame_sha3", "ratio", "by hand", "ratio"])
    port = open_driver()

    for {size, calls} <-
          [{1, 5000}, {64, 5000}, {1000, 2000}, {10_000, 300}, {100_000, 30}] ++
            [{1_000_000, 5}, {64 * @mb, 1}] do
      data = :rand.bytes(size)

      best =
        turns(
          [
            crypto: {calls, fn -> :crypto.hash(:sha3_256, data) end},
            driver: {calls, fn -> by_driver(port, data) end},
            tame: {calls, fn -> :tame_sha3.hash(:sha3_256, data) end}
          ] ++
            if(size <= @by_hand,
              do: [by_hand: {calls, fn -> :by_hand.sha3_256(data) end}],
              else: []
            )
        )

      digest = :tame_sha3.hash(:sha3_256, data)
      true = by_driver(port, data) == digest
      true = size > @by_hand or :by_hand.sha3_256(data) == digest

      row([
        size,
        best.crypto,
        best.driver,
        best.crypto / best.driver,
        best.tame,
        best.crypto / best.tame
        | if(size <= @by_hand, do: [best.by_hand, best.crypto / best.by_hand], else: [])
      ])
    end
  end

  # MB/s beside one stream of crypto.
  defp abreast do
    data = :rand.bytes(64 * @mb)
    eight = for _ <- 1..8, do: :rand.bytes(128_000)
    IO.puts("\nMB/s, and how many times as fast as one stream of crypto")
    row(["", "MB/s", "ratio"])

    best =
      turns(
        crypto: {1, fn -> :crypto.hash(:sha3_256, data) end},
        hash_many: {10, fn -> :tame_sha3.hash_many(:sha3_256, eight) end},
        parallel_hash128: {1, fn -> :tame_sha3.parallel_hash128(data, 8192, 32, "") end},
        parallel_hash256: {1, fn -> :tame_sha3.parallel_hash256(data, 8192, 64, "") end},
        kt128: {1, fn -> :tame_sha3.kt128(data, 32) end}
      )

    speed = fn name ->
      if(name == :hash_many, do: 8 * 128_000, else: byte_size(data)) / best[name]
    end

    for name <- [:crypto, :hash_many, :parallel_hash128, :parallel_hash256, :kt128],
        do: row([name, speed.(name), speed.(name) / speed.(:crypto)])
  end

  # Read from outside, in µs: slices on a regular scheduler.
  defp slices(mib) do
    data = :binary.copy(:rand.bytes(1_048_576), mib)
    IO.puts("\nslices on a regular scheduler, µs, hashing #{mib} MiB")
    row(["", "slices", "p99.9", "longest"])

    for {name, fun} <- [
          sha3_256: fn -> :tame_sha3.hash(:sha3_256, data) end,
          kt128: fn -> :tame_sha3.kt128(data, 32) end,
          update: fn -> :tame_sha3.update(:tame_sha3.init(:shake128), data) end
        ] do
      parent = self()
      pid = spawn_link(fn -> receive(do: (:go -> fun.())) && send(parent, :done) end)
      {:ok, recording} = :tame_slices.start(pid, %{scheduler: 2})
      send(pid, :go)
      receive do: (:done -> :ok)
      normal = :tame_slices.stop(recording).normal
      p999 = :tame_histogram.percentile(normal.histogram, 99.9)
      row([name, normal.count, p999 / 1000, normal.longest_ns / 1000])
    end
  end

  defp open_driver, do: Port.open({:spawn_driver, ~c"tame_sha3_driver"}, [:binary])

  defp by_driver(port, data) do
    Port.command(port, data)
    receive do: ({^port, {:data, digest}} -> digest)
  end

  # Each process that hashes has a port of its own.
  defp driver(data) do
    port = Process.get(:port) || tap(open_driver(), &Process.put(:port, &1))
    by_driver(port, data)
  end

  # The digest lab's: a process that wants scheduler 1 every 10 ms, while 4 others hash 1 MB for ever.
  defp neighbour do
    IO.puts("\nneighbour delay, ms, and MB/s of 4 processes that hash 1 MB each for 3 s")
    row(["", "p50", "p99", "max", "MB/s"])

    for row <- Tame.Digest.Load.measure(3000, [{"driver", &driver/1} | Tame.Digest.Load.ways()]),
        do: row([row.way, row.p50_us / 1000, row.p99_us / 1000, row.max_us / 1000, row.mb_per_s])
  end

  # The least µs of a call over the turns, by name.
  defp turns(variants) do
    for {name, {calls, fun}} <- Tame.Turns.all(variants, @rounds, @seed), reduce: %{} do
      best ->
        {us, _} = :timer.tc(fn -> for _ <- 1..calls, do: fun.() end)
        Map.update(best, name, us / calls, &min(&1, us / calls))
    end
  end

  defp row(cells), do: cells |> Enum.map_join("", &cell/1) |> IO.puts()
  defp cell(number) when is_float(number), do: cell(:erlang.float_to_binary(number, decimals: 2))
  defp cell(value), do: String.pad_leading("#{value}", 16)
end

mib = with [text | _] <- System.argv(), do: String.to_integer(text), else: (_ -> 1024)
Bench.run(mib)
