defmodule ZstdTest do
  use ExUnit.Case, async: true
  doctest Zstd
  import :proper_types, only: [integer: 2, list: 1]

  defp holds(type, numtests, property) do
    test = :proper.forall(type, property)
    options = [:quiet, :long_result, numtests: numtests]

    assert :proper.quickcheck(test, options) == true,
           "does not hold for #{inspect(:proper.counterexample())}"
  end

  # Bytes that compress more or less, by the seed.
  defp bytes(size, seed) do
    :rand.seed(:exsss, seed)
    words = for _ <- 1..50, do: :rand.bytes(1 + :rand.uniform(20))

    case rem(seed, 3) do
      0 -> :rand.bytes(size)
      1 -> :binary.copy(<<seed>>, size)
      2 -> words |> text(size) |> IO.iodata_to_binary() |> binary_part(0, size)
    end
  end

  defp text(_words, size) when size <= 0, do: []

  defp text(words, size) do
    word = Enum.random(words)
    [word | text(words, size - byte_size(word))]
  end

  # The same bytes as iodata of another shape.
  defp cut(bytes, seed) do
    :rand.seed(:exsss, seed)
    pieces(bytes)
  end

  defp pieces(""), do: []

  defp pieces(bytes) do
    size = min(byte_size(bytes), Enum.random([0, 1, 10, 1000, 70_000, 300_000]))
    <<piece::binary-size(size), rest::binary>> = bytes
    [[piece] | pieces(rest)]
  end

  defp size, do: :proper_types.oneof([integer(0, 100), integer(0, 70_000), integer(0, 1_000_000)])
  defp seed, do: integer(0, 1_000_000)

  defp error(fun), do: assert_raise(ErlangError, fun).original

  # A file that is gone after the test.
  defp file(name, bytes) do
    path = Path.join(System.tmp_dir!(), "zstd_test_#{System.unique_integer([:positive])}_#{name}")
    File.write!(path, bytes)
    on_exit(fn -> File.rm(path) end)
    path
  end

  defp command(args) do
    {out, 0} = System.cmd("zstd", args)
    out
  end

  test "what goes in comes out, of any size and cut" do
    c = Zstd.compressor()
    d = Zstd.decompressor()

    holds({size(), seed(), seed()}, 100, fn {size, seed, cut} ->
      bytes = bytes(size, seed)
      packed = Zstd.compress(c, cut(bytes, cut))
      Zstd.decompress(d, cut(packed, cut), []) == bytes
    end)
  end

  test "as a stream too" do
    holds({size(), seed(), seed()}, 50, fn {size, seed, cut} ->
      bytes = bytes(size, seed)
      packed = bytes |> cut(cut) |> Zstd.compress_stream() |> Enum.to_list()
      parts = packed |> IO.iodata_to_binary() |> cut(cut) |> Zstd.decompress_stream()
      Enum.join(parts) == bytes and Zstd.decompress(packed) == bytes
    end)
  end

  test "64 MiB" do
    bytes = :binary.copy(bytes(1024 * 1024, 2), 64)
    packed = Zstd.compress([bytes])
    assert byte_size(packed) < byte_size(bytes)
    assert Zstd.decompress(packed) == bytes
  end

  test "each level" do
    bytes = bytes(100_000, 2)

    for level <- -7..19,
        do: assert(bytes |> Zstd.compress(level: level) |> Zstd.decompress() == bytes)

    for level <- [1, 9],
        do:
          assert(
            bytes
            |> List.wrap()
            |> Zstd.compress_stream(level: level)
            |> Enum.to_list()
            |> Zstd.decompress() == bytes
          )

    assert_raise ArgumentError, ~r/level: .* got: 20/, fn -> Zstd.compressor(level: 20) end
  end

  test "the command zstd reads ours, and we read its" do
    for size <- [0, 1, 1000, 1_000_000], options <- [["-1"], ["-9", "--no-check"]] do
      bytes = bytes(size, 2)
      plain = file("plain", bytes)
      assert Zstd.decompress(command(["-c" | options] ++ [plain])) == bytes
      assert command(["-dc", file("a.zst", Zstd.compress(bytes))]) == bytes
      assert command(["-dc", file("b.zst", Enum.to_list(Zstd.compress_stream([bytes])))]) == bytes
    end
  end

  test "a dictionary is shared by contexts, and known to the command" do
    bytes = bytes(5_000, 5)
    dictionary = Zstd.dictionary(binary_part(bytes, 0, 4_000), 5)
    packed = Zstd.compress(bytes, dictionary: dictionary)
    assert byte_size(packed) < byte_size(Zstd.compress(bytes, level: 5))

    tasks =
      for _ <- 1..8,
          do: Task.async(fn -> packed |> Zstd.decompress(dictionary: dictionary) end)

    assert Enum.all?(Task.await_many(tasks, 60_000), &(&1 == bytes))
    assert {:corrupt, _, _} = error(fn -> Zstd.decompress(packed) end)

    dict = file("dict", binary_part(bytes, 0, 4_000))
    assert command(["-dc", "-D", dict, file("c.zst", packed)]) == bytes
    theirs = command(["-c", "-D", dict, file("plain", bytes)])
    assert Zstd.decompress(theirs, dictionary: dictionary) == bytes
  end

  test "processes that use one context take turns" do
    c = Zstd.compressor(level: 1)
    d = Zstd.decompressor()

    tasks =
      for seed <- 1..20 do
        Task.async(fn ->
          bytes = bytes(200_000 * rem(seed, 4), seed)
          Zstd.decompress(d, Zstd.compress(c, bytes), []) == bytes
        end)
      end

    assert Enum.all?(Task.await_many(tasks, 60_000))
  end

  test "a caller that is killed leaves its context to the next" do
    c = Zstd.compressor(level: 3)
    bytes = bytes(30_000_000, 3)

    {pid, monitor} =
      spawn_monitor(fn -> for _ <- Stream.cycle([1]), do: Zstd.compress(c, bytes) end)

    Process.exit(pid, :kill)
    assert_receive {:DOWN, ^monitor, _, _, :killed}, 60_000
    assert c |> Zstd.compress("next") |> Zstd.decompress() == "next"
  end

  test "a deadline ends a call, and leaves its context to the next" do
    c = Zstd.compressor(level: 19)
    data = List.duplicate(bytes(1_000_000, 2), 100)
    assert {:tame, :deadline} = error(fn -> Tame.deadline(10, fn -> Zstd.compress(c, data) end) end)
    assert c |> Zstd.compress("next") |> Zstd.decompress() == "next"
  end

  test "corrupt input is told with where it was found" do
    bytes = bytes(2_000_000, 3)
    packed = Zstd.compress(bytes)

    for at <- [0, 500_000, byte_size(packed) - 1] do
      <<before::binary-size(at), byte, rest::binary>> = packed
      broken = [before, Bitwise.bxor(byte, 0x55), rest]
      assert {:corrupt, position, _} = error(fn -> Zstd.decompress(broken) end)
      assert position in 0..byte_size(packed)
    end

    <<head::binary-size(1_000_000), _::binary>> = packed
    assert {:truncated, 1_000_000, _} = error(fn -> Zstd.decompress(head) end)

    assert {:corrupt, 1_000_000, _} =
             error(fn -> Zstd.decompress([Zstd.compress(""), cut_frame(1_000_000 - 13)]) end)
  end

  # A skippable frame of that many bytes in all, and bytes that are no frame behind it.
  defp cut_frame(size) do
    inner = size - 8
    [<<0x184D2A50::little-32, inner::little-32>>, :binary.copy("s", inner), "no frame"]
  end

  test "a wrong checksum is told" do
    packed = Zstd.compress("to be or not to be")
    size = byte_size(packed) - 1
    <<body::binary-size(size), last>> = packed

    assert {:corrupt, _, 'Restored data doesn\'t match checksum'} =
             error(fn -> Zstd.decompress([body, Bitwise.bxor(last, 1)]) end)

    plain = Zstd.compress("to be or not to be", checksum: false)
    assert byte_size(plain) == byte_size(packed) - 4
  end

  test "input that ends early, at any place" do
    packed = Zstd.compress(bytes(1000, 2))

    for size <- 0..(byte_size(packed) - 1) do
      head = binary_part(packed, 0, size)
      assert {:truncated, ^size, _} = error(fn -> Zstd.decompress(head) end)
      assert {:truncated, _, _} = error(fn -> Enum.to_list(Zstd.decompress_stream([head])) end)
    end
  end

  test "random bytes, and frames with a byte changed, give an error or something, and nothing else" do
    d = Zstd.decompressor()
    packed = Zstd.compress(bytes(20_000, 2), checksum: false)

    holds(
      {seed(), integer(0, byte_size(packed) - 1), integer(0, 255), list(integer(0, 255))},
      500,
      fn
        {seed, at, byte, noise} ->
          <<before::binary-size(at), _, rest::binary>> = packed

          for data <- [noise, [before, byte, rest], [packed | bytes(100, seed)]] do
            try do
              is_binary(Zstd.decompress(d, data, limit: 10_000_000))
            rescue
              error in ErlangError ->
                {what, position, _} = error.original
                what in [:corrupt, :truncated, :too_large] and position <= :erlang.iolist_size(data)
            end
          end
          |> Enum.all?()
      end
    )
  end

  test "frames one behind the other, with and without their size" do
    frames = [
      Zstd.compress("one "),
      Enum.to_list(Zstd.compress_stream(["two ", "three "])),
      Zstd.compress(""),
      Zstd.compress("four")
    ]

    assert Zstd.decompress(frames) == "one two three four"
    assert frames |> Zstd.decompress_stream() |> Enum.join() == "one two three four"
  end

  test "no more comes out than the limit" do
    bomb = Zstd.compress(List.duplicate(:binary.copy(<<0>>, 1_000_000), 300))
    assert byte_size(bomb) < 300_000
    assert {:too_large, _, _} = error(fn -> Zstd.decompress(bomb, limit: 1_000_000) end)

    unsized =
      [List.duplicate(:binary.copy(<<0>>, 1_000_000), 30)]
      |> Zstd.compress_stream()
      |> Enum.to_list()

    assert {:too_large, _, _} = error(fn -> Zstd.decompress(unsized, limit: 29_999_999) end)
    assert byte_size(Zstd.decompress(unsized, limit: 30_000_000)) == 30_000_000

    assert {:too_large, _, _} =
             error(fn -> Stream.run(Zstd.decompress_stream([bomb], limit: 100)) end)

    for limit <- [-1, :none],
        do: assert_raise(ArgumentError, ~r/limit/, fn -> Zstd.decompress("", limit: limit) end)
  end

  test "no part of a stream is longer than 128 KiB" do
    data = for _ <- 1..20, do: [:rand.bytes(60_000), :binary.copy("a", 1_000_000)]
    parts = [data] |> Zstd.compress_stream() |> Zstd.decompress_stream() |> Enum.to_list()
    assert IO.iodata_to_binary(parts) == IO.iodata_to_binary(data)
    assert parts |> Enum.map(&byte_size/1) |> Enum.max() <= 128 * 1024
  end

  test "a stream does no more than it is asked for" do
    bomb = Zstd.compress(List.duplicate(:binary.copy(<<0>>, 1_000_000), 300))
    [part] = [bomb] |> Zstd.decompress_stream() |> Enum.take(1)
    assert byte_size(part) in 1..131_072

    endless = Stream.repeatedly(fn -> send(self(), :read) && :rand.bytes(100_000) end)
    assert [_, _] = endless |> Zstd.compress_stream() |> Enum.take(2)
    {:messages, read} = Process.info(self(), :messages)
    assert length(read) in 1..10
  end

  test "what is no iodata is refused" do
    for bad <- [:atom, [1000], ["a" | :b], [1.5]] do
      assert_raise ArgumentError, fn -> Zstd.compress(bad) end
    end

    # This one is read as it comes.
    for bad <- [:atom, [1.5]],
        do: assert_raise(ArgumentError, fn -> Zstd.decompress(bad) end)

    assert {:corrupt, 0, _} = error(fn -> Zstd.decompress(Enum.map(1..100, fn _ -> ?a end)) end)
  end
end
