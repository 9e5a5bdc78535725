# What a call of an isolated library costs beside what the memory costs: two processes, one mapping, spinning, copy in,
# read, write, copy out (bench/natives/shm_limit.c), which takes a turn in every round. A machine that is fast in one
# second and slow in the next shows in both; so the ratio of a round is what is compared, and the median of rounds is
# printed with the least and the greatest.
#
#   cd labs && mix run ../bench/limit.exs              all parts
#   cd labs && mix run ../bench/limit.exs echo rates   some of them
#
#   echo       16 B to 256 KiB, back to back: limit, bare, isolated, dirty CPU NIF, port. Bare is a NIF that asks a thread that
#              spins: the least that a call from the VM to another core costs (natives/bench_bare_nif.c)
#   workers    64 KiB by one caller, with 1, 2 and 4 workers
#   callers    1, 16 and 64 callers of a function that takes 1 µs: calls per second, p50, p99, p99.9; in a VM with the schedulers that
#              it has by itself, and in one with a scheduler less, so that the worker has a core to itself; bare beside it
#   rates      20 bytes at 100, 1,000 and 10,000 calls a second, not back to back: isolated, dirty, bare (whose thread sleeps after
#              0.1 ms without a call), and the CPU of each
#   libraries  jiffy and fxml, isolated against in the VM; and what the emulator's own term_to_binary/1 and binary_to_term/2 take
#              for the arguments and the reply (translation)
#   mailbox    a caller with 200,000 messages in its mailbox; the calls wait in receive
#   idle       CPU of an isolated library that nobody calls
#
# jiffy and fxml: Debian's erlang-jiffy and erlang-p1-xml.

Code.require_file("bench.ex", __DIR__)

[{_, there}] = Code.require_file("limit/there.ex", __DIR__)

defmodule Bench.Limit do
  alias Bench.Limit.There
  alias Tame.Latency.Methods

  @seed Tame.Turns.seed()
  @parts ~w(echo workers callers rates libraries mailbox idle)

  def run([], there), do: run(@parts, there)

  def run(parts, there) do
    Bench.known!(parts, @parts)
    true = Bench.natives()
    Process.put(:there, there)
    load = Tame.OtherLoad.start()
    IO.puts("seed #{@seed}")

    for part <- parts do
      IO.puts("\n== #{part}\n")
      part(part)
    end

    IO.puts("\nothers took #{Tame.OtherLoad.percent(load)} % of the cores")
  end

  # ---- the parts --------------------------------------------------------------------------------

  defp part("echo") do
    with_peer(%{}, [:tame_echo_isolated], fn peer ->
      {:ok, port} = Methods.Port.open()

      rows =
        for {bytes, calls} <- [
              {16, 4000},
              {4096, 2000},
              {16_384, 1000},
              {65_536, 500},
              {262_144, 200}
            ] do
          payload = :binary.copy(<<1>>, bytes)

          rounds =
            rounds([:limit, :bare, :isolated, :dirty, :port], 15, fn
              :limit -> limit_ns(bytes, calls)
              :bare -> there(peer, :bare, [:spins, :p50, [{:bench_bare, :echo}, payload, calls]])
              :isolated -> there(peer, :p50, [{:tame_echo_isolated, :echo}, payload, calls])
              :dirty -> there(peer, :p50, [{:bench_limit, :echo_dirty}, payload, calls])
              :port -> port_p50(port, payload, calls)
            end)

          [
            "#{bytes}",
            us(rounds, :limit),
            us(rounds, :bare),
            us(rounds, :isolated),
            ratio(rounds, :isolated, :limit),
            ratio(rounds, :isolated, :bare),
            us(rounds, :dirty),
            us(rounds, :port),
            ratio(rounds, :port, :isolated)
          ]
        end

      Methods.Port.close(port)

      Bench.table(
        [
          "bytes",
          "limit µs",
          "bare µs",
          "isolated µs",
          "isolated ÷ limit",
          "isolated ÷ bare",
          "dirty µs",
          "port µs",
          "port ÷ isolated"
        ],
        rows
      )
    end)
  end

  defp part("workers") do
    payload = :binary.copy(<<1>>, 65_536)

    with_peers(for(n <- [1, 2, 4], do: {n, %{workers: n}}), [:tame_echo_isolated], fn peers ->
      rounds =
        rounds([:limit, 1, 2, 4], 15, fn
          :limit -> limit_ns(65_536, 500)
          n -> there(peers[n], :p50, [{:tame_echo_isolated, :echo}, payload, 500])
        end)

      rows =
        for n <- [1, 2, 4],
            do: ["#{n}", us(rounds, n), ratio(rounds, n, :limit), ratio(rounds, n, 1)]

      Bench.table(["workers", "64 KiB µs", "÷ limit", "÷ one worker"], rows)
    end)
  end

  defp part("callers") do
    with_peers([vm: :none, host: %{}], [:bench_limit], fn peers ->
      for callers <- [1, 16, 64] do
        calls = div(64_000, callers)
        from = [{:vm, 0}, {:host, 0}, {:bare, 0}, {:host, 1}, {:bare, 1}]

        samples =
          turns(from, 7, fn
            {:bare, less} ->
              args = [{:bench_bare, :echo_1us}, <<>>, callers, calls, less]
              there(peers[:vm], :bare, [:spins, :callers, args])

            {who, less} ->
              args = [{:bench_limit, :spin}, 1000, callers, calls, less]
              there(peers[who], :callers, args)
          end)

        for {who, less} <- from do
          {rates, times} = Enum.unzip(samples[{who, less}])

          [p50, p99, p999] =
            for times <- Enum.zip_with(times, & &1), do: Enum.map(times, &(&1 / 1000))

          [
            "#{callers}",
            "#{who}",
            "#{:erlang.system_info(:schedulers_online) - less}",
            Bench.decimals(Bench.median(rates), 0),
            Bench.decimals(Bench.median(p50), 1),
            Bench.decimals(Bench.median(p99), 1),
            "#{Bench.decimals(Enum.min(p99), 1)} to #{Bench.decimals(Enum.max(p99), 1)}",
            Bench.decimals(Bench.median(p999), 1)
          ]
        end
      end
      |> Enum.concat()
      |> then(
        &Bench.table(
          ["callers", "in", "schedulers", "calls/s", "p50 µs", "p99 µs", "of rounds", "p99.9 µs"],
          &1
        )
      )
    end)
  end

  defp part("rates") do
    payload = :binary.copy(<<1>>, 20)

    functions = [
      isolated: {:tame_echo_isolated, :echo},
      dirty: {:bench_limit, :echo_dirty},
      bare: {:bench_bare, :echo},
      nothing: nil
    ]

    with_peer(%{}, [:tame_echo_isolated], fn peer ->
      for per_second <- [100, 1000, 10_000] do
        samples =
          turns(Keyword.keys(functions), 7, fn who ->
            args = [functions[who], payload, per_second, max(100, per_second)]

            if who == :bare,
              do: there(peer, :bare, [:sleeps, :rate, args]),
              else: there(peer, :rate, args)
          end)

        for {who, _} <- functions do
          {p50, cpu} = Enum.unzip(samples[who])

          [
            "#{per_second}",
            "#{who}",
            Bench.decimals(Bench.median(p50) / 1000, 1),
            Bench.decimals(Bench.median(cpu), 1)
          ]
        end
      end
      |> Enum.concat()
      |> then(&Bench.table(["calls/s", "what", "p50 µs", "CPU, % of a core"], &1))
    end)
  end

  defp part("libraries") do
    with_peers([vm: :none, host: %{}], [:jiffy, :fxml_stream, :fxml], fn peers ->
      for {name, function, argument} <- samples() do
        calls = max(1, div(400_000, :erlang.external_size(argument)))
        rounds = if calls == 1, do: 9, else: 41

        args = [function, argument, calls]

        samples =
          [:vm, :host, :translation]
          |> rounds(rounds, fn
            :translation -> there(peers[:vm], :translation_us, args)
            who -> there(peers[who], :us, args)
          end)
          |> Enum.map(&Map.put(&1, :both, &1.vm + &1.translation))

        median = fn who -> Bench.median(for round <- samples, do: round[who]) end

        [
          name,
          Bench.decimals(median.(:vm), 1),
          Bench.decimals(median.(:translation), 1),
          Bench.decimals(median.(:host), 1),
          ratio(samples, :host, :vm),
          ratio(samples, :host, :both)
        ]
      end
      |> then(
        &Bench.table(
          ["call", "in the VM µs", "translation µs", "isolated µs", "÷ VM", "÷ both"],
          &1
        )
      )
    end)
  end

  defp part("mailbox") do
    with_peer(%{spin_us: 0}, [:tame_echo_isolated], fn peer ->
      args = fn messages ->
        [{:tame_echo_isolated, :echo}, "twenty bytes of text", 1000, messages]
      end

      samples = turns([0, 200_000], 9, &there(peer, :mailbox, args.(&1)))

      rows =
        for n <- [0, 200_000],
            do: ["#{n}", Bench.decimals(Bench.median(samples[n]) / 1000, 1)]

      Bench.table(["messages", "p50 µs"], rows)
    end)
  end

  defp part("idle") do
    with_peers([none: :none, isolated: %{}], [:tame_echo_isolated], fn peers ->
      rows =
        for who <- [:none, :isolated] do
          there(peers[who], :p50, [{:tame_echo_isolated, :echo}, 1, 100])
          {vm, hosts} = there(peers[who], :idle, [10])
          ["#{who}", Bench.decimals(vm, 2), Bench.decimals(hosts, 2)]
        end

      Bench.table(["isolated", "VM, % of a core", "host, % of a core"], rows)
    end)
  end

  # ---- what is called ---------------------------------------------------------------------------

  defp samples do
    jiffy =
      for {name, bytes} <- [
            {"1 KB", 1_000},
            {"10 KB", 10_000},
            {"100 KB", 100_000},
            {"10 MB", 10_000_000}
          ],
          json = json(bytes),
          {what, function, argument} <- [
            {"decode", {:jiffy, :decode, [[:return_maps]]}, json},
            {"encode", {:jiffy, :encode, []}, :jiffy.decode(json, [:return_maps])}
          ],
          do: {"jiffy #{what} #{name}", function, argument}

    fxml =
      for {name, bytes} <- [{"1 KB", 1_000}, {"10 KB", 10_000}, {"50 KB", 50_000}],
          xml = xml(bytes),
          {what, function, argument} <- [
            {"parse", {:fxml_stream, :parse_element, []}, xml},
            {"encode", {:fxml, :element_to_binary, []}, :fxml_stream.parse_element(xml)}
          ],
          do: {"fxml #{what} #{name}", function, argument}

    jiffy ++ fxml
  end

  defp json(bytes) do
    row =
      ~s({"id": 12345, "name": "Ada Lovelace", "tags": ["a", "bc", "def"], "score": 3.25, "ok": true, "none": null})

    "[" <> Enum.map_join(1..max(1, div(bytes, byte_size(row))), ",", fn _ -> row end) <> "]"
  end

  defp xml(bytes) do
    row =
      "<message to='ada@example.com' id='m1'><body>Good morning, said the engine.</body><x xmlns='jabber:x:oob'/></message>"

    "<batch>" <> String.duplicate(row, max(1, div(bytes, byte_size(row)))) <> "</batch>"
  end

  defp port_p50(port, payload, calls) do
    times =
      for _ <- 1..calls do
        start = :erlang.monotonic_time()
        _ = Methods.Port.echo(port, payload)
        :erlang.monotonic_time() - start
      end

    Bench.median(times)
  end

  defp limit_ns(bytes, calls) do
    program = Path.join(Path.dirname(:code.which(:bench_limit)), "shm_limit")
    {text, 0} = System.cmd(program, ["#{bytes}", "#{calls}"])
    [p50, _p99] = String.split(text)
    String.to_integer(p50)
  end

  # ---- rounds -----------------------------------------------------------------------------------

  # One map of figures for each round.
  defp rounds(items, count, measure) do
    for round <- Tame.Turns.rounds(items, count, @seed), do: Map.new(round, &{&1, measure.(&1)})
  end

  defp turns(items, count, measure) do
    rounds = rounds(items, count, measure)
    Map.new(items, fn item -> {item, Enum.map(rounds, & &1[item])} end)
  end

  defp us(rounds, item),
    do: rounds |> Enum.map(& &1[item]) |> Bench.median() |> Kernel./(1000) |> Bench.decimals(2)

  defp ratio(rounds, item, other) do
    ratios = for round <- rounds, do: round[item] / round[other]
    [median, least, most] = [Bench.median(ratios), Enum.min(ratios), Enum.max(ratios)]
    "#{Bench.decimals(median, 2)} (#{Bench.decimals(least, 2)}-#{Bench.decimals(most, 2)})"
  end

  # ---- peers ------------------------------------------------------------------------------------

  defp with_peer(options, modules, fun),
    do: with_peers([it: options], modules, &fun.(&1[:it]))

  # The modules are isolated with these options, or run in the VM where they are :none.
  defp with_peers(peers, modules, fun), do: with_peers(peers, modules, %{}, fun)

  defp with_peers([], _modules, started, fun), do: fun.(started)

  defp with_peers([{name, options} | others], modules, started, fun) do
    Bench.in_peer([{There, Process.get(:there)}], fn peer ->
      {:ok, _} = :peer.call(peer, :application, :ensure_all_started, [:tame])

      for app <- [:xmerl, :fast_xml],
          :fxml in modules,
          do: :peer.call(peer, :application, :ensure_all_started, [app])

      for module <- modules,
          options != :none,
          module != :fxml or has_nifs?(module),
          do: :ok = :peer.call(peer, :tame, :isolate, [module, options])

      with_peers(others, modules, Map.put(started, name, peer), fun)
    end)
  end

  defp has_nifs?(module),
    do: {:module, module} == Code.ensure_loaded(module) and module.module_info(:nifs) != []

  defp there(peer, function, args), do: :peer.call(peer, There, function, args, 600_000)
end

Bench.Limit.run(System.argv(), there)
