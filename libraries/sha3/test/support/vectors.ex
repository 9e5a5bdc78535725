defmodule Tame.SHA3.Test.Vectors do
  @moduledoc false
  # The published answers in ../vectors: records of `key = value` lines, with empty lines between them.

  @folder Path.expand("../vectors", __DIR__)

  @sha3 ~w(sha3_224 sha3_256 sha3_384 sha3_512)
  @shake ~w(shake128 shake256)

  @doc "The files of these names, without .txt."
  def names(glob) do
    for path <- Path.wildcard(Path.join(@folder, glob <> ".txt")), do: Path.basename(path, ".txt")
  end

  # How many records of the file the library answers, and those that it answers wrongly.
  def check(name) do
    records = read(name)
    {length(records), Enum.reject(records, &(answer(name, &1) == bytes(&1["md"])))}
  end

  # The same of a file of Monte Carlo rounds.
  def check_monte(name) do
    [seed | records] = read(name)
    {length(records), monte(String.replace_suffix(name, "_monte", ""), seed, records)}
  end

  def read(name) do
    @folder
    |> Path.join(name <> ".txt")
    |> File.read!()
    |> String.split("\n\n", trim: true)
    |> Enum.map(&record/1)
    |> Enum.reject(&(&1 == %{}))
  end

  defp record(text) do
    for line <- String.split(text, "\n", trim: true),
        not String.starts_with?(line, "#"),
        into: %{} do
      [key | value] = String.split(line, [" = ", " ="], parts: 2)
      {key, Enum.join(value)}
    end
  end

  defp bytes(hexadecimal), do: Base.decode16!(hexadecimal, case: :lower)

  # ---- what the library says ----

  defp answer(_, %{"alg" => "turboshake" <> _ = algorithm} = record) do
    domain = String.to_integer(record["domain"], 16)
    behind(record, &call(algorithm, [message(record), domain, &1]))
  end

  defp answer(_, %{"alg" => "kt" <> _ = algorithm} = record) do
    behind(record, &call(algorithm, [message(record), pattern(custom(record)), &1]))
  end

  defp answer(_, %{"alg" => algorithm, "name" => name} = r),
    do: call(algorithm, [message(r), size(r), bytes(name), bytes(r["custom"])])

  defp answer(_, %{"alg" => "kmac" <> bits, "xof" => xof} = r) do
    algorithm = if xof == "1", do: "kmacxof" <> bits, else: "kmac" <> bits
    call(algorithm, [bytes(r["key"]), message(r), size(r), bytes(r["custom"])])
  end

  defp answer(_, %{"alg" => "parallel_hash" <> _ = algorithm, "xof" => xof} = r) do
    bits = String.slice(algorithm, -3, 3)
    algorithm = if xof == "1", do: "parallel_hash_xof" <> bits, else: "parallel_hash" <> bits
    call(algorithm, [message(r), String.to_integer(r["leaf"]), size(r), bytes(r["custom"])])
  end

  defp answer(name, record) do
    [algorithm | _] = String.split(name, ~r/_(short|long|variable)$/)
    hash(algorithm, message(record), size(record))
  end

  defp call(algorithm, arguments),
    do: apply(:tame_sha3, String.to_atom(algorithm), arguments)

  defp hash(algorithm, message, _) when algorithm in @sha3,
    do: :tame_sha3.hash(String.to_atom(algorithm), message)

  defp hash(algorithm, message, size) when algorithm in @shake,
    do: call(algorithm, [message, size])

  defp custom(record), do: String.to_integer(record["custom"] || "0")
  defp size(record), do: div(byte_size(record["md"]), 2)

  # The digest behind the bytes that are to be skipped.
  defp behind(record, digest) do
    skip = String.to_integer(record["skip"])
    binary_part(digest.(skip + size(record)), skip, size(record))
  end

  defp message(%{"msg" => message}), do: bytes(message)
  defp message(%{"ff" => size}), do: :binary.copy(<<255>>, String.to_integer(size))
  defp message(%{"ptn" => size}), do: pattern(String.to_integer(size))

  @doc "The RFC's ptn(n)."
  def pattern(size) do
    period = :binary.list_to_bin(Enum.to_list(0..250))
    period |> :binary.copy(div(size, 251) + 1) |> binary_part(0, size)
  end

  # ---- Monte Carlo ----

  # A message is the digest before it; of SHAKE its first 16 bytes, and its last two are the next size.
  defp monte(algorithm, seed, records) do
    {min, max} = {number(seed["min"]), number(seed["max"])}

    {wrong, _} =
      Enum.flat_map_reduce(records, {bytes(seed["seed"]), max}, fn record, {message, size} ->
        {digest, _} = next = rounds(1000, algorithm, message, size, min, max - min + 1)
        {if(digest == bytes(record["md"]), do: [], else: [record]), next}
      end)

    wrong
  end

  defp rounds(0, _, message, size, _, _), do: {message, size}

  defp rounds(left, algorithm, message, size, min, range) do
    digest = hash(algorithm, start(algorithm, message), size)
    rounds(left - 1, algorithm, digest, next_size(algorithm, digest, min, range), min, range)
  end

  defp start(algorithm, message) when algorithm in @shake,
    do: binary_part(message <> <<0::128>>, 0, 16)

  defp start(_, message), do: message

  defp next_size(algorithm, digest, min, range) when algorithm in @shake do
    <<last::16>> = binary_part(digest, byte_size(digest), -2)
    min + rem(last, range)
  end

  defp next_size(_, _, _, _), do: nil

  defp number(nil), do: 0
  defp number(text), do: String.to_integer(text)
end
