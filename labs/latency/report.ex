defmodule Tame.Latency.Report do
  @moduledoc "The latency lab's part in `mix tame.report`."

  @behaviour Tame.Report.Lab

  alias Tame.{Latency, Payload}
  alias Tame.Latency.{Format, Section}

  @impl true
  def name, do: "latency"

  @impl true
  def prepare(options) do
    with {:ok, term} <- Payload.bytes(options.bytes) do
      {:ok,
       fn ->
         Latency.measure(term, options.iterations,
           command: options.command,
           progress: options.progress
         )
       end}
    end
  end

  @impl true
  defdelegate text(result), to: Format

  @impl true
  defdelegate ok?(result), to: Latency

  # A histogram is no JSON, and its percentiles are there.
  @impl true
  def to_save(result) do
    result
    |> Map.take([:payload_bytes, :iterations, :rounds])
    |> Map.put(:methods, Enum.map(result.methods, &Map.delete(&1, :histogram)))
  end

  @impl true
  def section(saved), do: Section.from_result(saved)

  @impl true
  def figures(saved) do
    for method <- saved.methods, {metric, key} <- [p50: :p50_us, p99: :p99_us], us = method[key] do
      {method.id, to_string(metric), us}
    end
  end
end
