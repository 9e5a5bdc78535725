defmodule Tame.Digest.Format do
  @moduledoc "A result of the digest lab as text for a terminal, and the figures of its tables. All pure."

  alias Tame.{Number, Result, Stats, TextTable}

  @doc "The machine block, the two tables, the warnings."
  @spec text(Tame.Digest.result()) :: iodata()
  def text(result) do
    body = [
      "SHA-3 by tame_sha3 (#{result.implementation}) and by #{result.openssl}, in #{result.rounds} rounds, seed #{result.seed}\n\n",
      TextTable.format(call_titles(), result.calls |> by_size() |> dashed(&call_row/1)),
      "\nFour processes hash 1 MB each, and a neighbour wants to wake every 10 ms\n\n",
      TextTable.format(load_titles(), dashed(result.load, &load_row/1))
    ]

    Result.text(result.system, body, result.warnings)
  end

  @doc "Titles of `call_row/1`."
  @spec call_titles() :: [String.t()]
  def call_titles do
    ["input", "crypto µs", "spread %", "tame_sha3 µs", "spread %", "crypto ÷ tame_sha3"] ++
      ["kt128 µs", "crypto ÷ kt128"]
  end

  @doc "The figures of one size as texts, nil where there is none. `rows` are those of that size."
  @spec call_row([map()]) :: [String.t() | nil]
  def call_row([%{bytes: bytes} | _] = rows) do
    [crypto, tame, kt] =
      for way <- ["crypto", "tame_sha3", "kt128"], do: Enum.find(rows, &(&1.way == way))

    [Number.bytes(bytes), us(crypto), spread(crypto), us(tame), spread(tame), ratio(crypto, tame)] ++
      [us(kt), ratio(crypto, kt)]
  end

  @doc "The rows of each size, smallest first."
  @spec by_size([map()]) :: [[map()]]
  def by_size(rows) do
    rows |> Enum.group_by(& &1.bytes) |> Enum.sort() |> Enum.map(&elem(&1, 1))
  end

  @doc "Titles of `load_row/1`."
  @spec load_titles() :: [String.t()]
  def load_titles, do: ["hashed by", "MB/s", "delay p50 ms", "p99 ms", "longest ms"]

  @doc "The figures of one way under load as texts."
  @spec load_row(map()) :: [String.t()]
  def load_row(row) do
    [
      row.way
      | Enum.map(
          [row.mb_per_s, row.p50_us / 1000, row.p99_us / 1000, row.max_us / 1000],
          &Number.short/1
        )
    ]
  end

  @doc "How many times as fast as crypto another way is with an input; nil where one was not measured."
  @spec ratio(map() | nil, map() | nil) :: String.t() | nil
  def ratio(%{us: crypto}, %{us: us}) when us > 0, do: Number.short(crypto / us)
  def ratio(_crypto, _other), do: nil

  defp us(nil), do: nil
  defp us(%{us: us}), do: Number.short(us)

  defp spread(nil), do: nil

  defp spread(%{us: us, spread_us: spread}) do
    with percent when is_number(percent) <- Stats.spread_percent(spread, us),
         do: percent |> round() |> Integer.to_string()
  end

  defp dashed(rows, texts), do: for(row <- rows, do: Enum.map(texts.(row), &(&1 || "-")))
end
