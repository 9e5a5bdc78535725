defmodule Tame.SHA3.StreamingTest do
  use ExUnit.Case, async: true
  import Tame.SHA3.Test.Data
  import :proper_types, only: [integer: 2, oneof: 1]

  # Of all sizes, and at the ends of blocks and leaves.
  defp size do
    oneof([
      integer(0, 400),
      integer(0, 70_000),
      oneof(for at <- [136, 168, 8192, 16_384, 65_536, 73_728], d <- [-1, 0, 1], do: at + d)
    ])
  end

  defp seed, do: integer(0, 1_000_000)

  for {{algorithm, _}, index} <- Enum.with_index(algorithms()) do
    @index index
    test "#{index}: #{inspect(algorithm, binaries: :as_binaries, limit: 5)} in pieces is what it is in one call, and so is a clone" do
      {algorithm, one_call} = Enum.at(algorithms(), @index)

      property = fn {before, later, other, seed, length} ->
        [before, later, other] = for size <- [before, later, other], do: bytes(size, seed + size)
        state = updates(:tame_sha3.init(algorithm), before, seed)
        clone = :tame_sha3.clone(state)
        updates(state, later, seed)
        updates(clone, other, seed)

        final(state, algorithm, length) == one_call.(before <> later, length) and
          final(clone, algorithm, length) == one_call.(before <> other, length)
      end

      generator = {size(), size(), size(), seed(), integer(0, 500)}
      test = :proper.forall(generator, property)

      assert :proper.quickcheck(test, [:quiet, :long_result, numtests: 25]) == true,
             "does not hold for #{inspect(:proper.counterexample())}"
    end
  end

  # Each update gets iodata of its own.
  defp updates(state, bytes, seed) do
    for piece <- cut(bytes, seed), do: :tame_sha3.update(state, iodata(piece, seed))
    state
  end

  test "each cut of a message into two, and of a shorter one into three" do
    for {name, block} <- sha3() do
      two = bytes(2 * block + 1, block)
      three = bytes(block + 1, block)
      for a <- 0..byte_size(two), do: cut_at(name, two, [a])
      for a <- 0..byte_size(three), b <- a..byte_size(three), do: cut_at(name, three, [a, b - a])
    end
  end

  test "each cut near the end of a leaf" do
    bytes = bytes(8192 * 10, 1)

    for {algorithm, one_call} <- algorithms(), tree?(algorithm) do
      digest = one_call.(bytes, 32)

      for leaf <- [1, 8, 9], d <- [-1, 0, 1] do
        {a, b} = at(bytes, 8192 * leaf + d)
        state = :tame_sha3.init(algorithm)
        for part <- [a, b], do: :tame_sha3.update(state, part)
        assert {algorithm, leaf, d, :tame_sha3.final(state, 32)} == {algorithm, leaf, d, digest}
      end
    end
  end

  defp tree?(:kt128), do: true
  defp tree?({:kt256, _}), do: true
  defp tree?({:parallel_hash128, leaf, _}), do: leaf >= 8192
  defp tree?(_), do: false

  defp at(bytes, size), do: :erlang.split_binary(bytes, size)

  defp cut_at(name, bytes, sizes) do
    state = :tame_sha3.init(name)

    rest =
      Enum.reduce(sizes, bytes, fn size, bytes ->
        {piece, rest} = at(bytes, size)
        :tame_sha3.update(state, piece)
        rest
      end)

    :tame_sha3.update(state, rest)
    assert {sizes, :tame_sha3.final(state)} == {sizes, :tame_sha3.hash(name, bytes)}
  end

  test "a clone is one of its time, and survives the first" do
    first = :tame_sha3.update(:tame_sha3.init(:sha3_256), "a")
    clone = :tame_sha3.clone(first)
    clone_of_clone = :tame_sha3.clone(clone)
    assert :tame_sha3.final(first) == :crypto.hash(:sha3_256, "a")
    :tame_sha3.update(clone, "b")
    assert :tame_sha3.final(clone) == :crypto.hash(:sha3_256, "ab")
    assert :tame_sha3.final(clone_of_clone) == :crypto.hash(:sha3_256, "a")
  end

  test "a long digest and a short one come of the same state" do
    state = :tame_sha3.update(:tame_sha3.init(:shake128), "abc")
    long = :tame_sha3.final(:tame_sha3.clone(state), 1_000_000)
    assert long == :tame_sha3.shake128("abc", 1_000_000)
    assert :tame_sha3.final(state, 10) == binary_part(long, 0, 10)
  end
end
