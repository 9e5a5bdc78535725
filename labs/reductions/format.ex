defmodule Tame.Reductions.Format do
  @moduledoc """
  A reductions result as text for a terminal and as JSON. All pure.
  """

  alias Tame.{JSON, Number, SystemInfo, TextTable, Warning}

  @columns [
    "variant",
    "elapsed ms",
    "GB/s",
    "slices",
    "longest µs",
    "p99.9 µs",
    "dirty slices",
    "dirty longest µs",
    "reductions",
    "charged÷used",
    "neighbour p99 µs",
    "neighbour max µs"
  ]

  @keys [
    :id,
    :status,
    :reason,
    :elapsed_us,
    :gb_per_s,
    :slices,
    :longest_slice_us,
    :p999_slice_us,
    :dirty_slices,
    :longest_dirty_slice_us,
    :reductions,
    :charge_ratio,
    :neighbour_wake_ups,
    :neighbour_p99_us,
    :neighbour_max_us
  ]

  @doc "The machine block, the table of variants in the order in which they ran, the floor, the warnings."
  @spec text(Tame.Reductions.result()) :: iodata()
  def text(result) do
    [
      SystemInfo.text(result.system),
      ?\n,
      "Exclusive or of two binaries of #{Number.bytes(result.bytes)}, #{result.rounds} rounds\n\n",
      variants(result),
      unmeasured(result),
      instruments(result.floor),
      Warning.text(result.warnings)
    ]
  end

  @doc "The result as JSON: `tool`, `format`, `system`, `bytes`, `variants`, and what belongs to them."
  @spec json(Tame.Reductions.result()) :: iodata()
  def json(result) do
    [
      JSON.encode(
        tool: result.tool,
        format: result.format,
        system: result.system,
        bytes: result.bytes,
        rounds: result.rounds,
        floor: result.floor,
        warnings: Enum.map(result.warnings, &[id: &1.id, text: &1.text]),
        variants: for(row <- result.variants, do: for(key <- @keys, do: {key, row[key]}))
      ),
      ?\n
    ]
  end

  @doc "The figures of a measured row as texts, in the order of the table's columns after the first."
  @spec figures(Tame.Reductions.row()) :: [String.t() | nil]
  def figures(row) do
    [
      Number.short(row.elapsed_us / 1000),
      Number.short(row.gb_per_s),
      Integer.to_string(row.slices),
      Number.short(row.longest_slice_us),
      Number.short(row.p999_slice_us),
      Integer.to_string(row.dirty_slices),
      if(row.longest_dirty_slice_us > 0, do: Number.short(row.longest_dirty_slice_us)),
      Integer.to_string(row.reductions),
      row.charge_ratio && ratio(row.charge_ratio),
      Number.short(row.neighbour_p99_us),
      Number.short(row.neighbour_max_us)
    ]
  end

  defp variants(result) do
    rows =
      for %{status: "ok"} = row <- result.variants do
        [row.id | Enum.map(figures(row), &(&1 || "-"))]
      end

    TextTable.format(@columns, rows)
  end

  defp unmeasured(result) do
    for %{status: status} = row when status != "ok" <- result.variants do
      "#{row.id}  #{status}: #{row.reason}\n"
    end
  end

  defp instruments(floor) do
    "\nWith nothing else to do, the neighbour woke #{Number.short(floor.neighbour_p99_us)} µs late (p99), " <>
      "#{Number.short(floor.neighbour_max_us)} µs at most. Tracing costs #{floor.slice_cost_ns} ns a slice.\n"
  end

  # Two decimals, because 0.95 of 1 is what it is read for.
  defp ratio(value), do: :erlang.float_to_binary(value / 1, decimals: 2)
end
