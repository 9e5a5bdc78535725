defmodule Tame.Test.RingTerms do
  @moduledoc false
  # What the ring's tests send and receive: terms of every size class (Tame.Test.SizeClasses), and those at
  # which the ring itself changes its ways: at the end of a slot, and beyond what is made in one slice.

  alias Tame.Test.SizeClasses

  @doc "{name, term} pairs."
  def all, do: SizeClasses.all() ++ large()

  @doc "A map of this size, with keys of this kind."
  def map(size, kind), do: SizeClasses.map(size, kind, & &1)

  @doc "The maps of all size classes."
  def maps, do: for({name, map} when is_map(map) <- SizeClasses.all(), do: {name, map})

  defp large do
    [
      {:list_of_lists, List.duplicate([], 500_000)},
      {:small_maps, List.duplicate(%{a: 1, b: "two"}, 50_000)},
      {:large_maps, for(size <- 1..32, do: {map(1000, :small), map(div(1000, size), :binary)})},
      {:tuple_large, :erlang.make_tuple(1_048_576, 7)}
    ] ++
      for size <- [16_383, 16_384, 262_144, 262_145] do
        {{:binary_in_tuple, size}, {:ok, :binary.copy("b", size)}}
      end
  end
end
