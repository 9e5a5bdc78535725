defmodule Tame.Spans do
  @moduledoc "Stretches of time. Pure."

  @type span :: {from :: number(), to :: number()}

  @doc """
  The stretches in order, those that touch as one.

      iex> Tame.Spans.union([{5, 7}, {0, 2}, {1, 3}, {3, 4}])
      [{0, 4}, {5, 7}]
  """
  @spec union([span()]) :: [span()]
  def union(spans) do
    spans
    |> Enum.sort()
    |> Enum.reduce([], fn
      {from, to}, [{start, last} | rest] when from <= last -> [{start, max(last, to)} | rest]
      span, merged -> [span | merged]
    end)
    |> Enum.reverse()
  end
end
