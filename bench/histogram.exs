# What it costs to record one value in tame_histogram, in nanoseconds.
#
#     mix run ../bench/histogram.exs
#
# Each way of recording walks the same kind of list of 100 000 values and calls
# tame_histogram:record/2 for each. The empty loop walks the list and calls nothing. All ways and
# the empty loop take turns in every round, each in another order drawn from a seed, so that what
# disturbs the machine disturbs all alike;
# a cost is the median over the rounds of (way - empty loop) / values.
#
# Beside the nanoseconds stand ratios, which can be compared between machines: to one bare
# :atomics.add/3 into a single slot, and to one reading of the monotonic clock, which every timed
# sample pays at least twice. "2 writers" is the time per record of each of two processes that
# record at once; with one scheduler or a busy machine it says nothing.

defmodule HistogramBench do
  @seed Tame.Turns.seed()
  @rounds 31
  @values 100_000

  def run do
    ways = ways()
    # One round that is not counted: it loads the code and touches all memory.
    one_round(ways)
    IO.puts("seed #{@seed}")
    all = ways |> Tame.Turns.rounds(@rounds, @seed) |> Enum.flat_map(&one_round/1)

    costs =
      Map.new(Enum.group_by(all, &elem(&1, 0), &elem(&1, 1)), fn {k, v} -> {k, Enum.sort(v)} end)

    print(Enum.map(ways, &elem(&1, 0)), costs)
  end

  defp ways do
    h = :tame_histogram.new()
    # Log-uniform values visit all buckets, in an order that the processor cannot foresee.
    mixed = fn -> values(fn -> trunc(:math.exp(:rand.uniform() * :math.log(60.0e9))) end) end
    short = values(fn -> :rand.uniform(2_047) end)
    usual = values(fn -> 1_000 + :rand.uniform(999_000) end)
    long = values(fn -> 1_000_000_000 + :rand.uniform(59_000_000_000) end)
    outside = values(fn -> -:rand.uniform(1_000) end)
    same = List.duplicate(50_000, @values)

    [
      {"one bare :atomics.add/3", :add, [{:atomics.new(1, []), same}]},
      {"one monotonic_time/0", :clock, [{h, same}]},
      {"record, 0 to 2 us", :record, [{h, short}]},
      {"record, 1 us to 1 ms", :record, [{h, usual}]},
      {"record, 1 to 60 s", :record, [{h, long}]},
      {"record, 1 ns to 60 s mixed", :record, [{h, mixed.()}]},
      {"record, out of range", :record, [{h, outside}]},
      {"2 writers, mixed values", :record, [{h, mixed.()}, {h, mixed.()}]},
      {"2 writers, one same value", :record, [{h, same}, {h, same}]}
    ]
  end

  defp values(fun), do: for(_ <- 1..@values, do: fun.())

  # The cost of each way in this round, in ns per value.
  defp one_round(ways) do
    for {name, loop, inputs} <- ways do
      {name, (elapsed_ns(loop, inputs) - elapsed_ns(:empty, inputs)) / @values}
    end
  end

  # The slowest of the writers counts. Each has its values in its own heap before it starts, and a
  # scheduler of its own: by themselves two writers often end up taking turns on one.
  defp elapsed_ns(loop, inputs) do
    bench = self()

    writers =
      for {{h, values}, scheduler} <- Enum.with_index(inputs, 1) do
        writer = fn ->
          send(bench, {:ready, self()})
          receive do: (:go -> :ok)
          :erlang.garbage_collect()
          start = :erlang.monotonic_time()
          loop(loop, values, h)
          stop = :erlang.monotonic_time()
          send(bench, {:done, self(), stop - start})
        end

        :erlang.spawn_opt(writer, [:link, {:scheduler, scheduler}])
      end

    for writer <- writers, do: receive(do: ({:ready, ^writer} -> :ok))
    for writer <- writers, do: send(writer, :go)

    writers
    |> Enum.map(fn writer -> receive(do: ({:done, ^writer, ticks} -> ticks)) end)
    |> Enum.max()
    |> System.convert_time_unit(:native, :nanosecond)
  end

  # The same shape four times: only the call in the middle differs.
  defp loop(:empty, values, h), do: empty(values, h)
  defp loop(:add, values, h), do: add(values, h)
  defp loop(:clock, values, h), do: clock(values, h)
  defp loop(:record, values, h), do: record(values, h)

  defp empty([_ | rest], h), do: empty(rest, h)
  defp empty([], _), do: :ok

  defp add([_ | rest], ref) do
    :atomics.add(ref, 1, 1)
    add(rest, ref)
  end

  defp add([], _), do: :ok

  defp clock([_ | rest], h) do
    _ = :erlang.monotonic_time()
    clock(rest, h)
  end

  defp clock([], _), do: :ok

  defp record([value | rest], h) do
    :tame_histogram.record(h, value)
    record(rest, h)
  end

  defp record([], _), do: :ok

  defp print(names, costs) do
    [add, clock | _] = Enum.map(names, &median(costs[&1]))
    row("", ["ns", "fastest", "slowest", "x add", "x clock"])

    for name <- names do
      cost = median(costs[name])
      figures = [cost, hd(costs[name]), List.last(costs[name]), cost / add, cost / clock]
      row(name, Enum.map(figures, &:erlang.float_to_binary(&1, decimals: 1)))
    end

    IO.puts("""

    ns: median of #{@rounds} rounds of #{@values} values, without the loop; fastest and slowest round.
    OTP #{System.otp_release()}, #{:erlang.system_info(:emu_flavor)}, \
    #{:erlang.system_info(:build_type)} build, #{System.schedulers_online()} schedulers online.
    """)
  end

  defp row(name, figures) do
    IO.puts(String.pad_trailing(name, 28) <> Enum.map_join(figures, &String.pad_leading(&1, 9)))
  end

  defp median(sorted), do: Enum.at(sorted, div(length(sorted), 2))
end

HistogramBench.run()
