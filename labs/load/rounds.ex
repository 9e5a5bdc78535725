defmodule Tame.Load.Rounds do
  @moduledoc "Several rounds of what takes turns, as one row for each. Pure."

  alias Tame.Stats

  @doc """
  The rows of `{place, row}`, by place: medians and spreads. What is no figure is that of the round in the middle by `order`, or
  of one that failed.
  """
  @spec together([{non_neg_integer(), map()}], (map() -> term())) :: [map()]
  def together(rows, order) do
    for {_, rounds} <- rows |> Enum.group_by(&elem(&1, 0), &elem(&1, 1)) |> Enum.sort() do
      failed = Enum.find(rounds, &(&1.status != "ok"))
      sorted = Enum.sort_by(rounds, order)
      middle = failed || Enum.at(sorted, div(length(rounds) - 1, 2))
      middle |> Stats.rounds(rounds) |> Map.merge(by_kind(middle, rounds))
    end
  end

  # The figures that there are one of for each kind of thread.
  defp by_kind(middle, rounds) do
    for key <- [:us_per_request, :cores], kinds = middle[key], into: %{} do
      known = for round <- rounds, values = round[key], do: values
      {key, Map.new(kinds, fn {kind, _} -> {kind, Stats.median(Enum.map(known, & &1[kind]))} end)}
    end
  end
end
