# What the latency lab's meter costs, and what going through the lab adds to a call.
#
#   mix run ../bench/meter.exs
#
# Four loops of the same shape, in turns within one run, each round in another order, p50 of each in ns:
#
#   empty      the meter around a function that returns its argument (the row beam_call)
#   lab        the meter around the method nif_normal, as the lab runs it
#   by hand    the same loop written out around the same NIF: no behaviour, no fun, no state
#   clock      two readings of the clock with nothing between
#
# Claim: lab / by hand is at most 1.2.

defmodule Bench.Meter do
  @seed Tame.Turns.seed()
  @rounds 40
  @calls 25_000

  def run do
    :ok = :tame_labs_native.build()
    {:ok, nil} = Tame.Latency.Methods.NIFNormal.open()
    payload = :binary.copy(<<1>>, 65_536)
    loops = [empty: &empty/2, lab: &lab/2, by_hand: &by_hand/2, clock: &clock/2]
    histograms = Map.new(loops, fn {name, _} -> {name, :tame_histogram.new()} end)

    # The first round warms up and is thrown away.
    for {_, loop} <- loops, do: loop.(payload, :tame_histogram.new())

    for {name, loop} <- Tame.Turns.all(loops, @rounds, @seed),
        do: loop.(payload, histograms[name])

    p50 = fn name -> :tame_histogram.percentile(histograms[name], 50.0) end
    rows = for {name, _} <- loops, do: [to_string(name), "#{p50.(name)}"]

    IO.puts(
      "#{@rounds} rounds of #{@calls} calls, payload #{byte_size(payload)} bytes, seed #{@seed}\n"
    )

    IO.write(Tame.TextTable.format(["loop", "p50 ns"], rows))
    IO.puts("\nlab / by hand  #{Float.round(p50.(:lab) / p50.(:by_hand), 3)}")
  end

  defp empty(term, histogram) do
    {:ok, _} = :tame_meter.run(&Tame.Latency.Methods.BeamCall.echo/2, nil, term, @calls, histogram)
  end

  defp lab(term, histogram) do
    {:ok, _} = :tame_meter.run(&Tame.Latency.Methods.NIFNormal.echo/2, nil, term, @calls, histogram)
  end

  defp by_hand(term, histogram), do: by_hand(term, histogram, @calls)

  defp by_hand(_term, _histogram, 0), do: :ok

  defp by_hand(term, histogram, count) do
    start = :erlang.monotonic_time()
    back = :tame_echo_nif.echo(term)
    stop = :erlang.monotonic_time()
    ^term = back
    :tame_histogram.record(histogram, :erlang.convert_time_unit(stop - start, :native, :nanosecond))
    by_hand(term, histogram, count - 1)
  end

  defp clock(_term, histogram), do: clock_loop(histogram, @calls)

  defp clock_loop(_histogram, 0), do: :ok

  defp clock_loop(histogram, count) do
    start = :erlang.monotonic_time()
    stop = :erlang.monotonic_time()
    :tame_histogram.record(histogram, :erlang.convert_time_unit(stop - start, :native, :nanosecond))
    clock_loop(histogram, count - 1)
  end
end

Bench.Meter.run()
