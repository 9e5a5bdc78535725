defmodule Tame.SizeClasses do
  @moduledoc false
  # Terms of every class that the emulator itself tells apart: maps that are flat, a tree, and a tree that is
  # sorted when it is read; binaries on and off the heap; integers small and large. Whatever carries terms is
  # to be tried with each.
  #
  #     all()                   {name, term}, one of each class; takes a second to make
  #     some(most_bytes)        those of them that are no larger in external format; the smaller, the sooner made
  #     random(seed, budget)    a term of about budget bytes at most, by chance; the same for the same seed

  @map_sizes [0, 1, 2, 31, 32, 33, 34, 127, 128, 129, 160, 1000, 2700, 100_000]
  @binary_sizes [0, 1, 63, 64, 65, 255, 256, 4096, 65_536, 1_048_576]
  @atom_lengths [0, 1, 2, 63, 64, 127, 128, 254, 255]
  @list_sizes [0, 1, 255, 256, 65_535, 65_536, 1_000_000]
  @tuple_sizes [0, 1, 2, 255, 256, 65_535, 65_536]
  @bits [
    1,
    7,
    8,
    27,
    28,
    31,
    32,
    58,
    59,
    60,
    61,
    63,
    64,
    65,
    127,
    128,
    2039,
    2040,
    2041,
    65_536,
    524_288
  ]

  # Keys by which maps are made, each from a number.
  @key_kinds [:small, :large, :binary, :tuple, :list, :float, :mixed]

  @spec all() :: [{atom() | tuple(), term()}]
  def all, do: all(:infinity)

  # An element takes a byte at least; any number is less than an atom.
  defp all(most) do
    maps(most) ++
      atoms() ++
      binaries(most) ++ numbers() ++ lists(most) ++ tuples(most) ++ deep() ++ names() ++ funs()
  end

  def some(most_bytes \\ 65_536) do
    for {name, term} <- all(most_bytes), :erlang.external_size(term) <= most_bytes, do: {name, term}
  end

  # ---- each class, once ------------------------------------------------------------------------------

  defp maps(most) do
    for(
      size <- @map_sizes,
      kind <- @key_kinds,
      size <= most,
      size <= 2700 or kind in [:small, :binary],
      do: {{:map, size, kind}, map(size, kind, &(&1 * 3))}
    ) ++
      [
        # Atoms as keys: few exist for sure.
        {{:map, :atoms}, Map.new(atom_terms(), fn atom -> {atom, atom} end)},
        {{:map, :equal_values}, map(129, :small, fn _ -> "same" end)},
        {{:map, :equal_numbers}, Map.new(1..70, &{if(&1 > 35, do: (&1 - 35) * 1.0, else: &1), &1})},
        {{:map, :in_map, 33}, map(40, :small, &map(33, :mixed, fn n -> n + &1 end))},
        {{:map, :in_map, 129}, map(3, :small, &map(129, :small, fn n -> {n, &1} end))},
        {{:map, :as_key, 33}, %{map(33, :small, & &1) => map(32, :small, & &1)}},
        {{:map, :as_key, 129}, Map.new(1..40, &{map(129, :small, fn n -> n + &1 end), &1})},
        {{:map, :in_list}, for(n <- 1..20, do: map(129 + n, :mixed, & &1))},
        {{:map, :in_tuple}, {map(128, :binary, & &1), map(129, :binary, & &1)}},
        # Keys whose hashes agree in their lower bits, so that the tree is deep in one place.
        {{:map, :colliding}, Map.new(colliding(64), &{&1, &1})}
      ]
  end

  def map(0, _kind, _value), do: %{}
  def map(size, kind, value), do: Map.new(1..size, &{key(kind, &1), value.(&1)})

  defp key(:small, n), do: n
  defp key(:large, n), do: Bitwise.bsl(n, 64)
  defp key(:binary, n), do: "key #{n}"
  defp key(:tuple, n), do: {n, "k"}
  defp key(:list, n), do: [n, ~c"abc"]
  defp key(:float, n), do: n / 2
  defp key(:mixed, n), do: key(Enum.at([:small, :large, :binary, :tuple, :float], rem(n, 5)), n)

  defp colliding(count) do
    Stream.iterate(1, &(&1 + 1))
    |> Stream.filter(&(Bitwise.band(:erlang.phash2(&1), 0x3F) == 7))
    |> Enum.take(count)
  end

  # The only atoms that are ever made here.
  defp atoms,
    do: for(atom <- atom_terms(), do: {{:atom, length(Atom.to_charlist(atom)), atom}, atom})

  defp atom_terms do
    long = for n <- @atom_lengths, c <- [?x, ?é, ?日, 0x10FFFF], do: List.duplicate(c, n)
    some = [true, nil, :undefined, :"with space", :é, :日本, :"\0"]
    Enum.uniq(some ++ Enum.map(long, &:erlang.list_to_atom/1))
  end

  defp binaries(most) do
    whole = :binary.copy("0123456789", 20_000)

    for(size <- @binary_sizes, size <= most, do: {{:binary, size}, :binary.copy(<<7>>, size)}) ++
      for(
        {at, size} <- [{0, 63}, {1, 64}, {3, 65}, {7, 100_000}, {200_000, 0}],
        do: {{:sub_binary, at, size}, binary_part(whole, at, size)}
      ) ++
      for(
        size <- [1, 7, 9, 511, 513, 8_000_001],
        div(size, 8) <= most,
        do: {{:bitstring, size}, <<0::size(size - 1), 1::1>>}
      ) ++
      for(
        {skip, size} <- [{1, 8}, {3, 511}, {5, 512}, {7, 80_000}, {4, 13}],
        do: {{:unaligned, skip, size}, unaligned(whole, skip, size)}
      )
  end

  defp unaligned(whole, skip, size) do
    # The sizes are matched in the same binary: one from outside is written in another way from Elixir 1.20 on.
    <<skip, size::32, _::size(skip), bits::bitstring-size(size), _::bitstring>> =
      <<skip, size::32, whole::binary>>

    bits
  end

  defp numbers do
    for(
      bits <- @bits,
      sign <- [1, -1],
      add <- [-1, 0, 1],
      do: {{:integer, bits, sign, add}, sign * (Bitwise.bsl(1, bits) + add)}
    ) ++
      for(n <- [0, 255, 256, -0x80000001], do: {{:integer, n}, n}) ++
      for float <- [0.0, -0.0, 1.5, -0.1, 1.7976931348623157e308, 5.0e-324, 2.2250738585072014e-308] do
        {{:float, :erlang.float_to_binary(float)}, float}
      end
  end

  defp lists(most) do
    for(size <- @list_sizes, size <= most, do: {{:list, size}, Enum.to_list(1..size//1)}) ++
      for(size <- @list_sizes, size <= most, do: {{:string, size}, List.duplicate(?a, size)}) ++
      for(size <- [1, 2, 255, 65_536], do: {{:improper, size}, Enum.to_list(1..size) ++ :tail}) ++
      [
        {{:list, :nearly_bytes}, [1, 255, 256]},
        {{:list, :negative}, [-1, 0]},
        {{:list, :of_lists}, [[[]], [], [1, [2 | 3] | :tail]]},
        {{:improper, :binary}, [[1 | "tail"], -1]},
        {{:improper, :map}, [1 | map(33, :small, & &1)]}
      ]
  end

  defp tuples(most) do
    for(
      size <- @tuple_sizes,
      size <= most,
      do: {{:tuple, size}, List.to_tuple(Enum.to_list(1..size//1))}
    ) ++
      [{{:tuple, :in_tuple}, {{}, {{}}, {1, {2, [3]}}}}]
  end

  defp deep do
    [
      {{:deep, :list}, nest(100_000, &[&1])},
      {{:deep, :tuple}, nest(100_000, &{&1})},
      {{:deep, :pairs}, nest(10_000, &[1, 2 | [&1]])},
      {{:deep, :map}, nest(10_000, &%{t: &1})},
      {{:deep, :key}, nest(1000, &%{&1 => 1})},
      {{:deep, :large_map}, nest(10, fn t -> Map.put(map(129, :small, & &1), :t, t) end)}
    ]
  end

  defp nest(depth, wrap), do: Enum.reduce(1..depth, [], fn _, t -> wrap.(t) end)

  # What names something: of this node, of others, of this node in another life.
  defp names do
    own = [pid: self(), port: hd(Port.list()), reference: make_ref(), alias: :erlang.alias()]
    resource = [resource: :atomics.new(1, [])]

    for({kind, term} <- own ++ resource, do: {{:own, kind}, term}) ++
      for {kind, bytes} <- identifiers("another@host", 3) do
        {{:foreign, kind}, :erlang.binary_to_term(<<131, bytes::binary>>)}
      end ++
      for {kind, bytes} <- identifiers("#{node()}", 0x7FFF_FFFE) do
        {{:earlier, kind}, :erlang.binary_to_term(<<131, bytes::binary>>)}
      end
  end

  # Pids, ports and references of a node, in the forms that have ever been written, without the version.
  def identifiers(node, creation) do
    node = <<119, byte_size(node), node::binary>>
    small = rem(creation, 4)

    [
      pid: <<103, node::binary, 1::32, 2::32, small>>,
      new_pid: <<88, node::binary, 1::32, 2::32, creation::32>>,
      port: <<102, node::binary, 1::32, small>>,
      new_port: <<89, node::binary, 1::32, creation::32>>,
      v4_port: <<120, node::binary, 0x1_0000_0001::64, creation::32>>,
      new_reference: <<114, 3::16, node::binary, small, 3::32, 1::32, 2::32>>,
      newer_reference: <<90, 3::16, node::binary, creation::32, 3::32, 1::32, 2::32>>,
      longest_reference:
        <<90, 5::16, node::binary, creation::32, 3::32, 1::32, 2::32, 4::32, 5::32>>
    ]
  end

  defp funs do
    size = 33
    map = map(33, :small, & &1)
    pid = self()

    [
      {{:fun, :external}, &:lists.map/2},
      {{:fun, :unknown}, Function.capture(:lists, :no_such_function, 255)},
      {{:fun, :local}, fn x -> x end},
      {{:fun, :closure}, fn x -> {x, size, map, pid} end},
      {{:fun, :of_fun}, fn -> nest(size, &{&1, map}) end}
    ]
  end

  # ---- by chance -------------------------------------------------------------------------------------

  @doc false
  def random(seed, budget) do
    state = :rand.seed_s(:exsss, seed)
    {term, _} = term(budget, 6, state)
    term
  end

  # A term of about this many bytes at most, and the state after it.
  defp term(budget, depth, state) when budget < 24 or depth == 0, do: leaf(budget, state)

  defp term(budget, depth, state) do
    case :rand.uniform_s(10, state) do
      {n, state} when n <= 4 -> leaf(budget, state)
      {5, state} -> random_map(budget, depth, state)
      {6, state} -> plain_map(budget, state)
      {7, state} -> many(budget, depth, state, &List.to_tuple/1)
      {8, state} -> many(budget, depth, state, &improper/1)
      {_, state} -> many(budget, depth, state, & &1)
    end
  end

  defp improper([]), do: [:a | :b]
  defp improper([one]), do: [one | :tail]
  defp improper(many), do: List.foldr(tl(many), hd(many), &[&1 | &2])

  # As large as it may be, or as the budget leaves, at a bound of the emulator's.
  defp bound(sizes, most, state) do
    fitting = for size <- sizes, size <= most, do: size
    {nth, state} = :rand.uniform_s(length(fitting), state)
    {Enum.at(fitting, nth - 1), state}
  end

  defp many(budget, depth, state, make) do
    {size, state} = bound([0, 1, 2, 3, 7, 31, 255, 256], div(budget, 8), state)
    share = div(budget, size + 1)
    {terms, state} = Enum.map_reduce(1..size//1, state, fn _, s -> term(share, depth - 1, s) end)
    {make.(terms), state}
  end

  defp random_map(budget, depth, state) do
    {size, state} = bound(@map_sizes, min(div(budget, 16), 200), state)
    share = div(budget, 2 * size + 1)

    Enum.reduce(1..size//1, {%{}, state}, fn _, {map, state} ->
      {key, state} = term(share, min(depth, 3) - 1, state)
      {value, state} = term(share, depth - 1, state)
      {Map.put(map, key, value), state}
    end)
  end

  # Of the size that was meant, because its keys differ.
  defp plain_map(budget, state) do
    {size, state} = bound(@map_sizes, div(budget, 12), state)
    {nth, state} = :rand.uniform_s(length(@key_kinds), state)
    {map(size, Enum.at(@key_kinds, nth - 1), & &1), state}
  end

  defp leaf(budget, state) do
    case :rand.uniform_s(8, state) do
      {1, state} -> :rand.uniform_s(1000, state)
      {2, state} -> random_integer(budget, state)
      {3, state} -> binary(budget, state)
      {4, state} -> bits(budget, state)
      {5, state} -> one_of(leaf_atoms(), state)
      {6, state} -> float(state)
      {7, state} -> one_of([[], {}, %{}, "", 0, -1, -0.0, [1 | 2], ~c"text", &:lists.map/2], state)
      {8, state} -> one_of(leaf_names(), state)
    end
  end

  defp random_integer(budget, state) do
    {bits, state} = bound(@bits, max(8 * budget, 64), state)
    {add, state} = :rand.uniform_s(3, state)
    {sign, state} = :rand.uniform_s(2, state)
    {(sign * 2 - 3) * (Bitwise.bsl(1, bits) + add - 2), state}
  end

  defp binary(budget, state) do
    {size, state} = bound(@binary_sizes, max(budget, 0), state)
    {byte, state} = :rand.uniform_s(256, state)
    {:binary.copy(<<byte - 1>>, size), state}
  end

  defp bits(budget, state) do
    {size, state} = :rand.uniform_s(min(max(budget, 1), 100) * 8, state)
    {byte, state} = :rand.uniform_s(256, state)

    {unaligned(:binary.copy(<<byte - 1>>, div(size, 8) + 2), 3, size), state}
  end

  defp float(state) do
    {float, state} = :rand.normal_s(state)
    {power, state} = :rand.uniform_s(600, state)
    {float * :math.pow(10, power - 300), state}
  end

  defp one_of(terms, state) do
    {nth, state} = :rand.uniform_s(length(terms), state)
    {Enum.at(terms, nth - 1), state}
  end

  # Made once: the names of this VM and the long atoms.
  defp leaf_atoms, do: once(:atoms, &atom_terms/0)

  # No two of a node that agree in their first three words (Tame.Test.ExternalForms.deadly/0), and none of this node's
  # earlier life, which a host does not print as the VM does.
  defp leaf_names do
    once(:names, fn ->
      for {{whose, kind}, term} <- names(),
          whose != :earlier and kind != :longest_reference,
          do: term
    end)
  end

  defp once(what, make) do
    case :persistent_term.get({__MODULE__, what}, nil) do
      nil ->
        terms = make.()
        :persistent_term.put({__MODULE__, what}, terms)
        terms

      terms ->
        terms
    end
  end
end
