defmodule Tame.Isolation.Report do
  @moduledoc "The isolation lab's part in `mix tame.report`: in quick form."

  @behaviour Tame.Report.Lab

  alias Tame.{Isolation, Payload}
  alias Tame.Isolation.{Format, Section}

  @impl true
  def name, do: "isolation"

  @impl true
  def prepare(options) do
    with {:ok, _} <- Payload.bytes(Enum.max(Isolation.default_sizes())),
         do: {:ok, fn -> Isolation.measure([which: :quick] ++ options.run) end}
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
  def shape do
    %{
      iterations: :count,
      rounds: :count,
      seed: :count,
      calls: [&call/1],
      crashes: %{
        reason: {:maybe, :text},
        crashes: [
          %{
            error: :text,
            raised_ms: :amount,
            answered_ms: :amount,
            others_failed: :count,
            calls: [{:row, [:number, :count]}]
          }
        ]
      },
      memory: %{
        reason: {:maybe, :text},
        sizes: [:count],
        rows: [
          %{
            calls: :count,
            us_per_call: {:maybe, :amount},
            vm_bytes: :count,
            vm_rss_bytes: :count,
            host_bytes: :count,
            atoms: :count,
            processes: :count
          }
        ]
      }
    }
  end

  # What was not measured has no times.
  defp call(row) do
    us = if row["status"] == "ok", do: :amount, else: {:maybe, :amount}

    %{
      bytes: :count,
      method: :text,
      isolation: :text,
      status: :text,
      reason: {:maybe, :text},
      p50_us: us,
      p50_spread_us: {:maybe, {:row, [:amount, :amount]}},
      p99_us: us
    }
  end

  @impl true
  def section(saved), do: Section.from_result(saved)

  @impl true
  def figures(saved) do
    calls =
      for row <- saved.calls,
          {metric, key} <- [{"p50", :p50_us}, {"p99", :p99_us}],
          us = row[key] do
        {"#{row.method}, #{row.bytes} B", metric, us}
      end

    answered =
      with ms when is_number(ms) <- Format.median(saved.crashes.crashes, :answered_ms),
           do: [{"after a crash", "next answer", ms * 1000}],
           else: (_ -> [])

    calls ++ answered
  end
end
