defmodule Tame.NativeIO.Report do
  @moduledoc "Native I/O in `mix tame.report`, where `tame_tcp` or `tame_nng` is built."

  @behaviour Tame.Report.Lab

  alias Tame.Latency.Methods
  alias Tame.NativeIO
  alias Tame.NativeIO.Section
  alias Tame.{Result, TextTable}

  @impl true
  def name, do: "io"

  @impl true
  def here?,
    do: Enum.any?([Methods.SocketTameTCP.find(), Methods.Nng.find()], &match?({:ok, _}, &1))

  @impl true
  def prepare(options) do
    case NativeIO.prepare(options.run) do
      {:ok, plan} -> {:ok, fn -> NativeIO.run(plan) end}
      {:error, why} -> {:error, "the lab io: #{why}"}
    end
  end

  @impl true
  def text(result) do
    tables =
      for table <- [Section.trips(result.trips), Section.cells(result.cells)] do
        titles = for {title, _} <- table.columns, do: title

        [
          table.title,
          "\n\n",
          TextTable.format(titles, Enum.map(table.rows, &text_row(&1, length(titles)))),
          ?\n
        ]
      end

    body = [
      "Native I/O: #{result.iterations} round trips of each in #{result.rounds} rounds, seed #{result.seed}\n\n"
      | tables ++ missing(result)
    ]

    Result.text(result.system, body, result.warnings)
  end

  defp missing(result) do
    reasons =
      for(%{method: name, reason: why} <- result.trips, why != nil, do: {name, why}) ++
        for %{placement: name, reason: why} <- result.cells, why != nil, do: {name, why}

    for {name, why} <- Enum.uniq(reasons), do: "Not measured: #{name}, #{why}.\n"
  end

  # What was not measured stands below, with its reason.
  defp text_row(row, width) do
    texts =
      Enum.map(row, fn
        {:note, _} -> "-"
        text -> text
      end)

    texts ++ List.duplicate("-", width - length(texts))
  end

  @impl true
  defdelegate ok?(result), to: NativeIO

  @impl true
  def to_save(result), do: Map.take(result, [:iterations, :rounds, :seed, :trips, :cells])

  @told %{status: :text, reason: {:maybe, :text}}
  @trip Map.merge(@told, %{bytes: :count, method: :text})
  @cell Map.merge(@told, %{placement: :text})

  @impl true
  def shape do
    %{iterations: :count, rounds: :count, seed: :count, trips: [&trip/1], cells: [&cell/1]}
  end

  # What was not measured has no times.
  defp trip(%{"status" => "ok"}) do
    spread = {:row, [:amount, :amount]}
    Map.merge(@trip, %{p50_us: :amount, p50_spread_us: spread, p99_us: :amount})
  end

  defp trip(_), do: @trip

  defp cell(%{"status" => "ok"}) do
    times = ~w(wall_ms neighbour_p50_us neighbour_p99_us neighbour_max_us)a
    @cell |> Map.put(:finished, :count) |> Map.merge(Map.new(times, &{&1, :amount}))
  end

  defp cell(_), do: @cell

  @impl true
  def section(saved), do: Section.from_result(saved)

  @impl true
  def figures(saved) do
    trips =
      for %{status: "ok"} = trip <- saved.trips,
          do: {"#{trip.method}, #{trip.bytes} bytes", "round trip, p50", trip.p50_us}

    cells =
      for %{status: "ok"} = cell <- saved.cells,
          do: {cell.placement, "neighbour's p99", cell.neighbour_p99_us}

    trips ++ cells
  end
end
