defmodule Tame.TTY.KeysTest do
  use ExUnit.Case, async: true

  import :proper_types,
    only: [binary: 0, binary: 1, list: 1, oneof: 1, integer: 2, frequency: 1, byte: 0]

  alias Tame.TTY.Test.Property
  alias :tame_tty_keys, as: Keys

  # All that the bytes are, when nothing comes after them.
  defp events(bytes) do
    {events, state} = Keys.decode(bytes, Keys.new())
    {last, state} = Keys.flush(state)
    {events ++ last, state}
  end

  defp decoded(bytes) do
    {events, :ground} = events(bytes)
    events
  end

  # Bytes, what they are, and who sends them so.
  @table [
    {"a", {:key, ?a, []}},
    {"A", {:key, ?A, []}},
    {" ", {:key, ?\s, []}},
    {"é", {:key, ?é, []}},
    {"€", {:key, ?€, []}},
    {"😀", {:key, ?😀, []}},
    {"\r", {:key, :enter, []}},
    {"\n", {:key, ?j, [:ctrl]}},
    {"\t", {:key, :tab, []}},
    {"\d", {:key, :backspace, []}},
    {"\b", {:key, ?h, [:ctrl]}},
    {<<0>>, {:key, ?\s, [:ctrl]}},
    {<<3>>, {:key, ?c, [:ctrl]}},
    {<<28>>, {:key, ?\\, [:ctrl]}},
    {<<31>>, {:key, ?_, [:ctrl]}},
    {"\e", {:key, :escape, []}},
    {"\ea", {:key, ?a, [:alt]}},
    {"\eé", {:key, ?é, [:alt]}},
    {"\e\r", {:key, :enter, [:alt]}},
    {"\e" <> <<3>>, {:key, ?c, [:ctrl, :alt]}},
    {"\e[", {:key, ?[, [:alt]}},
    {"\eO", {:key, ?O, [:alt]}},
    {"\e[A", {:key, :up, []}},
    {"\eOB", {:key, :down, []}},
    {"\e[1;5C", {:key, :right, [:ctrl]}},
    {"\e[1;8D", {:key, :left, [:ctrl, :alt, :shift]}},
    {"\e\e[A", {:key, :up, [:alt]}},
    {"\eO5A", {:key, :up, [:ctrl]}},
    {"\e[H", {:key, :home, []}},
    {"\eOF", {:key, :end, []}},
    {"\e[1~", {:key, :home, []}},
    {"\e[4~", {:key, :end, []}},
    {"\e[2~", {:key, :insert, []}},
    {"\e[3;5~", {:key, :delete, [:ctrl]}},
    {"\e[5~", {:key, :page_up, []}},
    {"\e[6^", {:key, :page_down, [:ctrl]}},
    {"\e[Z", {:key, :tab, [:shift]}},
    {"\eOP", {:key, {:f, 1}, []}},
    {"\e[1;2R", {:key, {:f, 3}, [:shift]}},
    {"\e[[A", {:key, {:f, 1}, []}},
    {"\e[[E", {:key, {:f, 5}, []}},
    {"\e[15~", {:key, {:f, 5}, []}},
    {"\e[17~", {:key, {:f, 6}, []}},
    {"\e[21~", {:key, {:f, 10}, []}},
    {"\e[24;2~", {:key, {:f, 12}, [:shift]}},
    {"\e[34~", {:key, {:f, 20}, []}},
    {"\eOM", {:key, :enter, []}},
    {"\eOj", {:key, ?*, []}},
    {"\eOy", {:key, ?9, []}},
    {"\e[97;5u", {:key, ?a, [:ctrl]}},
    {"\e[27;2u", {:key, :escape, [:shift]}},
    {"\e[13;5:1u", {:key, :enter, [:ctrl]}},
    {"\e[27;6;65~", {:key, ?A, [:ctrl, :shift]}},
    {"\e[I", {:focus, :in}},
    {"\e[O", {:focus, :out}},
    {"\e[<0;3;7M", {:mouse, :press, :left, {3, 7}, []}},
    {"\e[<2;300;200m", {:mouse, :release, :right, {300, 200}, []}},
    {"\e[<32;1;1M", {:mouse, :drag, :left, {1, 1}, []}},
    {"\e[<35;1;1M", {:mouse, :move, :none, {1, 1}, []}},
    {"\e[<64;1;1M", {:mouse, :wheel, :up, {1, 1}, []}},
    {"\e[<81;1;1M", {:mouse, :wheel, :down, {1, 1}, [:ctrl]}},
    {"\e[<128;1;1M", {:mouse, :press, {:button, 8}, {1, 1}, []}},
    {"\e[200~a\e[31mb\r\e[201~", {:paste, :last, "a\e[31mb\r"}},
    {"\e[200~\e[201~", {:paste, :last, ""}},
    {"\e[200~\e\e[20\e[201~", {:paste, :last, "\e\e[20"}},
    # What is no key: said once, with the bytes that it was.
    {"\e[5;7R", {:unknown, "\e[5;7R"}},
    {"\e[99~", {:unknown, "\e[99~"}},
    {"\e[1;99A", {:unknown, "\e[1;99A"}},
    {"\e[?1;2c", {:unknown, "\e[?1;2c"}},
    {"\e[12", {:unknown, "\e[12"}},
    {"\e[<0;0;1M", {:unknown, "\e[<0;0;1M"}},
    {"\e[<999;1;1M", {:unknown, "\e[<999;1;1M"}},
    {"\e[99999999999999;5u", {:unknown, "\e[99999999999999;5u"}},
    {"\e[55296u", {:unknown, "\e[55296u"}},
    {"\e[[Z", [{:unknown, "\e[["}, {:key, ?Z, []}]},
    {<<0xFF>>, {:unknown, <<0xFF>>}},
    {<<0xC0, 0x80>>, [{:unknown, <<0xC0>>}, {:unknown, <<0x80>>}]},
    {<<0xE0, 0x80, 0x80>>, {:unknown, <<0xE0, 0x80, 0x80>>}},
    {<<0xED, 0xA0, 0x80>>, {:unknown, <<0xED, 0xA0, 0x80>>}},
    {<<0xE2, 0x82, ?a>>, [{:unknown, <<0xE2, 0x82>>}, {:key, ?a, []}]},
    {<<0xE2>>, {:unknown, <<0xE2>>}},
    {"\e[1;\e[A", [{:unknown, "\e[1;"}, {:key, :up, []}]},
    {"\e\ea", [{:key, :escape, []}, {:key, ?a, [:alt]}]}
  ]

  for {bytes, expected} <- @table do
    test "#{inspect(bytes)}" do
      expected = List.wrap(unquote(Macro.escape(expected)))
      assert decoded(unquote(bytes)) == expected
      # And it leaves nothing behind, whatever comes next.
      unless unquote(bytes) in ["\e", "\e[", "\eO", "\e[12", <<0xE2>>, "\e\ea"] do
        assert decoded(unquote(bytes) <> "z\e[B") ==
                 expected ++ [{:key, ?z, []}, {:key, :down, []}]
      end
    end
  end

  test "a key that is typed alone waits only where another byte could change it" do
    for {bytes, pending} <- [{"a", false}, {"\e", true}, {"\e[1", true}, {<<0xC3>>, true}] do
      {_, state} = Keys.decode(bytes, Keys.new())
      assert Keys.pending(state) == pending
    end

    {[], pasting} = Keys.decode("\e[200~abc", Keys.new())
    refute Keys.pending(pasting)
    assert Keys.flush(pasting) == {[], pasting}
  end

  test "a sequence that is too long is said once, with its beginning" do
    long = "\e[" <> String.duplicate("1;", 5000) <> "A"
    assert [{:unknown, "\e[1;1;" <> _ = said}, {:key, ?x, []}] = decoded(long <> "x")
    assert byte_size(said) <= 64
  end

  test "what is pasted comes in pieces of 4096 bytes" do
    text = :binary.copy("0123456789", 1000)

    assert [{:paste, :more, one}, {:paste, :more, two}, {:paste, :last, three}] =
             decoded("\e[200~" <> text <> "\e[201~")

    assert Enum.map([one, two, three], &byte_size/1) == [4096, 4096, 1808]
    assert one <> two <> three == text
  end

  # ---- properties ----

  @pieces for({bytes, _} <- @table, do: bytes) ++ ["\e[200~", "\e[201~", "\e", "\e[", "201~"]

  defp input do
    list(
      frequency([
        {5, oneof(@pieces)},
        {2, binary()},
        {1, list_of_bytes()},
        {1, oneof(for(size <- [1, 4095, 4096, 5000], do: :binary.copy("p", size)))}
      ])
    )
  end

  defp list_of_bytes, do: list(frequency([{3, oneof(~c"\e[O;<0129~Mm:u$")}, {1, byte()}]))

  test "any cut of the input gives the same events and the same state" do
    Property.check({input(), list(integer(1, 40))}, fn {input, cuts} ->
      bytes = IO.iodata_to_binary(input)
      whole = Keys.decode(bytes, Keys.new())
      pieces(bytes, cuts) == whole and pieces(bytes, []) == whole
    end)
  end

  # The cuts over and over; without any, byte by byte.
  defp pieces(bytes, cuts) do
    cuts = if cuts == [], do: [1], else: cuts

    {events, state, <<>>} =
      Enum.reduce_while(Stream.cycle(cuts), {[], Keys.new(), bytes}, fn
        _, {events, state, <<>>} ->
          {:halt, {events, state, <<>>}}

        size, {events, state, bytes} ->
          size = min(size, byte_size(bytes))
          {piece, rest} = :erlang.split_binary(bytes, size)
          {more, state} = Keys.decode(piece, state)
          {:cont, {[events | more], state, rest}}
      end)

    {List.flatten(events), state}
  end

  test "random bytes give events of the type and hold bounded memory" do
    Property.check(
      {binary(), input()},
      fn {random, input} ->
        bytes = IO.iodata_to_binary([random, input])
        {events, state} = Keys.decode(bytes, Keys.new())
        :erlang.external_size(state) < 4096 + 200 and Enum.all?(events, &event?/1)
      end,
      numtests: 500
    )
  end

  test "a million bytes of a sequence and of a paste without an end hold no memory" do
    for begin <- ["\e[", "\e[<", "\eO", "\e[200~"] do
      state =
        Enum.reduce(1..100, elem(Keys.decode(begin, Keys.new()), 1), fn _, state ->
          {_, state} = Keys.decode(:binary.copy("1", 10_000), state)
          state
        end)

      assert :erlang.external_size(state) < 4096 + 200
    end
  end

  defp event?({:key, key, modifiers}), do: key?(key) and Enum.all?(modifiers, &is_atom/1)
  defp event?({:paste, which, bytes}), do: which in [:more, :last] and byte_size(bytes) <= 4096

  defp event?({:mouse, _, _, {x, y}, modifiers}),
    do: x > 0 and y > 0 and is_list(modifiers)

  defp event?({:focus, which}), do: which in [:in, :out]
  defp event?({:unknown, bytes}), do: byte_size(bytes) in 1..64

  defp key?({:f, n}), do: n in 1..20
  defp key?(key), do: is_atom(key) or key in 0..0xD7FF or key in 0xE000..0x10FFFF

  test "printable text is its characters" do
    Property.check(list(integer(32, 0x10FFFF)), fn chars ->
      chars = Enum.reject(chars, &(&1 in 0xD800..0xDFFF or &1 == 127))
      decoded(List.to_string(chars)) == for(char <- chars, do: {:key, char, []})
    end)
  end

  test "what is pasted is what comes, whatever it is but the end" do
    Property.check(binary(10_000), fn text ->
      if text =~ "\e[201~" do
        true
      else
        pasted = for {:paste, _, piece} <- decoded("\e[200~" <> text <> "\e[201~"), do: piece
        IO.iodata_to_binary(pasted) == text
      end
    end)
  end
end
