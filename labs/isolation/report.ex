defmodule Tame.Isolation.Report do
  @moduledoc "The isolation lab's part in `mix tame.report`: in quick form."

  @behaviour Tame.Report.Lab

  alias Tame.{Isolation, Payload}
  alias Tame.Isolation.{Format, Section}

  @impl true
  def name, do: "isolation"

  @impl true
  def prepare(options) do
    with {:ok, _} <- Payload.bytes(Enum.max(Isolation.default_sizes())) do
      {:ok,
       fn ->
         Isolation.measure(
           which: :quick,
           command: options.command,
           progress: options.progress
         )
       end}
    end
  end

  @impl true
  defdelegate text(result), to: Format

  @impl true
  defdelegate ok?(result), to: Isolation

  @impl true
  def to_save(result) do
    Map.take(result, [:iterations, :rounds, :seed, :calls, :crashes, :memory])
  end

  @impl true
  def section(saved), do: Section.from_result(saved)

  @impl true
  def figures(saved) do
    calls =
      for row <- saved.calls, {metric, key} <- [{"p50", :p50_us}, {"p99", :p99_us}], us = row[key] do
        {"#{row.method}, #{row.bytes} B", metric, us}
      end

    answered =
      with ms when is_number(ms) <- Format.median(saved.crashes.crashes, :answered_ms),
           do: [{"after a crash", "next answer", ms * 1000}],
           else: (_ -> [])

    calls ++ answered
  end
end
