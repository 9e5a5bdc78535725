defmodule Tame.SHA3Test do
  use ExUnit.Case, async: true
  doctest Tame.SHA3
  alias Tame.SHA3

  test "each function of tame_sha3 has one of the same name here, but init/1, which is new/1" do
    theirs =
      for {name, arity} <-
            :tame_sha3.module_info(:exports) -- [module_info: 0, module_info: 1, "$tame": 3],
          not String.ends_with?(to_string(name), "_nif"),
          do: {if(name == :init, do: :new, else: name), arity}

    assert Enum.sort(theirs) ==
             Enum.sort(SHA3.__info__(:functions) -- [__struct__: 0, __struct__: 1])
  end

  test "functions in one call are those of tame_sha3" do
    calls = [
      hash: [:sha3_512, "data"],
      hash_many: [:sha3_384, ["one", "two"]],
      keccak_f1600: [<<0::1600>>],
      implementation: []
    ]

    by_strength =
      for {name, arguments} <- [
            shake: ["data", 32],
            turboshake: ["data", 32],
            turboshake: ["data", 7, 32],
            kt: ["data", 32],
            kt: ["data", "custom", 32],
            cshake: ["data", 32, "name", "custom"],
            kmac: ["key", "data", 32, "custom"],
            kmacxof: ["key", "data", 32, "custom"],
            parallel_hash: ["data", 2, 32, "custom"],
            parallel_hash_xof: ["data", 2, 32, "custom"]
          ],
          bits <- [128, 256],
          do: {:"#{name}#{bits}", arguments}

    for {name, arguments} <- calls ++ by_strength,
        do: assert(apply(SHA3, name, arguments) == apply(:tame_sha3, name, arguments))
  end

  test "a file goes into a digest" do
    file = File.open!(__ENV__.file, [:read])
    digest = IO.binstream(file, 100) |> Enum.into(SHA3.new(:sha3_256)) |> SHA3.final()
    assert digest == :crypto.hash(:sha3_256, File.read!(__ENV__.file))
  end

  test "streams go into a digest of any algorithm, one behind the other" do
    digest = for part <- ["a", ["b", ?c], ""], into: SHA3.new(:kt128), do: part
    digest = Enum.into(["d"], digest)
    assert SHA3.final(digest, 32) == :tame_sha3.kt128("abcd", 32)
  end

  test "a digest is left as it was by what goes into another of it" do
    begun = SHA3.new(:sha3_256) |> SHA3.update("a")
    assert Enum.into(["b"], begun) |> SHA3.final() == :crypto.hash(:sha3_256, "ab")
    assert Enum.into(["c"], begun) |> SHA3.final() == :crypto.hash(:sha3_256, "ac")
    assert SHA3.final(begun) == :crypto.hash(:sha3_256, "a")
  end

  test "a stream that raises, or what is no iodata, leaves the digest as it was" do
    begun = SHA3.new(:sha3_256) |> SHA3.update("a")
    raises = Stream.map(["b", "c"], &if(&1 == "c", do: raise("on the way"), else: &1))
    assert_raise RuntimeError, "on the way", fn -> Enum.into(raises, begun) end
    error = assert_raise ArgumentError, fn -> Enum.into(["b", :c], begun) end
    assert error.message =~ "2nd argument: must be iodata"
    assert SHA3.final(begun) == :crypto.hash(:sha3_256, "a")
  end

  test "a collectable that is halted answers so, and leaves the digest as it was" do
    begun = SHA3.new(:sha3_256) |> SHA3.update("a")
    {into, collect} = Collectable.into(begun)
    assert into |> collect.({:cont, "b"}) |> collect.(:halt) == :ok
    assert SHA3.final(begun) == :crypto.hash(:sha3_256, "a")
  end

  test "a key is not seen when a digest is inspected" do
    refute inspect(SHA3.new({:kmac128, "a secret key", ""})) =~ "secret"
  end

  test "a deadline ends a call" do
    data = List.duplicate(:binary.copy("a", 10_000_000), 40)

    error =
      assert_raise ErlangError, fn -> Tame.deadline(1, fn -> SHA3.hash(:sha3_256, data) end) end

    assert error.original == {:tame, :deadline}
  end
end
