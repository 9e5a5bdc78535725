# The tables of the packages' benches: ways to do the same take turns, in another order each round, and are divided by
# one of them. CPU is that of all threads of this VM, user and system: `statistics(runtime)` leaves the system's out.
defmodule Tame.Packages.BenchTable do
  @rounds String.to_integer(System.get_env("BENCH_ROUNDS", "7"))
  @turn_ms String.to_integer(System.get_env("BENCH_TURN_MS", "500"))
  @seed Tame.Turns.seed()

  def turn_ms, do: @turn_ms
  def rounds, do: @rounds

  # What it runs on, and how.
  def head do
    IO.puts(Tame.SystemInfo.text(Tame.SystemInfo.collect("make bench")))
    IO.puts("seed #{@seed}, #{@rounds} rounds of #{@turn_ms} ms a turn; medians of the rounds")
  end

  # `subjects` are {way, what it needs}; a turn gives the value of each column. The third says by which way the others are divided, under a heading.
  def print(title, columns, {heading, reference}, subjects, turn) do
    heads = Enum.map_join(columns, &String.pad_leading(&1, 12))
    IO.puts("\n#{String.pad_trailing(title, 36)}#{heads}   #{heading}")

    results =
      for {way, _} = subject <- Tame.Turns.all(subjects, @rounds, @seed), reduce: %{} do
        seen ->
          :erlang.garbage_collect()
          result = turn.(subject)
          Map.update(seen, way, [result], &[result | &1])
      end

    ones = medians(results[reference])

    for {way, _} <- subjects do
      values = medians(results[way])
      cells = Enum.map_join(values, &String.pad_leading(text(&1), 12))
      ratios = values |> Enum.zip_with(ones, &Float.round(&1 / &2, 2)) |> Enum.join("  ")
      line = "  #{String.pad_trailing("#{way}", 34)}#{cells}"
      IO.puts(if way == reference, do: line, else: "#{line}   #{ratios}")
    end
  end

  defp text(value), do: :erlang.float_to_binary(value, decimals: 2)

  defp medians(rounds), do: rounds |> Enum.zip_with(&Enum.at(Enum.sort(&1), div(length(&1), 2)))

  # µs of a call, and of CPU, over a turn.
  def timed(fun, ms \\ @turn_ms) do
    before = now()
    per(before, repeat(fun, now_ns() + ms * 1_000_000, 0))
  end

  defp repeat(fun, until, calls) do
    for _ <- 1..16, do: fun.()
    if now_ns() < until, do: repeat(fun, until, calls + 16), else: calls + 16
  end

  # What `per` begins with.
  def now, do: {cpu_ns(), now_ns()}

  def per({cpu, at}, calls),
    do: [(now_ns() - at) / calls / 1000, (cpu_ns() - cpu) / calls / 1000]

  defp now_ns, do: System.monotonic_time(:nanosecond)

  defp cpu_ns do
    for thread <- File.ls!("/proc/self/task"), reduce: 0 do
      sum ->
        case File.read("/proc/self/task/#{thread}/schedstat") do
          {:ok, text} -> sum + (text |> String.split() |> hd() |> String.to_integer())
          {:error, _} -> sum
        end
    end
  end
end
