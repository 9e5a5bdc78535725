defmodule Tame.Stats do
  @moduledoc """
  The statistics that more than one lab needs, each with one definition. Pure.

  A percentile is a value that was measured, never one between two: the smallest one that this share of the values
  does not exceed. The median is the 50th percentile, so of an even number of values the lower one.
  """

  @typedoc "The least and the greatest of some values."
  @type spread :: [number()]

  @doc """
  The value that `percent` per cent of `values` do not exceed; nil of none.

      iex> Tame.Stats.percentile(Enum.to_list(1..200), 99)
      198
  """
  @spec percentile([number()], number()) :: nil | number()
  def percentile([], _percent), do: nil

  def percentile(values, percent) do
    rank = ceil(length(values) * percent / 100)
    values |> Enum.sort() |> Enum.at(max(rank, 1) - 1)
  end

  @doc """
  The median; nil of no values.

      iex> Enum.map([[3, 1, 2], [4, 1, 2, 3], []], &Tame.Stats.median/1)
      [2, 2, nil]
  """
  @spec median([number()]) :: nil | number()
  def median(values), do: percentile(values, 50)

  @doc """
  The least and the greatest of the values that are known: what a lab states as the noise of their median; nil of none.
  A list, as JSON has it, so that a saved result is like one that was just measured.

      iex> Enum.map([[3, nil, 2], [nil]], &Tame.Stats.spread/1)
      [[2, 3], nil]
  """
  @spec spread([nil | number()]) :: nil | spread()
  def spread(values) do
    case Enum.reject(values, &is_nil/1) do
      [] -> nil
      known -> known |> Enum.min_max() |> Tuple.to_list()
    end
  end

  @doc """
  A spread's width as a share of the median, in per cent; nil where there is none.

      iex> Tame.Stats.spread_percent([9, 12], 10)
      30.0
  """
  @spec spread_percent(nil | spread(), nil | number()) :: nil | float()
  def spread_percent([low, high], median) when is_number(median) and median != 0,
    do: 100 * (high - low) / median

  def spread_percent(_spread, _median), do: nil

  @doc """
  Whether two medians, each with the spread of its rounds, are the same within the noise: they lie no further apart than
  the wider of the two spreads reaches from end to end.

      iex> Tame.Stats.agree?({10, [9, 12]}, {13, [13, 13]})
      true
      iex> Tame.Stats.agree?({10, [9, 12]}, {14, [13, 15]})
      false
  """
  @spec agree?({number(), spread()}, {number(), spread()}) :: boolean()
  def agree?({a, [a_low, a_high]}, {b, [b_low, b_high]}) do
    abs(a - b) <= max(a_high - a_low, b_high - b_low)
  end

  @doc """
  Several rounds of one row as one: `middle`, with the median of each of its numbers in their place and, as `:spread`, the least
  and the greatest of each.

      iex> Tame.Stats.rounds(%{id: "a", us: 2}, [%{us: 2}, %{us: 1}, %{us: nil}])
      %{id: "a", us: 1, spread: %{us: [1, 2]}}
  """
  @spec rounds(map(), [map()]) :: map()
  def rounds(middle, rounds) do
    keys = for {key, value} <- middle, is_number(value), do: key
    values = fn key -> rounds |> Enum.map(& &1[key]) |> Enum.filter(&is_number/1) end

    middle
    |> Map.merge(Map.new(keys, &{&1, median(values.(&1))}))
    |> Map.put(:spread, Map.new(keys, &{&1, spread(values.(&1))}))
  end

  @doc """
  The mean of the values that are known; nil of none.

      iex> Enum.map([[1, nil, 2], [nil]], &Tame.Stats.mean/1)
      [1.5, nil]
  """
  @spec mean([nil | number()]) :: nil | float()
  def mean(values) do
    case Enum.reject(values, &is_nil/1) do
      [] -> nil
      known -> Enum.sum(known) / length(known)
    end
  end
end
