defmodule Tame.Test.RingTerms do
  @moduledoc false
  # Terms of the sizes at which the emulator changes its ways, for the ring's tests. The one seam: a test takes
  # what all/0 returns, {name, term} pairs, and what map/2 makes; another generator may stand here.

  import Bitwise

  @map_sizes [0, 1, 31, 32, 33, 127, 128, 129, 160, 1000, 2700, 100_000]
  @key_kinds [:integer, :binary, :tuple, :float, :bignum, :list]

  def map_sizes, do: @map_sizes
  def key_kinds, do: @key_kinds

  def all do
    maps() ++ nested() ++ others()
  end

  def maps do
    for size <- @map_sizes, kind <- @key_kinds, size <= 2700 or kind in [:integer, :binary] do
      {{:map, size, kind}, map(size, kind)}
    end
  end

  def map(size, kind), do: Map.new(1..size//1, &{key(kind, &1), &1})

  defp key(:integer, n), do: n * 7919
  defp key(:binary, n), do: "key #{n}"
  defp key(:tuple, n), do: {n, [:a | n]}
  defp key(:float, n), do: n * 1.5
  defp key(:bignum, n), do: n <<< 100
  defp key(:list, n), do: [n, ~c"abc"]

  defp nested do
    for size <- [33, 129, 1000] do
      {{:nested, size}, Map.new(1..32, &{map(size, :integer), map(div(size, &1), :binary)})}
    end
  end

  defp others do
    deep = Enum.reduce(1..10_000, :end, fn _, inner -> {inner} end)
    maps_deep = Enum.reduce(1..10_000, :end, fn n, inner -> %{n => inner} end)

    [
      {:atom_255, :erlang.list_to_atom(List.duplicate(0x10FFFF, 255))},
      {:atoms, for(n <- 1..255, do: :erlang.list_to_atom(List.duplicate(?é, n)))},
      {:list_million, Enum.to_list(1..1_000_000)},
      {:list_of_lists, List.duplicate([], 500_000)},
      {:small_maps, List.duplicate(%{a: 1, b: "two"}, 50_000)},
      {:tuple, :erlang.make_tuple(1 <<< 16, [])},
      {:tuple_large, :erlang.make_tuple(1 <<< 20, 7)},
      {:deep, deep},
      {:deep_maps, maps_deep},
      {:bignums, for(bits <- [1, 31, 59, 60, 63, 64, 65, 2040, 2048, 524_288], do: 1 <<< bits)},
      {:negative, -(1 <<< 524_287)},
      {:external_fun, &:lists.map/2},
      {:bits, [<<1::1>>, <<5::63>>, <<0::513>>, <<1::8_388_609>>]},
      {:foreign, foreign()},
      {:improper, Enum.reduce(1..100_000, :tail, &[&1 | &2])}
    ] ++
      for size <- [0, 63, 64, 65, 16_383, 16_384, 262_144, 262_145, 1_048_576] do
        {{:binary, size}, {:ok, :binary.copy("b", size)}}
      end
  end

  # A pid, a port and a reference of another node.
  defp foreign do
    node = <<119, 12, "another@host">>

    for body <- [
          <<88, node::binary, 1::32, 2::32, 3::32>>,
          <<89, node::binary, 1::32, 3::32>>,
          <<90, 3::16, node::binary, 3::32, 1::32, 2::32, 3::32>>
        ] do
      # The node's name must be there: it is, in this list.
      _ = :another@host
      :erlang.binary_to_term(<<131, body::binary>>)
    end
  end
end
