defmodule Tame.Stats do
  @moduledoc """
  The statistics that more than one lab needs, each with one definition. Pure.

  A percentile is a value that was measured, never one between two: the smallest one that this share of the values
  does not exceed. The median is the 50th percentile, so of an even number of values the lower one.
  """

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
