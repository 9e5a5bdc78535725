defmodule Tame.SHA3.BadargTest do
  use ExUnit.Case, async: true
  import Tame.SHA3.Test.Data, only: [unaligned: 1]

  @iodata "must be iodata"
  @sha3 "must be sha3_224, sha3_256, sha3_384 or sha3_512"
  @length "must be a number of bytes, from 0 to 17179869184"
  @short "must be a binary of at most 8192 bytes"
  @kt_custom "must be a binary of at most 1048576 bytes"
  @domain "must be a domain, from 1 to 127"
  @leaf_size "must be the bytes of a leaf, from 1 to 17179869184"
  @algorithm "must be an algorithm, as init/1 describes them"
  @state "must be a resource of this function's type, made in this VM"
  @binaries "must be a list of binaries, none of which begins in the middle of a byte"
  @permutation "must be a binary of 200 bytes"

  # What each kind of argument may be; then what it may not.
  defp right(:iodata), do: "data"
  defp right(:sha3), do: :sha3_256
  defp right(:length), do: 32
  defp right(:short), do: "short"
  defp right(:kt_custom), do: "custom"
  defp right(:domain), do: 1
  defp right(:leaf_size), do: 8
  defp right(:algorithm), do: :kt128
  defp right(:state), do: :tame_sha3.init(:sha3_256)
  defp right(:state_of_shake), do: :tame_sha3.init(:shake128)
  defp right(:binaries), do: ["a"]
  defp right(:permutation), do: <<0::1600>>

  defp wrong(:iodata) do
    {@iodata,
     [:data, 1, 1.5, %{}, {"data"}, make_ref(), self(), <<1::7>>, &right/1] ++
       [[256], [-1], [:data], [1.5], [<<1::7>>], ["a" | :b], ["a" | 1], [["a", [<<1::9>>]]]] ++
       [List.duplicate("a", 100_000) ++ [:b], List.duplicate("a", 100_000) ++ :b]}
  end

  defp wrong(:sha3) do
    {@sha3,
     [:shake128, :kt128, :sha3_257, :sha3, :SHA3_256, :"", "sha3_256", ~c"sha3_256", {:sha3_256}] ++
       [256, nil, String.to_atom(String.duplicate("a", 255)), :ša3_256]}
  end

  defp wrong(:length),
    do:
      {@length,
       [-1, 17_179_869_185, 2 ** 63, 2 ** 64, 2 ** 100, -(2 ** 64), 1.0, :infinity, "32", nil]}

  defp wrong(:short) do
    {@short,
     [:short, [], ["short"], ~c"short", 1, nil, <<1::7>>, <<"short", 0::1>>] ++
       [:binary.copy("a", 8193), unaligned(:binary.copy("a", 8193))]}
  end

  defp wrong(:kt_custom) do
    {@kt_custom,
     [:short, [], ["short"], ~c"short", 1, nil, <<1::7>>, <<"short", 0::1>>] ++
       [:binary.copy("a", 1_048_577), unaligned(:binary.copy("a", 1_048_577))]}
  end

  defp wrong(:domain),
    do: {@domain, [0, 128, 255, 256, 257, -1, 2 ** 32 + 1, 2 ** 64 + 1, 1.0, :a, <<1>>]}

  defp wrong(:leaf_size),
    do: {@leaf_size, [0, -1, 17_179_869_185, 2 ** 64 + 8, 8.0, :infinity, "8", nil]}

  defp wrong(:algorithm) do
    {@algorithm,
     [
       :sha3_255,
       :sha3,
       :shake,
       :shake512,
       :turboshake,
       :turboshake64,
       :kt,
       :kt1288,
       :kmac128,
       :cshake128
     ] ++
       [
         :kmacxof128,
         :parallel_hash128,
         :parallel_hash_xof128,
         :"",
         "sha3_256",
         ~c"sha3_256",
         nil,
         1
       ] ++
       [{}, {1}, {:a}, [:sha3_256], {:sha3_256, 1}, {:shake128, ""}, {"kt128", ""}] ++
       [{:turboshake128, 0}, {:turboshake128, 128}, {:turboshake128, ""}] ++
       [{:turboshake128, 1, 1}, {:kt128, ~c"a"}, {:kt128, "", ""}, {:kt128, <<1::7>>}] ++
       [
         {:kt128, :binary.copy("a", 1_048_577)},
         {:cshake128, ""},
         {:cshake128, "", :a},
         {:cshake128, 1, ""}
       ] ++
       [
         {:cshake128, "", "", ""},
         {:kmac128, "key"},
         {:kmac128, ~c"key", ""},
         {:kmac128, "key", nil}
       ] ++
       [{:kmacxof256, :binary.copy("a", 8193), ""}, {:kmac, "key", ""}, {:kmac512, "key", ""}] ++
       [{:parallel_hash128, 8}, {:parallel_hash128, 0, ""}, {:parallel_hash128, "", 8}] ++
       [{:parallel_hash_xof128, 17_179_869_185, ""}, {:parallel_hash_xof128, 8, nil}] ++
       [
         String.to_atom(String.duplicate("a", 255)),
         {String.to_atom(String.duplicate("é", 255)), ""}
       ]}
  end

  defp wrong(:state),
    do:
      {@state,
       [:state, make_ref(), self(), 1, "state", nil, [], :atomics.new(1, []), :zlib.open()]}

  defp wrong(:state_of_shake), do: wrong(:state)

  defp wrong(:binaries) do
    {@binaries,
     [:messages, "message", 1, %{}, {"a"}, ["a" | "b"], ["a", :b], ["a", ["b"]], [1], [<<1::7>>]] ++
       [["a", <<1::9>>], ["a" | :b], List.duplicate("a", 100_000) ++ [:b]] ++
       [List.duplicate("a", 100_000) ++ :b, [unaligned(:binary.copy("a", 65))]]}
  end

  defp wrong(:permutation) do
    {@permutation,
     [
       "",
       :binary.copy("a", 199),
       :binary.copy("a", 201),
       <<0::1599>>,
       <<0::1601>>,
       [],
       :a,
       1,
       [<<0::1600>>]
     ]}
  end

  @functions [
               hash: [:sha3, :iodata],
               hash_many: [:sha3, :binaries],
               init: [:algorithm],
               update: [:state, :iodata],
               final: [:state],
               final: [:state_of_shake, :length],
               clone: [:state],
               keccak_f1600: [:permutation]
             ] ++
               for(
                 {name, kinds} <- [
                   shake: [:iodata, :length],
                   turboshake: [:iodata, :length],
                   turboshake: [:iodata, :domain, :length],
                   kt: [:iodata, :length],
                   kt: [:iodata, :kt_custom, :length],
                   cshake: [:iodata, :length, :short, :short],
                   kmac: [:short, :iodata, :length, :short],
                   kmacxof: [:short, :iodata, :length, :short],
                   parallel_hash: [:iodata, :leaf_size, :length, :short],
                   parallel_hash_xof: [:iodata, :leaf_size, :length, :short]
                 ],
                 bits <- [128, 256],
                 do: {:"#{name}#{bits}", kinds}
               )

  @ordinals %{1 => "1st", 2 => "2nd", 3 => "3rd", 4 => "4th"}

  defp refused(name, arguments, number, sentence) do
    error = assert_raise(ArgumentError, fn -> apply(:tame_sha3, name, arguments) end)

    assert error.message ==
             "errors were found at the given arguments:\n\n  * #{@ordinals[number]} argument: #{sentence}\n"
  end

  for {name, kinds} <- @functions do
    test "#{name}/#{length(kinds)} says which argument is wrong, and why" do
      kinds = unquote(kinds)
      assert _ = apply(:tame_sha3, unquote(name), Enum.map(kinds, &right/1))

      for {kind, number} <- Enum.with_index(kinds, 1),
          {sentence, values} = wrong(kind),
          value <- values do
        arguments = kinds |> Enum.map(&right/1) |> List.replace_at(number - 1, value)
        refused(unquote(name), arguments, number, sentence)
      end
    end
  end

  test "a tuple of nothing but a name is no algorithm" do
    for name <- [:sha3_256, :shake128, :turboshake128, :kt128],
        do: refused(:init, [{name}], 1, @algorithm)
  end

  test "a name with a byte 0 in it is no algorithm" do
    for name <- [:"sha3_256\0", :"sha3_256\0junk"] do
      refused(:hash, [name, "data"], 1, @sha3)
      refused(:hash_many, [name, ["data"]], 1, @sha3)
      refused(:init, [name], 1, @algorithm)
    end

    refused(:init, [{:"kmac128\0", "key", ""}], 1, @algorithm)
  end

  test "no function of the library is left out" do
    internal = [module_info: 0, module_info: 1, implementation: 0, "$tame": 3]

    exported =
      for {name, arity} <- :tame_sha3.module_info(:exports) -- internal,
          not String.ends_with?(to_string(name), "_nif"),
          do: {name, arity}

    assert Enum.sort(exported) ==
             @functions |> Enum.map(fn {n, k} -> {n, length(k)} end) |> Enum.sort()
  end

  test "a state has the final of its algorithm, and is left as it was by the other" do
    state = right(:state_of_shake)
    refused(:final, [state], 1, "must be a state of SHA-3: the others have final/2")
    assert :tame_sha3.final(state, 9) == :tame_sha3.shake128("", 9)

    for algorithm <- [:kt256, {:kmac128, "key", ""}, {:parallel_hash128, 8, ""}],
        do:
          refused(
            :final,
            [:tame_sha3.init(algorithm)],
            1,
            "must be a state of SHA-3: the others have final/2"
          )

    state = right(:state)
    refused(:final, [state, 32], 1, "must be a state of another than SHA-3, which has final/1")
    assert :tame_sha3.final(state) == :crypto.hash(:sha3_256, "")
  end

  test "a length that is refused leaves the state as it was" do
    state = :tame_sha3.update(right(:state_of_shake), "abc")
    refused(:final, [state, -1], 2, @length)
    assert :tame_sha3.final(state, 9) == :tame_sha3.shake128("abc", 9)
  end

  # Some of it is in the state already, when the wrong piece is reached.
  test "data that is refused never leads to a wrong digest" do
    for data <- [:data, ["abc" | :d], List.duplicate("a", 100_000) ++ [:b], ["abc", 256]] do
      state = :tame_sha3.update(right(:state), "abc")
      refused(:update, [state, data], 2, @iodata)

      try do
        :tame_sha3.final(state)
      rescue
        error in ArgumentError -> assert error.message =~ "1st argument: must be a state"
      else
        digest -> assert digest == :crypto.hash(:sha3_256, "abc")
      end
    end
  end

  test "Erlang's shell says it too" do
    :tame_sha3.shake128("", -1)
  rescue
    _ ->
      said = :erl_error.format_exception(:error, :badarg, __STACKTRACE__)
      assert to_string(said) =~ "tame_sha3:shake128(<<>>,-1)"
      assert to_string(said) =~ "*** argument 2: #{@length}"
  end
end
