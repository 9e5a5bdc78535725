defmodule Tame.SHA3.ImplementationsTest do
  use ExUnit.Case, async: true
  alias Tame.SHA3.Test.{Peer, Vectors}

  # How many files there are of a name, and answers at least in each.
  @answers %{
    "sha3_*_short" => {4, 73},
    "sha3_*_long" => {4, 11},
    "shake*_short" => {2, 137},
    "shake*_long" => {2, 11},
    "shake*_variable" => {2, 282},
    "cshake" => {1, 28},
    "kmac" => {1, 12},
    "parallel_hash" => {1, 12},
    "rfc9861" => {1, 67}
  }

  for implementation <- ~w(portable avx2 avx512) do
    # It is chosen when the library is loaded.
    unless match?({^implementation, 0}, Peer.choose(implementation)) do
      IO.puts("skipped: #{implementation}, which this machine or this build lacks")
      @tag skip: "this machine or this build lacks it"
    end

    test "#{implementation} gives the published answers" do
      peer = Peer.start_link(%{env: [{~c"TAME_SHA3_IMPL", unquote(to_charlist(implementation))}]})

      assert Peer.call(peer, :tame_sha3, :implementation) ==
               unquote(String.to_atom(implementation))

      for {glob, {files, answers}} <- @answers, names = Vectors.names(glob) do
        assert {glob, length(names)} == {glob, files}

        for name <- names do
          assert {count, []} = Peer.call(peer, Vectors, :check, [name])
          assert {name, count} >= {name, answers}
        end
      end
    end
  end

  # The others are run by the tests in C.
  for name <- Vectors.names("*_monte") do
    test "#{name}: a hundred times a thousand rounds" do
      assert Vectors.check_monte(unquote(name)) == {100, []}
    end
  end

  test "each file of answers is looked at" do
    named = Enum.flat_map(["*_monte" | Map.keys(@answers)], &Vectors.names/1)
    assert Enum.sort(named) == Enum.sort(Vectors.names("*"))
  end

  test "one that does not exist fails the load, with one line that names it" do
    {said, status} = Peer.choose("nonsense")
    assert status != 0
    assert [line] = said |> String.split("\n") |> Enum.filter(&(&1 =~ "TAME_SHA3_IMPL"))

    assert line ==
             "tame_sha3: TAME_SHA3_IMPL=nonsense: expected portable, avx2 or avx512, and of these " <>
               "one that this machine and this build have"
  end
end
