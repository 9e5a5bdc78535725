defmodule Tame.Turns do
  @moduledoc """
  In which order those that are compared take their turns. Pure, but for the drawing of a seed.

  Each round has an order of its own, drawn from a seed: so what one leaves behind (memory, caches, threads that still
  spin) falls on another one in each round, and never always on the same. The same seed gives the same orders.
  """

  @type seed :: non_neg_integer()

  @seeds 1_000_000

  @doc "A seed, for those who ask for none."
  @spec seed() :: seed()
  def seed, do: :rand.uniform(@seeds)

  @doc """
  The order of each round.

      iex> Tame.Turns.rounds([:a, :b, :c], 3, 1)
      [[:b, :c, :a], [:c, :b, :a], [:c, :a, :b]]
  """
  @spec rounds([item], non_neg_integer(), seed()) :: [[item]] when item: var
  def rounds(items, rounds, seed) do
    1..rounds//1
    |> Enum.map_reduce(:rand.seed_s(:exsss, seed), fn _, state -> shuffled(items, state) end)
    |> elem(0)
  end

  @doc "As `rounds/3`, one turn after the other."
  @spec all([item], non_neg_integer(), seed()) :: [item] when item: var
  def all(items, rounds, seed), do: items |> rounds(rounds, seed) |> Enum.concat()

  defp shuffled(items, state) do
    {keyed, state} =
      Enum.map_reduce(items, state, fn item, state ->
        {key, state} = :rand.uniform_s(state)
        {{key, item}, state}
      end)

    {keyed |> Enum.sort_by(&elem(&1, 0)) |> Enum.map(&elem(&1, 1)), state}
  end
end
