defmodule Tame.SHA3.Test.Data do
  @moduledoc false
  # Bytes, iodata of every shape, and the algorithms. All of it follows from a seed.

  @sha3 [sha3_224: 144, sha3_256: 136, sha3_384: 104, sha3_512: 72]

  @doc "The four, each with the size of its block."
  def sha3, do: @sha3

  @doc "What init/1 takes, each with its digest in one call, of that number of bytes where it has no size of its own."
  def algorithms do
    sha3 = for {name, _} <- @sha3, do: {name, fn data, _ -> :tame_sha3.hash(name, data) end}

    plain =
      for name <- [:shake128, :shake256, :turboshake128, :turboshake256, :kt128, :kt256],
          do: {name, one_call(name, &[&1, &2])}

    domain =
      for name <- [:turboshake128, :turboshake256],
          domain <- [1, 127],
          do: {{name, domain}, one_call(name, &[&1, domain, &2])}

    kt =
      for name <- [:kt128, :kt256],
          custom <- ["", bytes(8192, 1)],
          do: {{name, custom}, one_call(name, &[&1, custom, &2])}

    cshake =
      for name <- [:cshake128, :cshake256],
          {n, s} <- [{"", ""}, {"name", bytes(200, 2)}],
          do: {{name, n, s}, one_call(name, &[&1, &2, n, s])}

    kmac =
      for name <- [:kmac128, :kmac256, :kmacxof128, :kmacxof256],
          {key, s} <- [{"", ""}, {bytes(170, 3), "custom"}],
          do: {{name, key, s}, one_call(name, &[key, &1, &2, s])}

    parallel =
      for name <-
            ~w(parallel_hash128 parallel_hash256 parallel_hash_xof128 parallel_hash_xof256)a,
          {leaf, s} <- [{1, ""}, {200, "custom"}, {8192, ""}, {8193, "custom"}],
          do: {{name, leaf, s}, one_call(name, &[&1, leaf, &2, s])}

    sha3 ++ plain ++ domain ++ kt ++ cshake ++ kmac ++ parallel
  end

  defp one_call(name, arguments),
    do: fn data, length -> apply(:tame_sha3, name, arguments.(data, length)) end

  @doc "The digest of a state, whichever it is of."
  def final(state, algorithm, length) do
    if is_map_key(Map.new(@sha3), algorithm),
      do: :tame_sha3.final(state),
      else: :tame_sha3.final(state, length)
  end

  def bytes(size, seed) do
    {bytes, _} = :rand.bytes_s(size, :rand.seed_s(:exsss, seed))
    bytes
  end

  @doc "These bytes in pieces."
  def cut(bytes, seed) do
    :rand.seed(:exsss, seed)
    cut(bytes)
  end

  defp cut(""), do: Enum.random([[], [""]])

  defp cut(bytes) do
    size = min(byte_size(bytes), Enum.random([0, 1, 7, 71, 136, 168, 1000, 8191, 8193, 70_000]))
    {piece, rest} = :erlang.split_binary(bytes, size)
    [piece | cut(rest)]
  end

  @doc "These bytes as iodata: nested, improper, with bytes, empty chunks, and binaries of every kind."
  def iodata(bytes, seed), do: bytes |> cut(seed) |> Enum.map(&chunk/1) |> nest()

  defp chunk(bytes) do
    case :rand.uniform(6) do
      1 when byte_size(bytes) < 200 -> :binary.bin_to_list(bytes)
      2 -> unaligned(bytes)
      3 -> binary_part("front" <> bytes <> "behind", 5, byte_size(bytes))
      4 -> [[[], bytes], ""]
      _ -> bytes
    end
  end

  defp nest([]), do: []
  defp nest([last]) when is_binary(last), do: last
  defp nest([chunk]), do: [chunk]

  defp nest(chunks) do
    {left, right} = Enum.split(chunks, :rand.uniform(length(chunks)))
    Enum.random([[left | nest(right)], [nest(left), nest(right)], [[], left, nest(right)]])
  end

  @doc "The same bytes, from the third bit of a byte on."
  def unaligned(bytes) do
    <<_::3, unaligned::bitstring>> = <<0::3, bytes::binary>>
    unaligned
  end
end
