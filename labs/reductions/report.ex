defmodule Tame.Reductions.Report do
  @moduledoc "The reductions lab's part in `mix tame.report`."

  @behaviour Tame.Report.Lab

  alias Tame.Reductions
  alias Tame.Reductions.{Format, Input, Section}
  alias Tame.Report.Threads

  # Enough to see what comes again with each.
  @bursts 5

  @impl true
  def name, do: "reductions"

  @impl true
  def prepare(options) do
    case Input.fits(options.job_bytes) do
      :ok ->
        {:ok, fn -> Reductions.measure(options.job_bytes, [bursts: @bursts] ++ options.run) end}

      {:error, why} ->
        {:error, "--job-bytes #{options.job_bytes}: #{why}"}
    end
  end

  @impl true
  defdelegate text(result), to: Format

  @impl true
  defdelegate ok?(result), to: Reductions

  @impl true
  def to_save(result), do: Map.take(result, [:bytes, :rounds, :seed, :floor, :variants, :bursts])

  @described %{id: :text, about: :text, status: :text, reason: {:maybe, :text}}

  # With pages at hand, and on fresh ones.
  @figures %{
    elapsed_us: :amount,
    spread: %{elapsed_us: {:maybe, {:row, [:amount, :amount]}}},
    page_faults: {:maybe, :count},
    slices: :count,
    longest_slice_us: :amount,
    p999_slice_us: {:maybe, :amount},
    dirty_slices: :count,
    longest_dirty_slice_us: :amount,
    reductions: {:maybe, :count},
    charge_ratio: {:maybe, :number},
    neighbour_p99_us: {:maybe, :amount},
    neighbour_max_us: {:maybe, :amount}
  }
  @measured Map.merge(@described, @figures)
            |> Map.merge(%{
              fresh: @figures,
              left_out: :count,
              picture: [%{start_us: :number, us: :amount, kind: :text}]
            })

  @impl true
  def shape do
    %{
      bytes: :count,
      rounds: :count,
      seed: :count,
      floor: %{
        slice_cost_ns: :number,
        neighbour_p99_us: {:maybe, :amount},
        neighbour_max_us: {:maybe, :amount}
      },
      variants: [&variant/1],
      bursts: [&burst/1]
    }
  end

  defp variant(%{"status" => "ok"}), do: @measured
  defp variant(_), do: @described

  @stretch %{from_ms: :number, to_ms: :number}

  defp burst(%{"status" => "ok"}) do
    %{
      id: :text,
      status: :text,
      reason: {:maybe, :text},
      jobs: :count,
      bytes: :count,
      burst_ms: :amount,
      held_ms: :amount,
      bursts: [@stretch],
      held: [@stretch],
      cpu: [Threads.shape()]
    }
  end

  defp burst(_),
    do: %{
      id: :text,
      status: :text,
      reason: {:maybe, :text},
      held: [@stretch],
      cpu: [Threads.shape()]
    }

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
