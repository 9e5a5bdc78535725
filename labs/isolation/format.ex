defmodule Tame.Isolation.Format do
  @moduledoc "A result of the isolation lab as text for a terminal and as JSON. All pure."

  alias Tame.{Number, Result, Stats, TextTable}
  alias Tame.Isolation.{Calls, Memory}

  @doc "The machine block, the three tables, the warnings."
  @spec text(Tame.Isolation.result()) :: iodata()
  def text(result) do
    body = [
      "Latency in µs of #{result.iterations} echoes of a binary, in #{result.rounds} rounds, seed #{result.seed}\n\n",
      calls(result.calls),
      ?\n,
      crashes(result.crashes),
      ?\n,
      memory(result.memory)
    ]

    Result.text(result.system, body, result.warnings)
  end

  @doc "The result as JSON: `tool`, `format`, `system`, `warnings`, `calls`, `crashes`, `memory`, and what belongs to them."
  @spec json(Tame.Isolation.result()) :: iodata()
  def json(result) do
    fields =
      for key <- [:iterations, :rounds, :seed, :calls, :crashes, :memory], do: {key, result[key]}

    Result.json(result, fields)
  end

  # ---- calls by size -----------------------------------------------------------------------------

  @doc "Titles of `size_row/1`."
  @spec size_titles() :: [String.t()]
  def size_titles do
    ["payload"] ++
      Enum.flat_map(Calls.ids(), &["#{&1} p50", "spread %", "p99"]) ++
      ["÷ nif_dirty_cpu", "port ÷ isolated"]
  end

  @doc "The figures of one size as texts, nil where there is none. `rows` are those of that size."
  @spec size_row([map()]) :: [String.t() | nil]
  def size_row([%{bytes: bytes} | _] = rows) do
    p50s = for row <- rows, into: %{}, do: {row.method, row.p50_us}

    [Number.bytes(bytes)] ++
      Enum.flat_map(Calls.ids(), fn id ->
        row = Enum.find(rows, &(&1.method == id)) || %{p50_us: nil, p50_spread_us: nil, p99_us: nil}
        [Number.short(row.p50_us), spread(row), Number.short(row.p99_us)]
      end) ++
      [ratio(p50s["isolated"], p50s["nif_dirty_cpu"]), ratio(p50s["port"], p50s["isolated"])]
  end

  @doc "The rows of each size, smallest first."
  @spec by_size([map()]) :: [[map()]]
  def by_size(rows) do
    rows |> Enum.group_by(& &1.bytes) |> Enum.sort() |> Enum.map(&elem(&1, 1))
  end

  defp spread(%{p50_us: us, p50_spread_us: spread}) do
    case Stats.spread_percent(spread, us) do
      nil -> nil
      percent -> percent |> round() |> Integer.to_string()
    end
  end

  defp ratio(a, b) when is_number(a) and is_number(b) and b > 0, do: Number.short(a / b)
  defp ratio(_a, _b), do: nil

  defp calls(rows) do
    table = for size <- by_size(rows), do: size |> size_row() |> dashes()

    [
      TextTable.format(size_titles(), table),
      for(
        %{status: status} = row when status != "ok" <- rows,
        do: "#{row.method}, #{row.bytes} bytes  #{status}: #{row.reason}\n"
      )
    ]
  end

  # ---- crashes -----------------------------------------------------------------------------------

  @doc "Titles of `crash_row/1` after the crash's number."
  @spec crash_titles() :: [String.t()]
  def crash_titles do
    [
      "ended by",
      "raised ms",
      "next answer ms",
      "other calls failed",
      "others' calls a ms before",
      "after"
    ]
  end

  @doc "The figures of one crash as texts."
  @spec crash_row(map()) :: [String.t() | nil]
  def crash_row(crash) do
    [
      crash.error,
      Number.short(crash.raised_ms),
      Number.short(crash.answered_ms),
      Integer.to_string(crash.others_failed),
      crash |> rate(&(&1 < 0)) |> count(),
      crash |> rate(&(&1 > crash.answered_ms)) |> count()
    ]
  end

  # The median of the milliseconds that are meant.
  defp rate(crash, meant?), do: Stats.median(for [ms, count] <- crash.calls, meant?.(ms), do: count)

  defp count(nil), do: nil
  defp count(count), do: Integer.to_string(count)

  @doc "The median of the crashes, of one of their times."
  @spec median([map()], :raised_ms | :answered_ms) :: nil | float()
  def median(crashes, key), do: crashes |> Enum.map(& &1[key]) |> Stats.median()

  defp crashes(%{status: "ok", crashes: crashes}) do
    rows = for {crash, n} <- Enum.with_index(crashes, 1), do: ["#{n}" | dashes(crash_row(crash))]

    [
      "A host crashes: ms from the crashing call to its exception, and to the answer of the next call\n\n",
      TextTable.format(["crash" | crash_titles()], rows),
      "median: raised after #{Number.short(median(crashes, :raised_ms))} ms, next answer after " <>
        "#{Number.short(median(crashes, :answered_ms))} ms\n"
    ]
  end

  defp crashes(failed), do: "crashes  #{failed.status}: #{failed.reason}\n"

  # ---- memory ------------------------------------------------------------------------------------

  @doc "Titles of `memory_row/1`."
  @spec memory_titles() :: [String.t()]
  def memory_titles do
    ["calls", "µs a call", "VM in use MB", "VM held MB", "host held MB", "atoms", "processes"]
  end

  @doc "The figures of one look at memory as texts."
  @spec memory_row(Memory.row()) :: [String.t() | nil]
  def memory_row(row) do
    [Integer.to_string(row.calls), Number.short(row.us_per_call)] ++
      Enum.map([row.vm_bytes, row.vm_rss_bytes, row.host_bytes], &Number.short(&1 / 1_000_000)) ++
      Enum.map([row.atoms, row.processes], &Integer.to_string/1)
  end

  defp memory(%{status: "ok"} = memory) do
    [
      "Memory over calls with binaries of #{Enum.map_join(memory.sizes, ", ", &Number.bytes/1)} by turns\n\n",
      TextTable.format(memory_titles(), Enum.map(memory.rows, &dashes(memory_row(&1))))
    ]
  end

  defp memory(failed), do: "memory  #{failed.status}: #{failed.reason}\n"

  defp dashes(texts), do: Enum.map(texts, &(&1 || "-"))
end
