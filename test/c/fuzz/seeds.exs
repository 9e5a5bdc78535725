# Writes the fuzzers' corpus of external terms anew, from the size classes of the emulator and from what is
# wrong on purpose: MIX_ENV=test mix run test/c/fuzz/seeds.exs
#
# The files are named by what they hold, and only those are touched; what fuzzing has found has numbers.

alias Tame.Test.{ExternalForms, SizeClasses}

# No longer than the fuzzer makes its inputs (c_src/host/host.mk).
most_bytes = 4096
folder = Path.join(__DIR__, "corpus/etf")

name = fn class ->
  text = class |> Tuple.to_list() |> Enum.map_join("-", &inspect(&1, charlists: :as_lists))
  "class-" <> String.replace(text, ~r/[^a-z0-9.-]+/i, "")
end

# One fuzzer's input shows what its neighbours would: every third of the wrong ones is enough.
right = for {class, term} <- SizeClasses.some(most_bytes), do: {class, :erlang.term_to_binary(term)}
wrong = ExternalForms.hostile() |> Enum.reject(&match?({{:cut, _, _}, _}, &1)) |> Enum.take_every(3)
kinds = [:map, :binary, :bitstring, :list, :tuple, :improper, :foreign, :deep]
# Sizes that no bound lies beside, and kinds of keys that are read as others are.
dull = &match?({:map, size, kind} when size in [2, 31, 34] or kind in [:large, :float], &1)
kept = for {class, _} = one <- right, elem(class, 0) in kinds, not dull.(class), do: one

# Each form that there is or was, with the oldest and the newest atom, as it may be and as it may not.
identifiers =
  for {{_, atom, 1, creation}, _} = one <- ExternalForms.identifiers(),
      atom in [100, 119] and creation in [3, 4],
      do: one

for file <- Path.wildcard(Path.join(folder, "class-*")), do: File.rm!(file)

seeds = kept ++ wrong ++ ExternalForms.deadly() ++ identifiers

for {class, bytes} <- seeds, byte_size(bytes) <= most_bytes do
  File.write!(Path.join(folder, name.(class)), bytes)
end
