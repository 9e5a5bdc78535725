defmodule Tame.Contention.Report do
  @moduledoc "The contention lab's part in `mix tame.report`: its corner cells."

  @behaviour Tame.Report.Lab

  alias Tame.Contention
  alias Tame.Contention.{Format, Section}

  @impl true
  def name, do: "contention"

  @impl true
  def prepare(options) do
    with {:ok, plan} <-
           Contention.prepare(
             which: :quick,
             command: options.command,
             progress: options.progress
           ) do
      {:ok, fn -> Contention.run(plan) end}
    end
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
