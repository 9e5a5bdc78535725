# What isolation costs and withstands: the figures of tame:isolate/1, each a ratio within one interleaved run, in which
# those that are compared take their turns in orders drawn from a seed that is printed.
#
#   mix run ../bench/isolate.exs              all parts but `many`
#   mix run ../bench/isolate.exs json crash   some of them
#
#   echo    16 B and 64 KiB: isolated against a dirty CPU NIF and a port, in turns
#   busy    the same while two other processes keep all cores busy
#   json    jiffy's decode and encode of 1 KB, 100 KB and 10 MB: isolated against in the VM. Two VMs take turns,
#           because a module is either isolated or not
#   crash   a crash, and the next call answered: 100 crashes a second apart, then 10,000 in a row
#   many    10^7 calls: memory of the VM and of the host before, in the middle, and after (takes minutes)
#
# jiffy: Debian's erlang-jiffy.

Code.require_file("bench.ex", __DIR__)

defmodule Bench.Isolate do
  alias Tame.Latency.Methods

  @seed Tame.Turns.seed()
  @parts ~w(echo busy json crash)

  def run([]), do: run(@parts)

  def run(parts) do
    Bench.known!(parts, ["many" | @parts])
    :ok = :tame_labs_native.build()
    {:ok, _} = Application.ensure_all_started(:tame)

    IO.puts("seed #{@seed}")

    for part <- parts do
      IO.puts("\n== #{part}\n")
      part(part)
    end
  end

  defp part("echo"), do: echo([])

  defp part("busy") do
    echo(for _ <- 1..2, do: spawn_link(fn -> spin() end))
  end

  defp part("json") do
    {:ok, vm, _} = start_peer()
    {:ok, host, _} = start_peer()
    :ok = :peer.call(host, :tame, :isolate, [:jiffy])

    rows =
      for {name, bytes, turns} <- [
            {"1 KB", 1_000, 200},
            {"100 KB", 100_000, 60},
            {"10 MB", 10_000_000, 9}
          ] do
        json = json(bytes)
        {decode_vm, decode_host} = turns(turns, vm, host, :decode, json)
        {encode_vm, encode_host} = turns(turns, vm, host, :encode, json)

        [name | Enum.map([decode_vm, decode_host], &number(&1, 1))] ++
          [number(decode_host / decode_vm, 2)] ++
          Enum.map([encode_vm, encode_host], &number(&1, 1)) ++ [number(encode_host / encode_vm, 2)]
      end

    for peer <- [vm, host], do: :peer.stop(peer)

    table(
      ["JSON", "decode, VM µs", "isolated µs", "ratio", "encode, VM µs", "isolated µs", "ratio"],
      rows
    )
  end

  defp part("crash") do
    {:ok, peer, _} = start_peer()
    apart = :peer.call(peer, Bench.Isolate.There, :crashes, [100, 1000, %{}], 200_000)
    :peer.stop(peer)

    {:ok, peer, _} = start_peer()
    options = %{backoff_ms: {0, 0}, intensity: :infinity}
    before = memory(peer)
    row = :peer.call(peer, Bench.Isolate.There, :crashes, [10_000, 0, options], 600_000)
    later = memory(peer)
    :peer.stop(peer)

    rows =
      for {name, crashes} <- [{"100, a second apart", apart}, {"10000 in a row", row}] do
        times = crashes |> Enum.map(&elem(&1, 1)) |> Enum.sort()
        wrong = Enum.count(crashes, &(elem(&1, 0) != {:sigfpe, [1]}))
        at = &number(Enum.at(times, floor(length(times) * &1)) / 1000, 2)
        [name, at.(0.5), at.(0.99), number(List.last(times) / 1000, 2), to_string(wrong)]
      end

    table(["crashes", "next answer p50 ms", "p99 ms", "max ms", "not as expected"], rows)
    IO.puts("memory of the VM before and after the 10000: #{inspect(before)}, #{inspect(later)}")
  end

  defp part("many") do
    {:ok, peer, _} = start_peer()
    :ok = :peer.call(peer, :tame, :isolate, [:tame_echo_isolated])

    rows =
      for count <- [1_000_000, 1_000_000, 4_000_000, 4_000_000] do
        us = :peer.call(peer, Bench.Isolate.There, :calls, [count], :infinity)

        [
          to_string(count),
          number(us / count, 3) | Enum.map(Tuple.to_list(memory(peer)), &to_string/1)
        ]
      end

    :peer.stop(peer)

    table(
      ["calls", "µs a call", "VM KiB", "VM RSS KiB", "host RSS KiB", "atoms", "processes"],
      rows
    )
  end

  defp echo(spinners) do
    methods = [Methods.NIFDirtyCPU, Methods.Isolated, Methods.Port]

    for method <- methods do
      {:ok, state} = method.open()
      Process.put(method, state)
    end

    for bytes <- [16, 65_536] do
      payload = :binary.copy(<<1>>, bytes)

      samples =
        for method <- turns(methods, 15) do
          state = Process.get(method)
          times = for _ <- 1..1000, do: time(fn -> method.echo(state, payload) end)
          {method, Enum.at(Enum.sort(times), 500)}
        end

      p50 =
        samples
        |> Enum.group_by(&elem(&1, 0), &elem(&1, 1))
        |> Map.new(fn {m, t} -> {m, Enum.at(Enum.sort(t), 7)} end)

      rows =
        for method <- methods, do: [to_string(method.describe().id), number(p50[method] / 1000, 2)]

      IO.puts("#{bytes} bytes")
      table(["method", "p50 µs"], rows)
      [dirty, isolated, port] = Enum.map(methods, &p50[&1])

      IO.puts(
        "isolated ÷ dirty CPU #{number(isolated / dirty, 2)}, port ÷ isolated #{number(port / isolated, 1)}\n"
      )
    end

    for method <- methods, do: method.close(Process.get(method))
    for pid <- spinners, do: Process.unlink(pid) && Process.exit(pid, :kill)
  end

  defp time(fun) do
    start = :erlang.monotonic_time()
    fun.()
    :erlang.monotonic_time() - start
  end

  defp spin, do: spin()

  defp turns(items, rounds), do: Tame.Turns.all(items, rounds, @seed)

  # Medians in µs.
  defp turns(count, vm, host, function, json) do
    samples =
      for {who, peer} <- turns([vm: vm, host: host], count),
          do: {who, :peer.call(peer, Bench.Isolate.There, function, [json], 60_000)}

    median = fn who ->
      samples
      |> Enum.filter(&(elem(&1, 0) == who))
      |> Enum.map(&elem(&1, 1))
      |> Enum.sort()
      |> Enum.at(div(count, 2))
    end

    {median.(:vm), median.(:host)}
  end

  defp json(bytes) do
    row =
      ~s({"id": 12345, "name": "Ada Lovelace", "tags": ["a", "bc", "def"], "score": 3.25, "ok": true, "none": null})

    "[" <> Enum.map_join(1..max(1, div(bytes, byte_size(row))), ",", fn _ -> row end) <> "]"
  end

  # {bytes of the VM, its RSS, the hosts' RSS, atoms, processes}, in KiB where bytes.
  defp memory(peer) do
    :peer.call(peer, Bench.Isolate.There, :memory, [])
  end

  defp start_peer do
    {:ok, peer, node} =
      :peer.start_link(%{
        connection: :standard_io,
        args: Enum.flat_map(:code.get_path(), &[~c"-pa", &1])
      })

    {:module, _} =
      :peer.call(peer, :code, :load_binary, [
        Bench.Isolate.There,
        ~c"isolate.exs",
        Process.get(:there)
      ])

    {:ok, _} = :peer.call(peer, :application, :ensure_all_started, [:tame])
    {:ok, peer, node}
  end

  defp table(columns, rows), do: IO.write(Tame.TextTable.format(columns, rows))
  defp number(value, count), do: :erlang.float_to_binary(value / 1, decimals: count)
end

{:module, _, there, _} =
  defmodule Bench.Isolate.There do
    # Runs in a VM of its own.
    # µs a call; small ones several times in a row, as a server meets them.
    def decode(json), do: us(json, fn -> :jiffy.decode(json, [:return_maps]) end)

    def encode(json) do
      term = :jiffy.decode(json, [:return_maps])
      us(json, fn -> :jiffy.encode(term) end)
    end

    defp us(json, fun) do
      calls = max(1, div(200_000, byte_size(json)))
      :erlang.garbage_collect()
      {us, :ok} = :timer.tc(fn -> Enum.each(1..calls, fn _ -> fun.() end) end)
      us / calls
    end

    # {what the crash and the next call came to, µs from the crash to the answer}.
    def crashes(count, apart_ms, options) do
      :ok = :tame.isolate(:jiffy, options)
      json = "[" <> Enum.map_join(1..20_000, ",", &Integer.to_string/1) <> "]"

      for _ <- 1..count do
        Process.sleep(apart_ms)
        start = :erlang.monotonic_time(:microsecond)

        signal =
          try do
            :jiffy.decode(json, bytes_per_iter: 200)
          catch
            :error, {:tame, {:crashed, %{signal: signal}}} -> signal
          end

        answer = :jiffy.decode("[1]")
        {{signal, answer}, :erlang.monotonic_time(:microsecond) - start}
      end
    end

    def calls(count) do
      {us, :ok} = :timer.tc(fn -> repeat(count) end)
      us
    end

    defp repeat(0), do: :ok

    defp repeat(count) do
      _ = :tame_echo_isolated.echo({count, "some term", [1, 2.5]})
      repeat(count - 1)
    end

    def memory do
      for pid <- Process.list(), do: :erlang.garbage_collect(pid)
      hosts = for %{hosts: hosts} <- Map.values(:tame.info()), host <- hosts, do: host.rss_bytes
      [_, rss | _] = File.read!("/proc/self/statm") |> String.split()

      {div(:erlang.memory(:total), 1024), String.to_integer(rss) * 4, div(Enum.sum(hosts), 1024),
       :erlang.system_info(:atom_count), length(Process.list())}
    end
  end

Process.put(:there, there)
Bench.Isolate.run(System.argv())
