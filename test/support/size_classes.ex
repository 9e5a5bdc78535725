defmodule Tame.Test.SizeClasses do
  @moduledoc false
  # The labs' terms of every size class (Tame.SizeClasses), and with PropEr:
  #
  #     type()                  a PropEr type of such terms
  #     small()                 one of small terms that are often equal
  #     etf(seed)               external format that is right, odd, or wrong; Tame.Test.ExternalForms

  import :proper_types, only: [any: 0, oneof: 1]

  alias Tame.Test.ExternalForms

  defdelegate all(), to: Tame.SizeClasses
  defdelegate some(most_bytes \\ 65_536), to: Tame.SizeClasses
  defdelegate map(size, kind, value), to: Tame.SizeClasses
  defdelegate random(seed, budget), to: Tame.SizeClasses

  # A PropEr type: PropEr's own terms, which it makes smaller well, and these, which it makes smaller by their budget.
  def type do
    seeded =
      :proper_types.bind(
        {:proper_types.integer(0, 0xFFFF_FFFF), :proper_types.integer(0, 4096)},
        fn {seed, budget} -> :proper_types.exactly(random(seed, budget)) end,
        false
      )

    oneof([any(), :proper_types.bitstring(), seeded, seeded])
  end

  # Small terms, often equal or nearly so, for what orders them.
  def small do
    same =
      oneof([
        0,
        0.0,
        -0.0,
        1,
        1.0,
        -1,
        -1.0,
        Bitwise.bsl(1, 60),
        1.152921504606847e18,
        9_007_199_254_740_993,
        9_007_199_254_740_992.0,
        1.0e300,
        Bitwise.bsl(1, 1000),
        [],
        {},
        "",
        %{},
        %{1 => 2},
        %{1.0 => 2},
        %{1 => 2.0}
      ])

    bounded =
      :proper_types.bind(
        :proper_types.integer(0, 0xFFFF_FFFF),
        &:proper_types.exactly(comparable(&1)),
        false
      )

    number = oneof([:proper_types.integer(), :proper_types.float()])
    atom = :proper_types.atom()

    oneof([
      same,
      same,
      number,
      atom,
      :proper_types.bitstring(),
      :proper_types.list(number),
      {number, atom},
      bounded
    ])
  end

  # The order of funs and of what belongs to other nodes is not the same everywhere.
  defp comparable(seed) do
    term = random(seed, 100)
    if plain?(term), do: term, else: seed
  end

  defp plain?([head | tail]), do: plain?(head) and plain?(tail)
  defp plain?(tuple) when is_tuple(tuple), do: plain?(Tuple.to_list(tuple))
  defp plain?(map) when is_map(map), do: plain?(Map.to_list(map))
  defp plain?(term), do: is_number(term) or is_atom(term) or is_bitstring(term) or term == []

  # ---- as bytes --------------------------------------------------------------------------------------

  def etf(seed), do: ExternalForms.random(seed)
end
