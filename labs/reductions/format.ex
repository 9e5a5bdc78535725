defmodule Tame.Reductions.Format do
  @moduledoc """
  A reductions result as text for a terminal and as JSON. All pure.
  """

  alias Tame.{Number, Result, Stats, TextTable}
  alias Tame.Reductions.BurstsFigure

  # The figures of a row, the one list of them: title, key, and how it is written.
  @figures [
    {"elapsed ms", :elapsed_us, :ms},
    {"spread %", :spread, :spread},
    {"GB/s", :gb_per_s, :number},
    {"page faults", :page_faults, :count},
    {"in its thread", :scheduler_page_faults, :count},
    {"slices", :slices, :count},
    {"longest µs", :longest_slice_us, :number},
    {"p99.9 µs", :p999_slice_us, :number},
    {"dirty slices", :dirty_slices, :count},
    {"dirty longest µs", :longest_dirty_slice_us, :above_zero},
    {"reductions", :reductions, :count},
    {"charged÷used", :charge_ratio, :ratio},
    {"neighbour p99 µs", :neighbour_p99_us, :number},
    {"neighbour max µs", :neighbour_max_us, :number}
  ]

  # The page has no room for two: GB/s say what the time says, and whose faults they were is in the text and the JSON.
  @beside_page [:gb_per_s, :scheduler_page_faults]
  @page for({_, key, _} = figure <- @figures, key not in @beside_page, do: figure)

  @json_keys (for({_, key, _} <- @figures, do: key) -- [:spread]) ++ [:neighbour_wake_ups]

  @doc "The machine block, the table of variants in the order in which they ran, the floor, the warnings."
  @spec text(Tame.Reductions.result()) :: iodata()
  def text(result) do
    body = [
      "Exclusive or of two binaries of #{Number.bytes(result.bytes)}, #{result.rounds} rounds, seed #{result.seed}\n\n",
      variants(result),
      unmeasured(result),
      legend(),
      instruments(result.floor),
      bursts(result.bursts)
    ]

    Result.text(result.system, body, result.warnings)
  end

  @doc "The result as JSON: `tool`, `format`, `system`, `bytes`, `variants`, `bursts`, and what belongs to them."
  @spec json(Tame.Reductions.result()) :: iodata()
  def json(result) do
    Result.json(result,
      bytes: result.bytes,
      rounds: result.rounds,
      seed: result.seed,
      floor: result.floor,
      variants: for(row <- result.variants, do: row_json(row)),
      bursts: result.bursts
    )
  end

  defp row_json(row) do
    [id: row.id, status: row.status, reason: row.reason] ++
      figures_json(row) ++ [fresh: figures_json(row.fresh)]
  end

  defp figures_json(figures) do
    for(key <- @json_keys, do: {key, figures[key]}) ++
      [
        spread:
          for({key, [_, _] = spread} <- Enum.sort(figures.spread), into: %{}, do: {key, spread})
      ]
  end

  @doc "Titles of the page's columns after the variant: the state of its pages, then its figures."
  @spec titles() :: [String.t()]
  def titles, do: titles(@page)

  @doc "The page's two lines of a measured row as texts: with pages at hand, and on fresh pages."
  @spec lines(Tame.Reductions.row()) :: [[String.t() | nil]]
  def lines(row), do: lines(row, @page)

  defp titles(which), do: ["pages" | for({title, _, _} <- which, do: title)]

  defp lines(row, which),
    do: [["at hand" | figures(row, which)], ["fresh" | figures(row.fresh, which)]]

  defp figures(figures, which), do: for({_, key, kind} <- which, do: figure(figures, key, kind))

  defp figure(figures, :spread, :spread) do
    figures.spread.elapsed_us |> Stats.spread_percent(figures.elapsed_us) |> Number.short()
  end

  defp figure(figures, key, kind), do: text(figures[key], kind)

  defp text(nil, _kind), do: nil
  defp text(us, :ms), do: Number.short(us / 1000)
  defp text(value, :number), do: Number.short(value)
  defp text(value, :above_zero), do: if(value > 0, do: Number.short(value))
  defp text(value, :count), do: Integer.to_string(value)
  # Two decimals, because 0.95 of 1 is what it is read for.
  defp text(value, :ratio), do: :erlang.float_to_binary(value / 1, decimals: 2)

  defp variants(result) do
    rows =
      for %{status: "ok"} = row <- result.variants, line <- lines(row, @figures) do
        [row.id | Enum.map(line, &(&1 || "-"))]
      end

    TextTable.format(["variant" | titles(@figures)], rows)
  end

  defp legend do
    "\nEach turn is a VM of its own: its first call, on fresh pages, and its second, with those at hand that the first has\n" <>
      "left. Times and counts are medians; spread: from the quickest round to the slowest, as a share of the median.\n"
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

  defp bursts([]), do: []

  defp bursts(rows) do
    [
      "\nBursts of jobs on #{Number.bytes(hd(rows).bytes)} each\n\n",
      TextTable.format(
        ["variant" | BurstsFigure.titles()],
        for(%{status: "ok"} = row <- rows, do: [row.id | BurstsFigure.row(row)])
      ),
      for(
        %{status: status} = row when status != "ok" <- rows,
        do: "#{row.id}  #{status}: #{row.reason}\n"
      )
    ]
  end
end
