defmodule Tame.Test.ExternalForms do
  @moduledoc false
  # External format as a hostile host may write it: what term_to_binary/1 would never say, by name, and by
  # chance. None of it makes an atom in who reads it with `safe'.

  import Tame.SizeClasses, only: [identifiers: 2]

  alias Tame.SizeClasses

  # {name, bytes}, the version first, no larger than some megabytes.
  def hostile do
    counts() ++ cut() ++ odd() ++ unknown() ++ compressed() ++ deep()
  end

  # What ends an emulator that decodes it, with `safe' or without: only for who looks before it decodes, or in
  # a VM that may die. OTP 25: the hash of a reference is that of its first three words, also where it has
  # fewer, and a map of more than 32 keys is a tree by hash, which never ends where two keys that differ have
  # one hash.
  def deadly do
    for {node, creation} <- [{"true", 1}, {"another@host", 3}, {"#{node()}", 0x7FFF_FFFE}],
        words <- [[3, 1, 2, 4], [3, 1, 2, 5, 6], [3], [3, 1]],
        more <- [[3, 1, 2], List.update_at(words, -1, &(&1 + 1))] do
      keys = [reference(node, creation, words), reference(node, creation, more)]
      pairs = Enum.map(1..40, &<<97, &1, 97, 1>>) ++ Enum.map(keys, &(&1 <> <<97, 1>>))
      {{:deadly, node, words, more}, IO.iodata_to_binary([<<131, 116, 42::32>>, pairs])}
    end
  end

  defp reference(node, creation, words) do
    words = for word <- words, into: "", do: <<word::32>>

    <<90, div(byte_size(words), 4)::16, 119, byte_size(node), node::binary, creation::32,
      words::binary>>
  end

  # {name, bytes} of identifiers in each form that there is or was, with numbers at the bounds of their bits: some are none.
  def identifiers do
    for {name, tag, creation_bytes} <- [
          {:new_pid, 88, 4},
          {:new_port, 89, 4},
          {:v4_port, 120, 4},
          {:newer_reference, 90, 4},
          {:pid, 103, 1},
          {:port, 102, 1},
          {:reference, 101, 1},
          {:new_reference, 114, 1}
        ],
        atom <- [119, 118, 115, 100],
        number <- [0, 1, 0x3_FFFF, 0x4_0000, 0xFFF_FFFF, 0x1000_0000, 0xFFFF_FFFF],
        creation <- [0, 1, 3, 4, 255] do
      node = if atom in [119, 115], do: <<atom, 4, "true">>, else: <<atom, 4::16, "true">>
      last = <<creation::size(creation_bytes)-unit(8)>>

      bytes =
        case name do
          :v4_port ->
            [tag, node, <<number::64>>, last]

          _ when name in [:new_pid, :pid] ->
            [tag, node, <<number::32, 1::32>>, last]

          _ when name in [:newer_reference, :new_reference] ->
            [tag, 0, 1, node, last, <<number::32>>]

          _ ->
            [tag, node, <<number::32>>, last]
        end

      {{name, atom, number, creation}, IO.iodata_to_binary([131, bytes])}
    end
  end

  # A list of a pid for each creation of this node, which there is not; in a tuple behind this term, if there is one. The
  # caller names the node: here the compiler would make the atom a binary, and nobody would know it.
  def of_nodes(node, creations, more \\ nil) do
    name = Atom.to_string(node)

    pids =
      for creation <- creations,
          do: <<88, 119, byte_size(name), name::binary, 1::32, 2::32, creation + 1_000_000::32>>

    list = [<<108, length(pids)::32>>, pids, 106]
    <<131, term::binary>> = :erlang.term_to_binary(more)
    IO.iodata_to_binary(if more, do: [131, 104, 2, term, list], else: [131, list])
  end

  # They announce more than there is, by a byte or by gigabytes.
  defp counts do
    for {name, tag} <- [list: 108, tuple: 105, map: 116, binary: 109, big: 111, bits: 77, fun: 112],
        count <- [1, 2, 0x10000, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF] do
      {{:count, name, count}, <<131, tag, count::32>>}
    end ++
      for {name, tag} <- [string: 107, atom: 100, atom_utf8: 118, reference: 90, old_reference: 114],
          count <- [1, 255, 0xFFFF] do
        {{:count, name, count}, <<131, tag, count::16>>}
      end ++
      [
        {{:count, :small_tuple}, <<131, 104, 255, 97, 1>>},
        {{:count, :small_big}, <<131, 110, 255, 0, 1>>},
        {{:count, :small_atom}, <<131, 119, 255, ?x>>},
        {{:count, :list, :nearly}, <<131, 108, 3::32, 97, 1, 97, 2, 106>>},
        {{:count, :nested}, <<131, 108, 0x7FFF_FFFF::32, 108, 0x7FFF_FFFF::32, 106>>}
      ]
  end

  # The emulator's own, without their last byte, and without their second half.
  defp cut do
    for {name, term} <- SizeClasses.some(4096),
        bytes = :erlang.term_to_binary(term),
        size <- [byte_size(bytes) - 1, div(byte_size(bytes), 2)] do
      {{:cut, name, size}, binary_part(bytes, 0, size)}
    end
  end

  defp odd do
    [
      {{:empty, 0}, ""},
      {{:empty, 1}, <<131>>},
      {{:version, 130}, <<130, 106>>},
      {{:version, :twice}, <<131, 131, 106>>},
      {{:tag, :unknown}, <<131, 1, 2, 3>>},
      {{:more, 1}, <<131, 106, 106>>},
      {{:big, :zeros}, <<131, 110, 9, 0, 1, 0::64>>},
      {{:big, :none}, <<131, 110, 0, 0>>},
      {{:big, :minus_zero}, <<131, 110, 1, 1, 0>>},
      {{:big, :sign}, <<131, 110, 1, 7, 9>>},
      {{:big, :small}, <<131, 111, 4::32, 0, 5, 0, 0, 0>>},
      {{:big, :large_zeros}, <<131, 111, 100_000::32, 0, 1, 0::size(99_999 * 8)>>},
      {{:big, :system_limit},
       <<131, 111, 8_388_609::32, 0, :binary.copy(<<255>>, 8_388_609)::binary>>},
      {{:float, :infinity}, <<131, 70, 0x7FF0_0000_0000_0000::64>>},
      {{:float, :nan}, <<131, 70, 0x7FF8_0000_0000_0001::64>>},
      {{:float, :text}, <<131, 99, "1.50000000000000000000e+00", 0::40>>},
      {{:float, :no_text}, <<131, 99, "infinity", 0::184>>},
      {{:bits, 0}, <<131, 77, 1::32, 0, 255>>},
      {{:bits, 9}, <<131, 77, 1::32, 9, 255>>},
      {{:bits, :rest}, <<131, 77, 1::32, 3, 255>>},
      {{:map, :twice}, <<131, 116, 2::32, 97, 1, 97, 1, 97, 1, 97, 2>>},
      {{:map, :twice, 33}, twice(33)},
      {{:map, :twice, 129}, twice(129)},
      {{:map, :twice, 1000}, twice(1000)},
      {{:map, :one_key, 129}, <<131, 116, 129::32, :binary.copy(<<97, 1, 97, 2>>, 129)::binary>>},
      {{:map, :backwards}, backwards(32)},
      {{:map, :backwards, 1000}, backwards(1000)},
      {{:list, :nil_in_tail}, <<131, 108, 0::32, 106>>},
      {{:list, :no_elements}, <<131, 108, 0::32, 97, 1>>},
      {{:list, :in_tail}, <<131, 108, 1::32, 97, 1, 108, 1::32, 97, 2, 106>>},
      {{:tuple, :large_for_few}, <<131, 105, 1::32, 97, 1>>},
      {{:atom, :latin1}, <<131, 100, 2::16, 0xE9, 0xE9>>},
      {{:fun, :old}, <<131, 117, 1::32, 106>>},
      {{:export, :no_atoms}, <<131, 113, 97, 1, 97, 2, 97, 3>>},
      {{:fun, :lies}, <<131, 112, 20::32, 3, 1, 2, 3, 0::128>>}
    ] ++
      for {kind, bytes} <- identifiers("another@host", 3),
          size <- [byte_size(bytes), byte_size(bytes) - 1] do
        {{:name, kind, size}, <<131, binary_part(bytes, 0, size)::binary>>}
      end ++
      for words <- [0, 6, 100, 0xFFFF] do
        {{:name, :reference, words},
         <<131, 90, words::16, 119, 1, ?x, 1::32, 0::size(min(words, 100) * 32)>>}
      end
  end

  defp pair(n), do: <<98, n::32, 97, 1>>

  defp twice(size) do
    pairs = for n <- Enum.to_list(1..(size - 1)) ++ [1], into: "", do: pair(n)
    <<131, 116, size::32, pairs::binary>>
  end

  defp backwards(size) do
    pairs = for n <- size..1//-1, into: "", do: pair(n)
    <<131, 116, size::32, pairs::binary>>
  end

  # Atoms that no VM has, that none may have, and in no place where there is one.
  defp unknown do
    for length <- [1, 100, 255, 256, 300, 1000] do
      {{:unknown_atom, length}, <<131, 118, length::16, :binary.copy("\x01", length)::binary>>}
    end ++
      for {name, text} <- [
            utf8: <<255, 255>>,
            cut: <<0xC3>>,
            overlong: <<0xC0, 0x80>>,
            surrogate: <<0xED, 0xA0, 0x80>>,
            beyond: <<0xF4, 0x90, 0x80, 0x80>>
          ] do
        {{:no_atom, name}, <<131, 119, byte_size(text), text::binary>>}
      end ++
      [
        {{:unknown_atom, :in_tuple}, <<131, 104, 2, 97, 1, 119, 9, "\x01unknown1">>},
        {{:unknown_atom, :node}, <<131, 88, 119, 9, "\x01unknown2", 1::32, 2::32, 3::32>>},
        {{:unknown_atom, :fun}, <<131, 113, 119, 9, "\x01unknown3", 119, 1, "x", 97, 1>>},
        {{:no_atom, :key}, <<131, 116, 1::32, 119, 2, 255, 255, 97, 1>>}
      ]
  end

  defp compressed do
    zeros = :binary.copy(<<0>>, 10_000_000)
    term = binary_part(:erlang.term_to_binary(zeros), 1, byte_size(zeros) + 5)
    body = :zlib.compress(term)
    size = byte_size(term)

    [
      {{:compressed, :right}, <<131, 80, size::32, body::binary>>},
      {{:compressed, :less}, <<131, 80, size - 1::32, body::binary>>},
      {{:compressed, :more}, <<131, 80, size + 1::32, body::binary>>},
      {{:compressed, :gigabytes}, <<131, 80, 0xFFFF_FFFF::32, body::binary>>},
      {{:compressed, :cut}, <<131, 80, size::32, binary_part(body, 0, 100)::binary>>},
      {{:compressed, :none}, <<131, 80, 100::32, "this is not compressed">>},
      {{:compressed, :twice},
       <<131, 80, size + 5::32, :zlib.compress(<<80, size::32, body::binary>>)::binary>>}
    ]
  end

  defp deep do
    [
      {{:deep, :lists},
       <<131, :binary.copy(<<108, 1::32>>, 300_000)::binary,
         :binary.copy(<<106>>, 300_001)::binary>>},
      {{:deep, :lists, :cut}, <<131, :binary.copy(<<108, 1::32>>, 300_000)::binary>>},
      {{:deep, :tuples}, <<131, :binary.copy(<<104, 1>>, 1_000_000)::binary, 106>>},
      {{:deep, :keys},
       <<131, :binary.copy(<<116, 1::32>>, 10_000)::binary, 106,
         :binary.copy(<<106>>, 10_000)::binary>>},
      {{:deep, :tails}, <<131, :binary.copy(<<108, 1::32, 97, 1>>, 100_000)::binary, 106>>}
    ]
  end

  # Small ones as they are, once and for all.
  defp small do
    case :persistent_term.get(__MODULE__, nil) do
      nil ->
        small = for({_, bytes} <- hostile(), byte_size(bytes) <= 4096, do: bytes) |> List.to_tuple()
        :persistent_term.put(__MODULE__, small)
        small

      small ->
        small
    end
  end

  # One of the above, or a right one with a mistake in it.
  def random(seed) do
    state = :rand.seed_s(:exsss, seed)
    {how, state} = :rand.uniform_s(6, state)
    {at, state} = :rand.uniform_s(state)
    {byte, _} = :rand.uniform_s(256, state)
    random(how, at, byte - 1, seed)
  end

  defp random(1, at, _, _), do: elem(small(), trunc(at * tuple_size(small())))
  defp random(2, _, _, seed), do: right(seed)

  defp random(3, at, _, seed),
    do: with(bytes <- right(seed), do: binary_part(bytes, 0, place(bytes, at)))

  # Inside of another: two in a tuple.
  defp random(4, at, _, seed) do
    <<131, right::binary>> = right(seed)
    <<_, odd::binary>> = <<131, random(1, at, 0, seed)::binary>>
    <<131, 104, 2, right::binary, odd::binary>>
  end

  defp random(_, at, byte, seed) do
    bytes = right(seed)
    at = place(bytes, at)
    {first, <<_, rest::binary>>} = :erlang.split_binary(bytes, at)
    <<first::binary, byte, rest::binary>>
  end

  defp right(seed), do: :erlang.term_to_binary(SizeClasses.random(seed, rem(seed, 2048)))
  defp place(bytes, at), do: trunc(at * byte_size(bytes))
end
