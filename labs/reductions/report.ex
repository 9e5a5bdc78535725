defmodule Tame.Reductions.Report do
  @moduledoc "The reductions lab's part in `mix tame.report`."

  @behaviour Tame.Report.Lab

  alias Tame.Reductions
  alias Tame.Reductions.{Format, Input, Section}

  # Enough to see what comes again with each.
  @bursts 5

  @impl true
  def name, do: "reductions"

  @impl true
  def prepare(options) do
    case Input.fits(options.job_bytes) do
      :ok -> {:ok, fn -> measure(options) end}
      {:error, why} -> {:error, "--job-bytes #{options.job_bytes}: #{why}"}
    end
  end

  defp measure(options) do
    Reductions.measure(options.job_bytes,
      bursts: @bursts,
      command: options.command,
      progress: options.progress
    )
  end

  @impl true
  defdelegate text(result), to: Format

  @impl true
  defdelegate ok?(result), to: Reductions

  @impl true
  def to_save(result), do: Map.take(result, [:bytes, :rounds, :seed, :floor, :variants, :bursts])

  @impl true
  def section(saved), do: Section.from_result(saved)

  @impl true
  def figures(saved) do
    for variant <- saved.variants,
        {metric, key} <- [
          {"elapsed", :elapsed_us},
          {"longest slice", :longest_slice_us},
          {"neighbour max", :neighbour_max_us}
        ],
        us = variant[key],
        us > 0 do
      {variant.id, metric, us}
    end
  end
end
