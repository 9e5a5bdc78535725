defmodule Tame.Test.Terms do
  @moduledoc false
  # Terms that are hard to carry to another process and back.

  import :proper_types,
    only: [any: 0, binary: 0, integer: 0, oneof: 1, list: 1, bitstring: 0, float: 0, atom: 0]

  @node_ref "another@host"

  def hard do
    [
      # Lists that are nearly iolists.
      [-1, 0],
      [0, 256, 1],
      [[1 | "tail"], -1],
      0,
      1,
      -1,
      255,
      256,
      -128,
      0x7FFFFFFF,
      -0x80000000,
      0x80000000,
      -0x80000001,
      Bitwise.bsl(1, 59) - 1,
      Bitwise.bsl(1, 59),
      -Bitwise.bsl(1, 59),
      -Bitwise.bsl(1, 59) - 1,
      Bitwise.bsl(1, 63),
      Bitwise.bsl(1, 64) - 1,
      Bitwise.bsl(1, 64),
      -Bitwise.bsl(1, 63) - 1,
      Bitwise.bsl(1, 2040) - 1,
      Bitwise.bsl(1, 2040),
      -Bitwise.bsl(7, 5000),
      0.0,
      -0.0,
      1.5,
      1.7976931348623157e308,
      5.0e-324,
      -0.1,
      :a,
      :"",
      :"with space",
      :é,
      :日本,
      :erlang.list_to_atom(List.duplicate(?x, 255)),
      :erlang.list_to_atom(List.duplicate(0x10FFFF, 255)),
      true,
      nil,
      :undefined,
      "",
      "abc",
      <<0>>,
      <<5::3>>,
      <<1, 2, 3::2>>,
      <<0::1>>,
      String.duplicate("x", 64),
      String.duplicate("x", 65),
      :binary.copy(<<7>>, 100_000),
      binary_part("0123456789", 3, 4),
      [],
      [1],
      [1, 2, 3],
      Enum.to_list(0..255),
      [256],
      [-1],
      [1 | 2],
      [[[]]],
      ~c"text",
      List.duplicate(?a, 65_535),
      List.duplicate(?a, 65_536),
      [1, [2 | 3] | :tail],
      {},
      {1},
      {{}, {{}}},
      List.to_tuple(Enum.to_list(1..255)),
      List.to_tuple(Enum.to_list(1..256)),
      %{},
      %{a: 1},
      %{1 => :int, 1.0 => :float},
      Map.new(1..31, &{&1, &1}),
      Map.new(1..32, &{&1, &1}),
      Map.new(1..33, &{&1, &1}),
      Map.new(1..1000, &{{&1, "k"}, [&1]}),
      %{%{a: 1} => %{%{} => []}},
      Map.new(1..40, &{Map.new(1..40, fn i -> {i, &1} end), &1}),
      %{[] => {}, "" => 0.0},
      self(),
      hd(:erlang.ports()),
      make_ref(),
      :atomics.new(1, []),
      foreign(:pid),
      foreign(:ref),
      foreign(:port),
      &:lists.map/2,
      fn x -> x end,
      nest(fn t -> [t] end, 100_000),
      nest(fn t -> {t} end, 100_000),
      nest(fn t -> [1, 2 | [t]] end, 10_000),
      nest(fn t -> %{t: t} end, 10_000)
    ]
  end

  defp nest(wrap, depth), do: Enum.reduce(1..depth, [], fn _, t -> wrap.(t) end)

  defp foreign(:pid),
    do: :erlang.binary_to_term(<<131, 88, node_name()::binary, 1::32, 2::32, 3::32>>)

  defp foreign(:port), do: :erlang.binary_to_term(<<131, 89, node_name()::binary, 1::32, 3::32>>)

  defp foreign(:ref) do
    :erlang.binary_to_term(<<131, 90, 3::16, node_name()::binary, 3::32, 1::32, 2::32, 3::32>>)
  end

  defp node_name, do: <<100, byte_size(@node_ref)::16, @node_ref>>

  def generator do
    oneof([any(), any(), maps(), bitstring(), {integer(), float(), atom(), binary()}])
  end

  defp maps do
    pairs = list({oneof([integer(), atom(), binary(), float(), {integer(), atom()}]), any()})
    :proper_types.bind(pairs, fn pairs -> :proper_types.exactly(Map.new(pairs)) end, false)
  end

  # Small terms, often equal or nearly so.
  def small do
    oneof([
      integer(),
      float(),
      oneof([0, 0.0, 1, 1.0, -1, -1.0, Bitwise.bsl(1, 60), 1.152921504606847e18]),
      atom(),
      binary(),
      bitstring(),
      list(integer()),
      {integer(), atom()},
      maps(),
      oneof([%{1 => 2}, %{1.0 => 2}, %{1 => 2.0}]),
      oneof([
        [],
        {},
        %{},
        "",
        9_007_199_254_740_993,
        9_007_199_254_740_992.0,
        1.0e300,
        Bitwise.bsl(1, 1000)
      ])
    ])
  end
end
