defmodule Tame.SHA3.HashTest do
  use ExUnit.Case, async: true
  import Tame.SHA3.Test.Data
  alias Tame.SHA3.Test.Vectors

  # By SHA-3 in one call, and by KangarooTwelve in a state.
  defp same(data, bytes) do
    for {name, _} <- sha3(), do: assert(:tame_sha3.hash(name, data) == :crypto.hash(name, bytes))
    state = :tame_sha3.update(:tame_sha3.init(:kt128), data)
    assert :tame_sha3.final(state, 32) == :tame_sha3.kt128(bytes, 32)
  end

  test "crypto agrees, on both sides of each block's end" do
    for {name, block} <- sha3(),
        blocks <- Enum.to_list(0..9) ++ [30, 31, 32, 33],
        size <- max(blocks * block - 2, 0)..(blocks * block + 2) do
      data = bytes(size, size)
      assert {size, :tame_sha3.hash(name, data)} == {size, :crypto.hash(name, data)}
    end
  end

  test "crypto agrees on data of any size" do
    for seed <- 1..200, {name, _} <- sha3() do
      data = bytes(rem(seed * seed * 7919, 100_000), seed)
      assert {seed, :tame_sha3.hash(name, data)} == {seed, :crypto.hash(name, data)}
    end
  end

  test "crypto agrees on megabytes" do
    data = bytes(5_000_003, 1)
    same(data, data)
    same([data, data | data], data <> data <> data)
  end

  test "a digest of each length is the start of a longer one, in one call and at the end of a state" do
    long = :tame_sha3.shake256("abc", 700)
    assert <<0x483366601360A877::64, _::binary>> = long

    for length <- 0..700 do
      assert :tame_sha3.shake256("abc", length) == binary_part(long, 0, length)
      state = :tame_sha3.update(:tame_sha3.init(:shake256), "abc")
      assert :tame_sha3.final(state, length) == binary_part(long, 0, length)
    end
  end

  describe "iodata" do
    test "of every shape" do
      for seed <- 1..300 do
        bytes = bytes(rem(seed * seed * 7919, 50_000), seed)
        same(iodata(bytes, seed), bytes)
      end
    end

    test "that is empty" do
      for data <- ["", [], [[]], [""], ["" | ""], [[], [[] | ""] | ""], List.duplicate([], 1000)],
          do: same(data, "")
    end

    test "of a million elements" do
      bytes = Vectors.pattern(1_000_000)
      same(:binary.bin_to_list(bytes), bytes)
      same(for(<<byte <- bytes>>, do: <<byte>>), bytes)
      same(List.duplicate("", 1_000_000), "")
    end

    test "that is nested a hundred thousand deep, to the left and to the right" do
      bytes = String.duplicate("x", 100_000)
      same(Enum.reduce(1..100_000, [], fn _, left -> [left | "x"] end), bytes)
      same(Enum.reduce(1..100_000, [], fn _, right -> ["x", right] end), bytes)
    end

    test "that begins in the middle of a byte" do
      for size <- [0, 1, 63, 64, 65, 66, 135, 136, 137, 8191, 8192, 8193, 100_000] do
        bytes = bytes(size, size)
        same(unaligned(bytes), bytes)
        same([unaligned(bytes), 7 | unaligned(bytes)], bytes <> <<7>> <> bytes)
      end
    end
  end

  test "keys, names and customization strings may begin in the middle of a byte" do
    for size <- [0, 1, 64, 65, 8192] do
      bytes = bytes(size, size)
      odd = unaligned(bytes)

      assert :tame_sha3.kmac128(odd, "data", 32, odd) ==
               :tame_sha3.kmac128(bytes, "data", 32, bytes)

      assert :tame_sha3.cshake256("data", 32, odd, odd) ==
               :tame_sha3.cshake256("data", 32, bytes, bytes)

      assert :tame_sha3.kt128("data", odd, 32) == :tame_sha3.kt128("data", bytes, 32)
      state = :tame_sha3.init({:kt128, odd})
      assert :tame_sha3.final(state, 32) == :tame_sha3.kt128("", bytes, 32)
    end
  end

  test "the permutation is that of SHA-3" do
    block = "abc" <> <<0x06>> <> :binary.copy(<<0>>, 131) <> <<0x80>> <> :binary.copy(<<0>>, 64)

    for state <- [block, unaligned(block)] do
      assert <<digest::binary-size(32), _::binary>> = :tame_sha3.keccak_f1600(state)
      assert digest == :crypto.hash(:sha3_256, "abc")
    end
  end

  test "the length is part of KMAC and ParallelHash, not of their extendable forms" do
    for {name, xof, arguments} <- [
          {:kmac256, :kmacxof256, &["key", "data", &1, ""]},
          {:parallel_hash256, :parallel_hash_xof256, &["data", 8, &1, ""]}
        ] do
      start = &binary_part(apply(:tame_sha3, &1, arguments.(&2)), 0, 16)
      refute start.(name, 16) == start.(name, 32)
      assert start.(xof, 16) == start.(xof, 32)
    end
  end
end
