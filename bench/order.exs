# Does the order in which a lab measures, or who else is measured, decide its figures? Runs labs several times, each time in
# another shuffled order and with other company, and prints whether medians agree within the spreads that the labs state
# themselves (Tame.Stats.agree?/2).
#
#     mix run ../bench/order.exs                       all parts
#     mix run ../bench/order.exs reductions latency    some of them
#
#   reductions  all variants under two seeds, and exor_yielding after two different ones alone; fresh pages and pages at hand
#               of one variant are compared too: they must not agree, or the spreads are too wide to tell anything
#   latency     all methods but the Java ones under two seeds, and three of them alone
#   contention  four cells under two seeds, and two of them alone
#   isolation   calls of two sizes under two seeds, and of one size alone
#   native_io   all methods under two seeds, and two of them alone; a package that is not built has no row
#   digest      all ways to hash two sizes under two seeds, and one size alone
#   load        what a request costs and three placements under two seeds, and two of them alone
#   calibrate   under three seeds
#   audit       the largest of growing inputs, after the smaller ones and alone in its VM

Code.require_file("bench.ex", __DIR__)

defmodule Bench.Order do
  alias Tame.{Calibrate, Contention, Digest, Isolation, Latency, Load, NativeIO, OtherLoad}
  alias Tame.{Reductions, Stats}

  @parts ~w(reductions latency contention isolation native_io digest load calibrate audit)

  @bytes 64 * 1024 * 1024

  def run([]), do: run(@parts)

  def run(parts) do
    Bench.known!(parts, @parts)
    :ok = :tame_labs_native.build()
    {:ok, _} = Application.ensure_all_started(:tame)

    for part <- parts do
      load = OtherLoad.start()
      started = System.monotonic_time(:second)
      IO.puts("\n== #{part}\n")
      part |> part() |> print()
      seconds = System.monotonic_time(:second) - started
      IO.puts("#{seconds} s, others took #{OtherLoad.percent(load)} % of all CPU time")
    end
  end

  # Each part gives its runs: figures by name, each as its median and its spread.
  defp part("reductions") do
    runs =
      for {only, seed} <- [
            {nil, 1},
            {nil, 2},
            {~w(exor exor_yielding), 3},
            {~w(exor_chunks exor_yielding), 4}
          ] do
        {:ok, variants} =
          if only, do: Reductions.Variants.fetch(only), else: {:ok, Reductions.Variants.builtin()}

        Reductions.measure(@bytes, variants: variants, seed: seed)
      end

    told_apart(runs)

    for result <- runs do
      for row <- result.variants,
          {pages, figures} <- [{"at hand", row}, {"fresh", row.fresh}],
          {title, key} <- [{"ms", :elapsed_us}, {"page faults", :page_faults}],
          into: %{},
          do: {"#{row.id}, #{pages}, #{title}", scaled(figures[key], figures.spread[key], key)}
    end
  end

  defp part("latency") do
    java = [Latency.Methods.JavaNode]
    all = Latency.Methods.all() -- java
    few = Enum.filter(all, &(&1.describe().id in [:nif_normal, :nif_dirty_cpu, :port]))
    term = {:binary.copy(<<1>>, 65_536)}

    for {methods, seed} <- [{all, 1}, {all, 2}, {few, 3}] do
      for row <- Latency.measure(term, 20_000, methods: methods, seed: seed).methods,
          row.status == "ok",
          into: %{},
          do: {"#{row.id}, p50 µs", {row.p50_us, row.p50_spread_us}}
    end
  end

  defp part("contention") do
    for {placements, seed} <- [
          {~w(inline dirty_cpu yielding pool), 1},
          {~w(inline dirty_cpu yielding pool), 2},
          {~w(yielding pool), 3}
        ] do
      result =
        Contention.measure(
          placements: placements,
          durations: [10_000],
          multipliers: [100],
          rounds: 5,
          seed: seed
        )

      for cell <- result.cells,
          {title, key} <- [{"p50 ms", :neighbour_p50_us}, {"longest ms", :neighbour_max_us}],
          into: %{},
          do: {"#{cell.placement}, neighbour #{title}", scaled(cell[key], cell.spread[key], key)}
    end
  end

  defp part("isolation") do
    for {sizes, seed} <- [{[16, 65_536], 1}, {[65_536, 16], 2}, {[65_536], 3}] do
      for row <- Isolation.Calls.measure(sizes, 20_000, 5, seed, fn _ -> :ok end),
          row.status == "ok",
          into: %{},
          do: {"#{row.method}, #{row.bytes} B, p50 µs", {row.p50_us, row.p50_spread_us}}
    end
  end

  defp part("native_io") do
    all = NativeIO.methods()
    few = Enum.filter(all, &(&1.describe().id in [:socket_otp, :nng_nif]))
    sizes = [64, 65_536]
    terms = for bytes <- sizes, do: :binary.copy(<<1>>, bytes)

    for {methods, seed} <- [{all, 1}, {all, 2}, {few, 3}] do
      rows = Latency.rows(methods, terms, 10_000, 10, seed, fn _ -> :ok end)

      for {bytes, rows} <- Enum.zip(sizes, rows), row <- rows, row.status == "ok", into: %{} do
        {"#{row.id}, #{bytes} B, p50 µs", {row.p50_us, row.p50_spread_us}}
      end
    end
  end

  defp part("digest") do
    for {sizes, seed} <- [{[1024, 4_194_304], 1}, {[4_194_304, 1024], 2}, {[4_194_304], 3}] do
      for bytes <- sizes, row <- Digest.Calls.measure(bytes, 5, seed), into: %{} do
        {"#{row.way}, #{bytes} B, µs", {row.us, row.spread_us}}
      end
    end
  end

  defp part("load") do
    for {placements, seed} <- [
          {~w(yielding dirty_cpu pool), 1},
          {~w(yielding dirty_cpu pool), 2},
          {~w(yielding pool), 3}
        ] do
      result =
        Load.measure(placements: placements, jobs: [10_000], for_ms: 3000, rounds: 5, seed: seed)

      cells =
        for cell <- result.cells,
            {title, key} <- [{"hello p50 ms", :hello_p50_us}, {"hello p99 ms", :hello_p99_us}],
            do: {"#{cell.placement}, #{title}", scaled(cell[key], cell.spread[key], :us)}

      capacity =
        for row <- result.capacity do
          {"#{row.server} #{row.protocol}, CPU µs",
           {row.server_us_per_request, row.spread.server_us_per_request}}
        end

      Map.new(cells ++ capacity)
    end
  end

  defp part("calibrate") do
    for seed <- 1..3 do
      {:ok, %{calibration: calibration}} = Calibrate.measure(Calibrate.targets(), "bench", seed)

      costs =
        for {way, ns} <- calibration.costs_ns,
            do: {"#{way}, µs", scaled(ns, calibration.costs_spread_ns[way], :ns_us)}

      rates =
        for {{_, nif, _}, job} <- calibration.jobs,
            do: {"#{nif}, units/ms", {job.units_per_ms, job.units_per_ms_spread}}

      Map.new(costs ++ rates)
    end
  end

  # Without a seed, because sizes only grow: what can be compared is a size with and without those before it.
  defp part("audit") do
    for sizes <- [[65_536, 1_048_576, 16_777_216], [16_777_216]] do
      for name <- [:exor_inline, :exor_dirty], into: %{} do
        rounds = for _ <- 1..5, do: largest_us({:tame_exor, name, 2}, sizes)

        {"#{name}, 16 MiB, quickest call ms",
         scaled(Stats.median(rounds), Stats.spread(rounds), :us)}
      end
    end
  end

  # As Tame.Audit.Dynamic calls it: once, and again.
  defp largest_us(mfa, sizes) do
    {:ok, peer} = Tame.Audit.Peer.start()

    times =
      for bytes <- sizes do
        spec = %{target: mfa, input: [:binary], bytes: bytes, limit_ms: 10_000}
        {:ok, {:ok, first}} = Tame.Audit.Peer.call(peer, :tame_audit, :call, [spec], 20_000)
        {:ok, {:ok, more, _}} = Tame.Audit.Peer.call(peer, :tame_audit, :again, [spec, 2], 60_000)
        Enum.min(for call <- [first | more], do: call.elapsed_ns) / 1000
      end

    Tame.Audit.Peer.stop(peer)
    List.last(times)
  end

  defp scaled(median, [low, high], key) do
    by = if key in [:page_faults], do: 1, else: 1000
    {median / by, [low / by, high / by]}
  end

  defp told_apart([%{variants: rows} | _]) do
    [by_time, by_faults] =
      for key <- [:elapsed_us, :page_faults] do
        Enum.count(rows, fn %{fresh: fresh} = row ->
          not Stats.agree?({row[key], row.spread[key]}, {fresh[key], fresh.spread[key]})
        end)
      end

    IO.puts(
      "fresh pages and pages at hand are told apart for #{by_time} of #{length(rows)} variants by time, " <>
        "for #{by_faults} by page faults\n"
    )
  end

  defp print(runs) do
    names = runs |> Enum.flat_map(&Map.keys/1) |> Enum.uniq() |> Enum.sort()

    rows =
      for name <- names do
        seen = for %{^name => figure} <- runs, do: figure
        {medians, spreads} = Enum.unzip(seen)
        [low, high] = Enum.max_by(spreads, fn [low, high] -> high - low end)

        {agree?(seen),
         [name | for(run <- runs, do: median(run[name]))] ++
           [Tame.Number.short(high - low), Tame.Number.short(Enum.max(medians) - Enum.min(medians))] ++
           [if(agree?(seen), do: "yes", else: "NO")]}
      end

    columns =
      ["figure" | for({_, n} <- Enum.with_index(runs, 1), do: "run #{n}")] ++
        ["widest spread", "medians differ by", "agree"]

    IO.write(Tame.TextTable.format(columns, Enum.map(rows, &elem(&1, 1))))
    IO.puts("\n#{Enum.count(rows, &elem(&1, 0))} of #{length(rows)} figures agree in all runs")
  end

  defp agree?(seen), do: Enum.all?(for(a <- seen, b <- seen, do: Stats.agree?(a, b)))

  defp median(nil), do: "-"
  defp median({median, _}), do: Tame.Number.short(median)
end

Bench.Order.run(System.argv())
