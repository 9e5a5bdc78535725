defmodule Tame.SHA3.HashManyTest do
  use ExUnit.Case, async: true
  import Tame.SHA3.Test.Data

  defp same(messages) do
    for {name, _} <- sha3(),
        do:
          assert(
            :tame_sha3.hash_many(name, messages) == Enum.map(messages, &:crypto.hash(name, &1))
          )
  end

  for count <- [0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 1000] do
    test "#{count} messages of mixed lengths" do
      for seed <- 1..5,
          do: same(for(i <- 1..unquote(count)//1, do: bytes(rem(i * i * 31 * seed, 600), i)))
    end
  end

  test "messages of the same length, at the end of each block" do
    for {_, block} <- sha3(),
        blocks <- 0..2,
        d <- [-1, 0, 1],
        size = blocks * block + d,
        size >= 0,
        do: same(for(seed <- 1..9, do: bytes(size, seed)))
  end

  test "a long one among short ones, wherever it stands" do
    long = bytes(1_000_003, 1)

    for at <- [0, 1, 7, 8, 20],
        do: same(List.insert_at(for(i <- 1..20, do: bytes(i, i)), at, long))

    same([long, long, long])
  end

  test "the same one many times" do
    message = bytes(300, 1)
    same(List.duplicate(message, 100))
    same(List.duplicate("", 100))
  end

  # Up to 64 bytes lie on the heap of the process.
  test "messages on the heap and outside, and collected garbage in between" do
    for sizes <- [[64], [65], [64, 65], [0, 1, 63, 64, 65, 66]],
        do: same(for(i <- 1..1000, size <- sizes, do: bytes(size, i)))
  end

  test "parts of binaries" do
    whole = bytes(20_000, 1)
    same(for at <- 0..19_000//19, do: binary_part(whole, at, rem(at, 1000)))
  end

  test "a binary that grows while its start is hashed" do
    start = bytes(1_000_000, 1)
    task = Task.async(fn -> for _ <- 1..20, do: :tame_sha3.hash_many(:sha3_256, [start, "a"]) end)
    for _ <- 1..200, reduce: start, do: (grows -> grows <> "and more")
    expected = [:crypto.hash(:sha3_256, start), :crypto.hash(:sha3_256, "a")]
    assert Enum.uniq(Task.await(task)) == [expected]
  end

  test "those that begin in the middle of a byte are hashed up to 64 bytes, and refused from there on" do
    same(for size <- [0, 1, 63, 64], do: unaligned(bytes(size, size)))

    for size <- [65, 66, 1000] do
      messages = ["a", unaligned(bytes(size, 1))]
      error = assert_raise(ArgumentError, fn -> :tame_sha3.hash_many(:sha3_256, messages) end)

      assert error.message =~
               "2nd argument: must be a list of binaries, none of which begins in the middle of a byte"
    end
  end
end
