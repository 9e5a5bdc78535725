defmodule Tame.Contention.Report do
  @moduledoc "The contention lab's part in `mix tame.report`: its corner cells."

  @behaviour Tame.Report.Lab

  alias Tame.Contention
  alias Tame.Contention.{Format, Section}
  alias Tame.Report.Threads

  @impl true
  def name, do: "contention"

  @impl true
  def prepare(options) do
    with {:ok, plan} <- Contention.prepare([which: :quick] ++ options.run),
         do: {:ok, fn -> Contention.run(plan) end}
  end

  @impl true
  def text(result), do: Format.text(result, IO.ANSI.enabled?())

  @impl true
  defdelegate ok?(result), to: Contention

  # Of the node only what is shown: the rest is no text or number.
  @impl true
  def to_save(result) do
    result
    |> Map.take([:flags, :empty, :cells, :calm])
    |> Map.put(:facts, Map.take(result.facts, [:schedulers, :dirty_cpu_schedulers]))
  end

  @named %{
    placement: :text,
    duration_us: :count,
    multiplier: :count,
    status: :text,
    reason: {:maybe, :text},
    tried?: :boolean
  }
  # Figures that the section computes with; a cell that was not measured has none of the neighbours'.
  @waits ~w(neighbour_p50_us neighbour_p99_us neighbour_max_us)a
  @stretch %{from_ms: :number, to_ms: :number}

  @impl true
  def shape do
    %{
      flags: [:text],
      facts: %{schedulers: :count, dirty_cpu_schedulers: :count},
      empty: &empty/1,
      cells: [&cell/1],
      calm: {:maybe, %{cell: &cell/1, without_busy_wait: &cell/1}}
    }
  end

  defp empty(%{"busy_cores" => :null}), do: %{busy_cores: {:maybe, :amount}}

  defp empty(_),
    do: %{busy_cores: :amount, neighbour_p99_us: :amount, neighbour_max_us: :amount}

  defp cell(cell) do
    Format.shape()
    |> Map.merge(@named)
    |> Map.merge(%{cpu: [Threads.shape()], held: [@stretch]})
    |> Map.merge(
      if is_number(cell["neighbour_max_us"]), do: Map.new(@waits, &{&1, :amount}), else: %{}
    )
  end

  @impl true
  def section(saved), do: Section.from_result(saved)

  @impl true
  def figures(saved) do
    for cell <- saved.cells,
        {metric, key} <- [
          {"neighbour p99", :neighbour_p99_us},
          {"dirty work p99", :dirty_cpu_wait_p99_us}
        ],
        us = cell[key],
        us > 0 do
      {Format.name(cell), metric, us}
    end
  end
end
