defmodule Tame.Latency do
  @moduledoc """
  The latency lab: what does each way of getting a term to native code and back cost?

      iex> Tame.Latency.compare({:binary.copy(<<1>>, 65_536)}, 100_000)

  prints a table, fastest first. `measure/3` returns the same as data, from which the table, the JSON and the report
  are made. The ways are `Tame.Latency.Methods`.

  Methods take turns, in each round in another order. The *spread* of a p50 is that of the quickest and of the slowest
  round: that is the noise, and medians that lie further apart than that are different (`Tame.Stats.agree?/2`).

  Every call is timed by itself, from just before it to just after it, and every sample is kept in
  a histogram (`:tame_histogram`). What came back is compared with what was sent, outside the timed
  part. The row `beam_call` is what the meter itself costs; it is shown and never subtracted.

  ## What it cannot see

  The lab measures one caller at a time, on a machine that does nothing else, and so neither what a method does to its
  neighbours nor how it behaves under load. The first call after idle time costs more than the calls here, where
  threads on both sides still spin (see the busy-wait flags in the machine block).
  """

  alias Tame.Latency.{Format, Methods, Runner}
  alias Tame.{OtherLoad, Stats, SystemInfo, Turns, Warning}

  @typedoc "One method's row. Times in microseconds; `nil` where the method was not measured."
  @type row :: %{
          id: String.t(),
          status: String.t(),
          reason: nil | String.t(),
          isolation: String.t(),
          data_type: String.t(),
          context_switch: String.t(),
          count: non_neg_integer(),
          p50_us: nil | float(),
          p50_spread_us: nil | Stats.spread(),
          p90_us: nil | float(),
          p99_us: nil | float(),
          p999_us: nil | float(),
          max_us: nil | float(),
          mean_us: nil | float(),
          gc_runs: non_neg_integer(),
          out_of_range: non_neg_integer(),
          percentiles: [[float()]],
          histogram: nil | :tame_histogram.histogram()
        }

  @type result :: %{
          tool: String.t(),
          format: pos_integer(),
          system: SystemInfo.t(),
          warnings: [Warning.t()],
          payload_bytes: non_neg_integer(),
          iterations: pos_integer(),
          rounds: pos_integer(),
          seed: Turns.seed(),
          command: String.t(),
          methods: [row()]
        }

  @typedoc """
  How to measure:

    * `:methods` - modules to measure (default: all of `Tame.Latency.Methods.all/0`)
    * `:rounds` - turns that each method takes (default: 10)
    * `:seed` - of the order in each round (default: a new one)
    * `:command` - the command line, for the record (default: `"Tame.Latency.measure"`)
    * `:progress` - called before each turn, see `t:Tame.Latency.Runner.progress/0`
  """
  @type option ::
          {:methods, [module()]}
          | {:rounds, pos_integer()}
          | {:seed, Turns.seed()}
          | {:command, String.t()}
          | {:progress, Runner.progress()}

  @default_rounds 10

  # Below this many samples, fewer than ten lie beyond the 99.9th percentile.
  @enough_samples 10_000

  @doc "The number of turns when none is asked for."
  @spec default_rounds() :: pos_integer()
  def default_rounds, do: @default_rounds

  @doc """
  Measures `iterations` echoes of `term` by every method and prints the tables.
  """
  @spec compare(term(), pos_integer(), [option()]) :: :ok
  def compare(term, iterations, options \\ []) do
    term |> measure(iterations, options) |> Format.text() |> IO.write()
  end

  @doc """
  Measures `iterations` echoes of `term` by each method, in turns, and returns the result as data.
  """
  @spec measure(term(), pos_integer(), [option()]) :: result()
  def measure(term, iterations, options \\ []) when is_integer(iterations) and iterations > 0 do
    options =
      Keyword.validate!(options, [
        :methods,
        :seed,
        rounds: @default_rounds,
        command: "Tame.Latency.measure",
        progress: fn _ -> :ok end
      ])

    modules = options[:methods] || Methods.all()
    seed = options[:seed] || Turns.seed()
    with {:error, why} <- :tame_labs_native.build(), do: raise(why)

    system = SystemInfo.collect(options[:command])
    load = OtherLoad.start()

    [rows] = rows(modules, [term], iterations, options[:rounds], seed, options[:progress])
    system = SystemInfo.ended(system, load)

    %{
      tool: "tame.latency",
      format: 1,
      system: system,
      warnings: SystemInfo.warnings(system) ++ warnings(rows),
      payload_bytes: payload_bytes(term),
      iterations: iterations,
      rounds: options[:rounds],
      seed: seed,
      command: options[:command],
      methods: rows
    }
  end

  @doc """
  The rows of a result alone, for each term: for one who says of the machine once what holds for several, and whose terms
  are to be compared, so that they share the rounds.
  """
  @spec rows([module()], [term()], pos_integer(), pos_integer(), Turns.seed(), (map() -> any())) ::
          [[row()]]
  def rows(modules, terms, iterations, rounds, seed, progress) do
    for outcomes <- Runner.run(modules, terms, iterations, rounds, seed, progress),
        do: Enum.map(outcomes, &row/1)
  end

  # A binary by its own size, as --bytes asks for it; any other term by its external size.
  defp payload_bytes(term) when is_binary(term), do: byte_size(term)
  defp payload_bytes(term), do: :erlang.external_size(term)

  @doc "Whether every method that could start ended well."
  @spec ok?(result()) :: boolean()
  def ok?(result), do: Enum.all?(result.methods, &(&1.status != "failed"))

  defp row(%Runner{status: :ok, histogram: histogram} = outcome) do
    Map.merge(blank(outcome), %{
      count: :tame_histogram.count(histogram),
      p50_us: percentile_us(histogram, 50.0),
      p50_spread_us: outcome.p50s_ns |> Enum.map(&us/1) |> Stats.spread(),
      p90_us: percentile_us(histogram, 90.0),
      p99_us: percentile_us(histogram, 99.0),
      p999_us: percentile_us(histogram, 99.9),
      max_us: us(:tame_histogram.max(histogram)),
      mean_us: us(:tame_histogram.mean(histogram)),
      gc_runs: outcome.gc_runs,
      out_of_range: :tame_histogram.out_of_range(histogram),
      percentiles: percentiles(histogram),
      histogram: histogram
    })
  end

  defp row(outcome), do: blank(outcome)

  defp blank(%Runner{module: module, status: status, reason: reason}) do
    description = module.describe()

    %{
      id: Atom.to_string(description.id),
      status: Atom.to_string(status),
      reason: reason,
      isolation: Atom.to_string(description.isolation),
      data_type: description.data_type,
      context_switch: description.context_switch,
      count: 0,
      p50_us: nil,
      p50_spread_us: nil,
      p90_us: nil,
      p99_us: nil,
      p999_us: nil,
      max_us: nil,
      mean_us: nil,
      gc_runs: 0,
      out_of_range: 0,
      percentiles: [],
      histogram: nil
    }
  end

  defp percentile_us(histogram, percentile) do
    us(:tame_histogram.percentile(histogram, percentile))
  end

  defp us(ns), do: ns / 1000

  # Five points for each halving of the distance to 100 %, as in HdrHistogram's own plots.
  defp percentiles(histogram) do
    for {percentile, ns, _count} <- :tame_histogram.percentiles(histogram, 5) do
      [percentile, us(ns)]
    end
  end

  defp warnings(rows) do
    measured = Enum.filter(rows, &(&1.status == "ok"))
    floor = Enum.find(measured, &(&1.id == "beam_call"))
    fastest = measured |> List.delete(floor) |> Enum.min_by(& &1.p50_us, fn -> nil end)
    lost = Enum.filter(measured, &(&1.out_of_range > 0))

    Warning.select([
      {Enum.any?(measured, &(&1.count < @enough_samples)), :too_few_samples,
       fn ->
         "With fewer than #{@enough_samples} samples a method, p99.9 rests on fewer than ten of them. " <>
           "Ask for more with --iterations."
       end},
      {floor != nil and fastest != nil and floor.p50_us > 0.2 * fastest.p50_us, :overhead_visible,
       fn ->
         "The meter itself costs #{floor.p50_us} µs (beam_call), which is part of every row and not " <>
           "subtracted; for #{fastest.id} it is #{round(100 * floor.p50_us / fastest.p50_us)} % of p50."
       end},
      {lost != [], :out_of_range,
       fn ->
         "Outside the histogram (over 60 s) and in no figure: " <>
           Enum.map_join(lost, ", ", &"#{&1.out_of_range} of #{&1.id}") <> "."
       end}
    ])
  end
end
