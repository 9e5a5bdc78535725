defmodule Tame.NativeIO do
  @moduledoc """
  Native I/O: what a readiness event costs by a NIF and by a driver, and what a driver that computes does to everybody else.

  Round trips by the latency lab's methods, each size in each round: TCP to a program by `gen_tcp` (a driver), OTP's `socket` (a
  NIF) and `tame_tcp` (a NIF on `tame/fd.h`); nng between two sockets in the VM, by a NIF on `tame/fd.h` and by a driver on
  `tame/driver.h`. Then the contention lab's cells of one driver that runs the same jobs in `control`, by `driver_async`, and
  outside (`tame/driver.h`). A package that is not built is a row that says so.
  """

  alias Tame.{Contention, Latency, OtherLoad, SystemInfo, Turns}
  alias Tame.Latency.Methods

  @typedoc "Lists, maps, texts and numbers, as JSON has them."
  @type result :: map()

  @methods [Methods.SocketTCP | Methods.native_io()]
  @sizes [64, 65_536]

  # Of all parts together half a minute.
  @iterations 10_000
  @rounds 10

  # The deck's question is about jobs of ten milliseconds.
  @placements ~w(driver_inline driver_async driver_dirty)
  @duration_us 10_000
  @multiplier 10

  @doc "The methods that are measured."
  @spec methods() :: [module()]
  def methods, do: @methods

  @doc """
  Checks what it needs. Returns the plan for `run/1`. Options: `:iterations` (default: #{@iterations} of each method and size),
  `:rounds` (default: #{@rounds}), `:seed`, `:command`, `:progress`.
  """
  @spec prepare(keyword()) :: {:ok, map()} | {:error, String.t()}
  def prepare(options \\ []) do
    defaults = [
      iterations: @iterations,
      rounds: @rounds,
      seed: Turns.seed(),
      command: "Tame.NativeIO",
      progress: fn _ -> :ok end
    ]

    plan = defaults |> Keyword.merge(options) |> Map.new()

    flood = [
      placements: @placements,
      durations: [@duration_us],
      multipliers: [@multiplier],
      seed: plan.seed,
      command: plan.command
    ]

    with :ok <- :tame_labs_native.build(),
         {:ok, flood} <- Contention.prepare(flood),
         do: {:ok, Map.put(plan, :flood, flood)}
  end

  @doc "Measures. A method or a placement that cannot be measured is a row that says why."
  @spec run(map()) :: result()
  def run(plan) do
    system = SystemInfo.collect(plan.command)
    load = OtherLoad.start()
    trips = trips(plan)
    cells = Contention.run(plan.flood).cells
    system = SystemInfo.ended(system, load)

    %{
      tool: "tame.native_io",
      format: 1,
      system: system,
      warnings: SystemInfo.warnings(system),
      iterations: plan.iterations,
      rounds: plan.rounds,
      seed: plan.seed,
      trips: trips,
      cells: Enum.map(cells, &cell/1)
    }
  end

  defp trips(plan) do
    terms = for bytes <- @sizes, do: :binary.copy(<<1>>, bytes)
    rows = Latency.rows(@methods, terms, plan.iterations, plan.rounds, plan.seed, plan.progress)

    for {bytes, methods} <- Enum.zip(@sizes, rows), row <- methods do
      row
      |> Map.take(~w(status reason p50_us p50_spread_us p99_us)a)
      |> Map.merge(%{bytes: bytes, method: row.id})
    end
  end

  @cell ~w(placement status reason finished wall_ms neighbour_p50_us neighbour_p99_us neighbour_max_us)a

  defp cell(cell), do: Map.new(@cell, &{&1, cell[&1]})

  @doc "Whether all went well that could be tried: a package that is not here fails nothing."
  @spec ok?(result()) :: boolean()
  def ok?(result) do
    Enum.all?(result.trips, &(&1.status != "failed")) and
      Enum.all?(result.cells, &(&1.status == "ok"))
  end

  @doc """
  How many times as late neighbours are beside the driver that computes in `control` as beside the one that runs it outside, at
  p99; `nil` unless both were measured.

      iex> cell = fn placement, us -> %{placement: placement, status: "ok", neighbour_p99_us: us} end
      iex> Tame.NativeIO.before_after([cell.("driver_inline", 90_000.0), cell.("driver_dirty", 3_000.0)])
      30.0
      iex> Tame.NativeIO.before_after([cell.("driver_inline", 90_000.0)])
      nil
  """
  @spec before_after([map()]) :: float() | nil
  def before_after(cells) do
    late =
      for %{status: "ok"} = cell <- cells, into: %{}, do: {cell.placement, cell.neighbour_p99_us}

    case late do
      %{"driver_inline" => before, "driver_dirty" => now} when now > 0 -> before / now
      _ -> nil
    end
  end
end
