defmodule Tame.Latency.Report do
  @moduledoc "The latency lab's part in `mix tame.report`."

  @behaviour Tame.Report.Lab

  alias Tame.{Latency, Payload}
  alias Tame.Latency.{Format, Section}

  @impl true
  def name, do: "latency"

  @impl true
  def prepare(options) do
    with {:ok, term} <- Payload.bytes(options.bytes),
         do: {:ok, fn -> Latency.measure(term, options.iterations, options.run) end}
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

  @described %{
    id: :text,
    isolation: :text,
    data_type: :text,
    context_switch: :text,
    status: :text,
    reason: {:maybe, :text}
  }
  @measured Map.merge(@described, %{
              count: :count,
              gc_runs: :count,
              p50_us: :amount,
              p90_us: :amount,
              p99_us: :amount,
              p999_us: :amount,
              max_us: :amount,
              mean_us: :amount,
              percentiles: [{:row, [:amount, :amount]}]
            })

  @impl true
  def shape, do: %{payload_bytes: :count, iterations: :count, rounds: :count, methods: [&method/1]}

  defp method(%{"status" => "ok"}), do: @measured
  defp method(_), do: @described

  @impl true
  def section(saved), do: Section.from_result(saved)

  @impl true
  def figures(saved) do
    for %{status: "ok"} = method <- saved.methods, {metric, key} <- [p50: :p50_us, p99: :p99_us] do
      {method.id, to_string(metric), method[key]}
    end
  end
end
