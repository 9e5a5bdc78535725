defmodule Tame.Calibrate do
  @moduledoc """
  Runs jobs until their rates are known (`:tame.calibration/0`) and measures what this machine's placements cost
  (`Tame.Calibrate.Costs`), in rounds, in an order drawn from a seed. A cost is the median of the rounds. A rate is the
  greatest of them: a library tells what it measured last, and others on the machine only slow that down. The spread
  of a figure is its least and its greatest round. `mix tame.calibrate` is its door.
  """

  alias Tame.Calibrate.Costs
  alias Tame.{Number, OtherLoad, Result, Stats, SystemInfo, TextTable, Turns, Warning}

  @typedoc "A call of a job: module, function, arguments."
  @type target :: {module(), atom(), [term()]}

  @typedoc """
  The costs of the ways out of a scheduler, their break-even points, and each job's rates by its NIF, all with their
  spreads.
  """
  @type calibration :: %{
          costs_ns: Costs.t(),
          costs_spread_ns: %{atom() => Stats.spread()},
          break_even_us: %{atom() => non_neg_integer()},
          jobs: %{{module(), atom(), arity()} => map()}
        }

  @type result :: %{
          system: keyword(),
          warnings: [Warning.t()],
          rounds: pos_integer(),
          seed: Turns.seed(),
          calibration: calibration()
        }

  @rounds 10

  # A job tells its rate every 100 ms, so there is one of this round.
  @target_ms 120

  @exor_bytes 1024 * 1024

  @doc "The jobs that ship with the labs, and those of `config :tame_labs, calibrate: [{module, function, args}]`."
  @spec targets() :: [target()]
  def targets do
    binary = :binary.copy(<<1>>, @exor_bytes)

    [{:tame_exor, :exor, [binary, binary]}, {:tame_spin, :spin, [1000]}] ++
      Application.get_env(:tame_labs, :calibrate, [])
  end

  @doc "Calls each target in each round, and measures. A target that raises is an error, named."
  @spec measure([target()], String.t(), Turns.seed()) :: {:ok, result()} | {:error, String.t()}
  def measure(targets, command, seed \\ Turns.seed()) do
    system = SystemInfo.collect(command)
    load = OtherLoad.start()

    with {:ok, rounds} <- rounds(targets, seed) do
      system = SystemInfo.ended(system, load)

      {:ok,
       %{
         system: system,
         warnings: SystemInfo.warnings(system),
         rounds: @rounds,
         seed: seed,
         calibration: calibration(rounds)
       }}
    end
  end

  defp rounds(targets, seed) do
    targets
    |> Turns.rounds(@rounds, seed)
    |> Enum.reduce_while({:ok, []}, fn order, {:ok, rounds} ->
      case call_all(order) do
        :ok -> {:cont, {:ok, [one_round(seed + length(rounds)) | rounds]}}
        error -> {:halt, error}
      end
    end)
  end

  defp one_round(seed) do
    %{jobs: jobs} = :tame.calibration()
    # tame_echo is called to measure something else.
    jobs = :maps.filter(fn {module, _, _}, _ -> module != :tame_echo end, jobs)
    %{jobs: jobs, costs: Costs.measure(seed)}
  end

  defp calibration(rounds) do
    costs = for round <- rounds, pair <- round.costs, do: pair
    jobs = for round <- rounds, pair <- round.jobs, do: pair
    costs_ns = Map.new(by_key(costs), fn {way, ns} -> {way, Stats.median(ns)} end)

    %{
      costs_ns: costs_ns,
      costs_spread_ns: Map.new(by_key(costs), fn {way, ns} -> {way, Stats.spread(ns)} end),
      break_even_us: Costs.break_even_us(costs_ns),
      jobs: Map.new(by_key(jobs), fn {row, rates} -> {row, job(rates)} end)
    }
  end

  defp by_key(pairs), do: Enum.group_by(pairs, &elem(&1, 0), &elem(&1, 1))

  defp job(rates) do
    rates
    |> Enum.max_by(& &1.units_per_ms)
    |> Map.put(:units_per_ms_spread, rates |> Enum.map(& &1.units_per_ms) |> Stats.spread())
  end

  defp call_all(targets) do
    Enum.reduce_while(targets, :ok, fn target, :ok ->
      case call(target, System.monotonic_time(:millisecond) + @target_ms) do
        :ok -> {:cont, :ok}
        {:error, message} -> {:halt, {:error, message}}
      end
    end)
  end

  defp call({module, function, args} = target, until) do
    apply(module, function, args)
    if System.monotonic_time(:millisecond) < until, do: call(target, until), else: :ok
  rescue
    error ->
      name = inspect({module, function, length(args)})
      why = error |> Exception.message() |> String.split("\n") |> hd()
      {:error, "config :tame_labs, calibrate: #{name} failed: #{why}"}
  end

  @doc "The result as a page of text."
  @spec text(result()) :: iodata()
  def text(%{system: system, calibration: calibration} = result) do
    body = [
      "What a way out costs, and from what length of work on it is cheaper than the hops of yielding\n\n",
      TextTable.format(["way", "costs µs", "spread %", "break-even µs"], ways(calibration)),
      "\nWhat fits, in each job's own unit: a slice (#{:tame_job_rates.slice_us()} µs), an inline call (1 ms), before auto moves (100 ms)\n\n",
      TextTable.format(
        ["job", "units/ms", "spread %", "slice", "inline", "auto"],
        jobs(calibration)
      ),
      "\n#{result.rounds} rounds, seed #{result.seed}. A cost is their median, a rate the greatest of them, because others on the machine\n" <>
        "only slow a job down; spread: from the least round to the greatest, as a share of the figure.\n"
    ]

    Result.text(system, body, result.warnings)
  end

  defp ways(%{costs_ns: costs, costs_spread_ns: spreads, break_even_us: break_even}) do
    for way <- [:hop, :dirty_hop, :pool, :thread] do
      [
        to_string(way),
        Number.short(costs[way] / 1000),
        spread(spreads[way], costs[way]),
        to_string(break_even[way] || "-")
      ]
    end
  end

  defp jobs(%{jobs: jobs}) do
    for {{module, nif, arity}, job} <- Enum.sort(jobs) do
      units = [job.slice_units, job.inline_units, job.yielding_units]

      [
        "#{module}:#{nif}/#{arity}",
        Number.short(job.units_per_ms),
        spread(job.units_per_ms_spread, job.units_per_ms)
        | Enum.map(units, &Number.grouped/1)
      ]
    end
  end

  defp spread(spread, median), do: spread |> Stats.spread_percent(median) |> Number.short() || "-"

  @doc "The result as JSON; format 1."
  @spec json(result()) :: iodata()
  def json(%{system: system, calibration: calibration} = result) do
    jobs =
      for {{module, nif, arity}, job} <- Enum.sort(calibration.jobs) do
        Map.merge(job, %{module: module, nif: nif, arity: arity})
      end

    head = %{tool: "tame.calibrate", format: 1, system: system, warnings: result.warnings}

    Result.json(head,
      rounds: result.rounds,
      seed: result.seed,
      costs_ns: calibration.costs_ns,
      costs_spread_ns: calibration.costs_spread_ns,
      break_even_us: calibration.break_even_us,
      jobs: jobs
    )
  end
end
