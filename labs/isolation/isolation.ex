defmodule Tame.Isolation do
  @moduledoc """
  The isolation lab: what does it cost to run a NIF library in an OS process of its own (`:tame.isolate/1`), and what is
  it like when that process crashes?

      iex> Tame.Isolation.run(which: :quick)

  prints the tables. `measure/1` returns the same as data, from which the tables, the JSON and the report are made.

    * *calls by size* - the same binary there and back by an isolated NIF, a dirty CPU NIF and a port: methods of the
      latency lab, in its turns (`Tame.Latency`), one for each size in each round. A dirty NIF passes a large binary on by
      reference; the other two copy it
    * *crashes* - a library with a fault in it is called, in a VM of its own (`:tame_crashes`). When the call raised, when
      the next one was answered, and how many calls of another process were answered in each millisecond meanwhile.
      Crashes are more than a second apart, so each is a first one, after which a host starts again at once
    * *memory* - of the VM and of the host while one call follows the other (`:tame_many_calls`), after a garbage
      collection of every process

  ## What it cannot see

  One caller at a time, on a machine that does nothing else. The library does nothing but return its argument: what a
  real one needs in memory comes on top of the host's own.
  """

  alias Tame.Isolation.{Calls, Crashes, Format, Memory}
  alias Tame.{OtherLoad, SystemInfo, Turns, Warning}

  @typedoc "Lists, maps, texts and numbers, as JSON has them."
  @type result :: %{
          tool: String.t(),
          format: pos_integer(),
          system: SystemInfo.t(),
          warnings: [Warning.t()],
          command: String.t(),
          iterations: pos_integer(),
          rounds: pos_integer(),
          seed: Turns.seed(),
          calls: [Calls.row()],
          crashes: Crashes.result(),
          memory: Memory.result()
        }

  @typedoc """
  What to measure:

    * `:which` - `:quick` or `:default`: what the other defaults are
    * `:sizes` - in bytes (default: 16, 256, 4096, 65536, 1048576)
    * `:iterations` - calls of each way and size, `:crashes`, `:calls` - calls between which memory is looked at
      (defaults: `defaults/1`)
    * `:seed` - of the order in each round (default: a new one)
    * `:command` - the command line, for the record
    * `:progress` - called before each part with `%{what: text, done: n, total: m}`
  """
  @type option :: {atom(), term()}

  @sizes [16, 256, 4096, 65_536, 1_048_576]

  # Of the calls by size; fewer rounds would say little of the noise.
  @rounds 5

  # Beyond this a p99 rests on ten calls at least.
  @enough_calls 1000

  # Memory that has grown by more from the middle to the end of many calls is worth a warning: by this share, and by this
  # much, because an allocator takes what it needs in blocks.
  @grown_share 0.05
  @grown_bytes 2_000_000

  @doc "The sizes when none are asked for, in bytes."
  @spec default_sizes() :: [pos_integer()]
  def default_sizes, do: @sizes

  @doc "How much is measured."
  @spec defaults(:quick | :default) :: %{
          iterations: pos_integer(),
          crashes: pos_integer(),
          calls: pos_integer()
        }
  def defaults(:quick), do: %{iterations: 1000, crashes: 3, calls: 50_000}
  def defaults(:default), do: %{iterations: 10_000, crashes: 10, calls: 2_000_000}

  @doc "Measures and prints the tables."
  @spec run([option()]) :: :ok
  def run(options \\ []), do: options |> measure() |> Format.text() |> IO.write()

  @doc "Measures all three, one after the other, and returns the result as data."
  @spec measure([option()]) :: result()
  def measure(options \\ []) do
    options =
      Keyword.validate!(options, [
        :iterations,
        :crashes,
        :calls,
        :seed,
        which: :default,
        sizes: @sizes,
        command: "Tame.Isolation.measure",
        progress: fn _ -> :ok end
      ])

    given = for {key, value} <- options, value != nil, into: %{}, do: {key, value}
    options = options[:which] |> defaults() |> Map.merge(given)
    seed = options[:seed] || Turns.seed()
    with {:error, why} <- :tame_labs_native.build(), do: raise(why)

    system = SystemInfo.collect(options.command)
    load = OtherLoad.start()
    calls = Calls.measure(options.sizes, options.iterations, @rounds, seed, options.progress)
    parts = length(options.sizes)
    options.progress.(%{what: "crashes", done: parts, total: parts + 2})
    crashes = Crashes.measure(options.crashes)
    options.progress.(%{what: "memory", done: parts + 1, total: parts + 2})
    memory = Memory.measure(options.calls)
    system = SystemInfo.ended(system, load)

    result = %{
      tool: "tame.isolation",
      format: 1,
      system: system,
      warnings: [],
      command: options.command,
      iterations: options.iterations,
      rounds: @rounds,
      seed: seed,
      calls: calls,
      crashes: crashes,
      memory: memory
    }

    %{result | warnings: SystemInfo.warnings(system) ++ warnings(result)}
  end

  @doc "Whether all that could be tried went well."
  @spec ok?(result()) :: boolean()
  def ok?(result) do
    not Enum.any?([result.crashes, result.memory | result.calls], &(&1.status == "failed"))
  end

  @doc "What a reader must know about this result, beside the machine."
  @spec warnings(result()) :: [Warning.t()]
  def warnings(result) do
    measured = Enum.filter(result.calls, &(&1.status == "ok"))
    grown = Memory.grown(result.memory.rows)

    Warning.select([
      {Enum.any?(measured, &(&1.count < @enough_calls)), :too_few_samples,
       fn ->
         "With fewer than #{@enough_calls} calls of a size, its p99 rests on fewer than ten of them. " <>
           "Ask for more with --iterations."
       end},
      {Enum.any?(result.crashes.crashes, &(&1.error != "sigsegv")), :other_error,
       fn -> "A crash raised something other than the signal that ended the host." end},
      {Enum.any?(grown, fn {_, bytes, share} -> bytes > @grown_bytes and share > @grown_share end),
       :memory_grew,
       fn ->
         "In the second half of the calls memory grew: " <>
           Enum.map_join(grown, ", ", fn {who, bytes, share} ->
             "#{who} by #{Float.round(bytes / 1_000_000, 1)} MB (#{round(100 * share)} %)"
           end) <> ". Measure for longer with --calls: what leaks goes on growing."
       end}
    ])
  end
end
