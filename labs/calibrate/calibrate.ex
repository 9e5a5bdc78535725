defmodule Tame.Calibrate do
  @moduledoc """
  Runs jobs until their rates are known, then measures what this machine's placements cost (`Tame.Calibrate.Costs`) and
  reads the rates (`:tame.calibration/0`). `mix tame.calibrate` is its door.
  """

  alias Tame.Calibrate.Costs
  alias Tame.{Number, SystemInfo, TextTable}

  @typedoc "A call of a job: module, function, arguments."
  @type target :: {module(), atom(), [term()]}

  @typedoc "The costs of the ways out of a scheduler, their break-even points, and each job's rates by its NIF."
  @type calibration :: %{
          costs_ns: Costs.t(),
          break_even_us: %{atom() => non_neg_integer()},
          jobs: %{{module(), atom(), arity()} => map()}
        }

  @type result :: %{system: keyword(), calibration: calibration()}

  # A job tells its rate every 100 ms; the second rate is a warm one.
  @target_ms 300

  @exor_bytes 1024 * 1024

  @doc "The jobs that ship with the labs, and those of `config :tame_labs, calibrate: [{module, function, args}]`."
  @spec targets() :: [target()]
  def targets do
    binary = :binary.copy(<<1>>, @exor_bytes)

    [{:tame_exor, :exor, [binary, binary]}, {:tame_spin, :spin, [1000]}] ++
      Application.get_env(:tame_labs, :calibrate, [])
  end

  @doc "Calls each target for 0.3 s, in turn, then measures. A target that raises is an error, named."
  @spec measure([target()], String.t()) :: {:ok, result()} | {:error, String.t()}
  def measure(targets, command) do
    with :ok <- call_all(targets) do
      {:ok, %{system: SystemInfo.collect(command), calibration: calibration()}}
    end
  end

  @doc "The costs, and the rates of the jobs that have run. Takes 0.2 s and needs the application tame."
  @spec calibration() :: calibration()
  def calibration do
    costs = Costs.measure()
    %{jobs: jobs} = :tame.calibration()

    %{
      costs_ns: costs,
      break_even_us: Costs.break_even_us(costs),
      # tame_echo is called to measure something else.
      jobs: :maps.filter(fn {module, _, _}, _ -> module != :tame_echo end, jobs)
    }
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
  def text(%{system: system, calibration: calibration}) do
    [
      SystemInfo.text(system),
      "\nWhat a way out costs, and from what length of work on it is cheaper than the hops of yielding\n\n",
      TextTable.format(["way", "costs µs", "break-even µs"], ways(calibration)),
      "\nWhat fits, in each job's own unit: a slice (#{:tame_job_rates.slice_us()} µs), an inline call (1 ms), before auto moves (100 ms)\n\n",
      TextTable.format(["job", "units/ms", "slice", "inline", "auto"], jobs(calibration))
    ]
  end

  defp ways(%{costs_ns: costs, break_even_us: break_even}) do
    for way <- [:hop, :dirty_hop, :pool, :thread] do
      [to_string(way), Number.short(costs[way] / 1000), to_string(break_even[way] || "-")]
    end
  end

  defp jobs(%{jobs: jobs}) do
    for {{module, nif, arity}, job} <- Enum.sort(jobs) do
      units = [job.slice_units, job.inline_units, job.yielding_units]

      [
        "#{module}:#{nif}/#{arity}",
        Number.short(job.units_per_ms) | Enum.map(units, &Number.grouped/1)
      ]
    end
  end

  @doc "The result as JSON; format 1."
  @spec json(result()) :: iodata()
  def json(%{system: system, calibration: calibration}) do
    jobs =
      for {{module, nif, arity}, job} <- Enum.sort(calibration.jobs) do
        Map.merge(job, %{module: module, nif: nif, arity: arity})
      end

    Tame.JSON.encode(
      tool: "tame.calibrate",
      format: 1,
      system: system,
      costs_ns: calibration.costs_ns,
      break_even_us: calibration.break_even_us,
      jobs: jobs
    )
  end
end
