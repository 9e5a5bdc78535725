# What a call over the ring costs, against a dirty NIF and a port, interleaved in one run.
#
#   mix run ../bench/ring.exs              all parts
#   mix run ../bench/ring.exs echo callers some of them
#
#   echo     16 B and 64 KiB: ring, dirty CPU NIF, port; p50 of each turn, the median of turns
#   busy     the same while two OS processes spin, one for each core
#   callers  1, 2, 8 and 64 callers at once: calls per second, longest and median wait
#   hostile  1,000,000 calls of a host that lies (some minutes)

Code.require_file("bench.ex", __DIR__)
Code.require_file("../test/support/ring_host.ex", __DIR__)

defmodule Bench.Ring do
  alias Tame.Test.RingHost

  @seed Tame.Turns.seed()
  @parts ~w(echo busy callers)

  def run([]), do: run(@parts)

  def run(parts) do
    Bench.known!(parts, ["hostile" | @parts])
    :ok = :tame_labs_native.build()
    :ok = RingHost.build()

    IO.puts("seed #{@seed}")

    for part <- parts do
      IO.puts("\n== #{part}\n")
      part(part)
    end
  end

  defp part("echo") do
    for {bytes, turns, calls} <- [{16, 41, 2000}, {65_536, 41, 200}], do: echo(bytes, turns, calls)
  end

  defp part("busy") do
    spinners =
      for _ <- 1..2 do
        Port.open({:spawn_executable, "/bin/sh"}, args: ["-c", "while :; do :; done"])
      end

    os_pids = for port <- spinners, do: Port.info(port, :os_pid) |> elem(1)

    try do
      for bytes <- [16, 65_536], do: echo(bytes, 21, 200)
    after
      for os_pid <- os_pids, do: System.cmd("/bin/kill", ["-KILL", "#{os_pid}"])
    end
  end

  defp part("callers") do
    host = start([])
    payload = :binary.copy("x", 16)

    samples =
      for callers <- Tame.Turns.all([1, 2, 8, 64], 7, @seed) do
        {callers, at_once(host.ring, payload, callers, div(100_000, callers))}
      end

    rows =
      for callers <- [1, 2, 8, 64] do
        runs = for {^callers, run} <- samples, do: run
        rate = median(Enum.map(runs, & &1.rate))
        wait = median(Enum.map(runs, & &1.median_us))
        longest = median(Enum.map(runs, & &1.longest_us))
        uneven = median(Enum.map(runs, & &1.uneven))

        [
          "#{callers}",
          decimals(rate, 0),
          decimals(wait, 2),
          decimals(longest, 0),
          decimals(uneven, 2)
        ]
      end

    table(["callers", "calls/s", "p50 us", "longest us", "slowest / median caller"], rows)
    IO.inspect(:tame_ring.info(host.ring))
  end

  defp part("hostile") do
    host = start(["slots=16", "reply_bytes=1048576", "hostile=4711"])
    before = :erlang.memory(:total)
    {us, ends} = :timer.tc(fn -> hostile(host.ring, 1_000_000, %{}) end)
    :erlang.garbage_collect()

    IO.puts(
      "1000000 calls in #{div(us, 1_000_000)} s; VM grew by #{:erlang.memory(:total) - before} bytes"
    )

    for {kind, count} <- Enum.sort(ends), do: IO.puts("#{inspect(kind)} #{count}")
    IO.inspect(:tame_ring.info(host.ring))
  end

  defp hostile(_ring, 0, ends), do: ends

  defp hostile(ring, calls, ends) do
    kind =
      case :tame_ring.call(ring, 0, [calls], 100) do
        {:error, reason} -> reason
        {kind, _} -> kind
        kind -> kind
      end

    hostile(ring, calls - 1, Map.update(ends, kind, 1, &(&1 + 1)))
  end

  defp echo(bytes, turns, calls) do
    payload = :binary.copy("x", bytes)
    host = start([])
    {:ok, port} = Tame.Latency.Methods.Port.open()

    functions = [
      ring: fn -> :tame_ring.call(host.ring, 0, [payload], :infinity) end,
      nif_dirty_cpu: fn -> :tame_echo_nif.echo_dirty_cpu(payload) end,
      port: fn -> Tame.Latency.Methods.Port.echo(port, payload) end
    ]

    samples =
      for {name, function} <- Tame.Turns.all(functions, turns, @seed) do
        times =
          for _ <- 1..calls do
            start = :erlang.monotonic_time()
            function.()
            :erlang.monotonic_time() - start
          end

        {name, median(times)}
      end

    p50 =
      for {name, _} <- functions, into: %{}, do: {name, median(for {^name, t} <- samples, do: t)}

    rows = for {name, _} <- functions, do: [to_string(name), decimals(p50[name] / 1000, 2)]
    IO.puts("#{bytes} bytes, median of #{turns} turns of #{calls} calls")
    table(["method", "p50 us"], rows)

    IO.puts(
      "ring / dirty #{decimals(p50.ring / p50.nif_dirty_cpu, 2)}, port / ring #{decimals(p50.port / p50.ring, 1)}\n"
    )

    Tame.Latency.Methods.Port.close(port)
    Port.close(host.port)
  end

  defp at_once(ring, payload, callers, calls) do
    start = :erlang.monotonic_time()

    runs =
      1..callers
      |> Enum.map(fn _ ->
        Task.async(fn ->
          times =
            for _ <- 1..calls do
              start = :erlang.monotonic_time()
              {:value, _} = :tame_ring.call(ring, 0, [payload], :infinity)
              :erlang.monotonic_time() - start
            end

          {:erlang.monotonic_time() - start, times}
        end)
      end)
      |> Task.await_many(:infinity)

    elapsed = :erlang.monotonic_time() - start
    times = Enum.flat_map(runs, &elem(&1, 1))
    ends = Enum.map(runs, &elem(&1, 0))

    %{
      rate: callers * calls * 1.0e9 / elapsed,
      median_us: median(times) / 1000,
      longest_us: Enum.max(times) / 1000,
      uneven: Enum.max(ends) / median(ends)
    }
  end

  defp start(args), do: RingHost.start_ring(args)

  defp median(values), do: Enum.at(Enum.sort(values), div(length(values), 2))
  defp table(columns, rows), do: IO.write(Tame.TextTable.format(columns, rows))
  defp decimals(value, count), do: :erlang.float_to_binary(value / 1, decimals: count)
end

Bench.Ring.run(System.argv())
