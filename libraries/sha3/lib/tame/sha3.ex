defmodule Tame.SHA3 do
  @moduledoc """
  SHA-3 for Elixir: what `:tame_sha3` does, with the same words, and a digest in the making that takes part in streams.

      iex> Tame.SHA3.hash(:sha3_256, ["to be ", "or not"]) |> Base.encode16(case: :lower)
      "8ffe4371a1e204af59f36a1c6ec411064366c4835dd7c1099fc26c7bb1337360"

  Data is iodata of any size. No function holds a scheduler, and each may have a deadline (`Tame.deadline/2`). Lengths
  are bytes. Keys, names and customization strings are binaries of at most 8192 bytes. What is wrong raises
  `ArgumentError`, which says of which argument and why. Arguments come in the order of the standards.

  ## Data that comes in pieces

      iex> digest = Enum.into(["to be ", "or not"], Tame.SHA3.new(:sha3_256))
      iex> digest |> Tame.SHA3.final() |> Base.encode16(case: :lower)
      "8ffe4371a1e204af59f36a1c6ec411064366c4835dd7c1099fc26c7bb1337360"

  A file is read so in constant memory:

      File.stream!(path, [], 65_536) |> Enum.into(Tame.SHA3.new(:sha3_256)) |> Tame.SHA3.final()

  `Enum.into/2` leaves the digest that it is given as it was, and returns another. `update/2` changes the one at hand,
  and costs less.
  """

  @enforce_keys [:state]
  defstruct [:state]

  @typedoc "A digest in the making. It lives in this VM only."
  @type t :: %__MODULE__{state: :tame_sha3.state()}

  @type sha3 :: :tame_sha3.sha3()
  @type algorithm :: :tame_sha3.algorithm()
  @type digest_length :: :tame_sha3.digest_length()
  @type short :: :tame_sha3.short()

  @doc "The digest of FIPS 202."
  @spec hash(sha3(), iodata()) :: binary()
  defdelegate hash(algorithm, data), to: :tame_sha3

  @doc """
  The digests of many messages, in their order: up to eight at once, where the processor can.

      iex> [one, _] = Tame.SHA3.hash_many(:sha3_224, ["one", "two"])
      iex> one == Tame.SHA3.hash(:sha3_224, "one")
      true
  """
  @spec hash_many(sha3(), [binary()]) :: [binary()]
  defdelegate hash_many(algorithm, messages), to: :tame_sha3

  for bits <- [128, 256] do
    @doc """
    So many bytes of SHAKE#{bits}.

        iex> Tame.SHA3.shake#{bits}("abc", 32) |> binary_part(0, 4) == Tame.SHA3.shake#{bits}("abc", 4)
        true
    """
    @spec unquote(:"shake#{bits}")(iodata(), digest_length()) :: binary()
    defdelegate unquote(:"shake#{bits}")(data, length), to: :tame_sha3

    @doc "TurboSHAKE#{bits} (RFC 9861), whose domain is 31."
    @spec unquote(:"turboshake#{bits}")(iodata(), digest_length()) :: binary()
    defdelegate unquote(:"turboshake#{bits}")(data, length), to: :tame_sha3

    @doc "TurboSHAKE#{bits} of a domain, from 1 to 127."
    @spec unquote(:"turboshake#{bits}")(iodata(), 1..127, digest_length()) :: binary()
    defdelegate unquote(:"turboshake#{bits}")(data, domain, length), to: :tame_sha3

    @doc "KangarooTwelve, KT#{bits} (RFC 9861): leaves of 8 KiB are hashed up to eight at once."
    @spec unquote(:"kt#{bits}")(iodata(), digest_length()) :: binary()
    defdelegate unquote(:"kt#{bits}")(data, length), to: :tame_sha3

    @doc "KT#{bits} with a customization string."
    @spec unquote(:"kt#{bits}")(iodata(), short(), digest_length()) :: binary()
    defdelegate unquote(:"kt#{bits}")(data, custom, length), to: :tame_sha3

    @doc "cSHAKE#{bits}. NIST has names for functions of its own; the name is `\"\"` elsewhere."
    @spec unquote(:"cshake#{bits}")(iodata(), digest_length(), short(), short()) :: binary()
    defdelegate unquote(:"cshake#{bits}")(data, length, name, custom), to: :tame_sha3

    for {kmac, what} <- [
          kmac: "KMAC#{bits}",
          kmacxof: "KMACXOF#{bits}, whose length is no part of what is hashed"
        ] do
      @doc "#{what}."
      @spec unquote(:"#{kmac}#{bits}")(short(), iodata(), digest_length(), short()) :: binary()
      defdelegate unquote(:"#{kmac}#{bits}")(key, data, length, custom), to: :tame_sha3
    end

    for {parallel, what} <- [
          parallel_hash: "ParallelHash#{bits}",
          parallel_hash_xof: "ParallelHashXOF#{bits}, whose length is no part of what is hashed"
        ] do
      @doc "#{what}. Leaves of `leaf_size` bytes are hashed up to eight at once."
      @spec unquote(:"#{parallel}#{bits}")(iodata(), pos_integer(), digest_length(), short()) ::
              binary()
      defdelegate unquote(:"#{parallel}#{bits}")(data, leaf_size, length, custom), to: :tame_sha3
    end
  end

  @doc """
  A digest that takes its data bit by bit.

      iex> {:kmac256, "key", ""} |> Tame.SHA3.new() |> Tame.SHA3.update("data") |> Tame.SHA3.final(4)
      Tame.SHA3.kmac256("key", "data", 4, "")
  """
  @spec new(algorithm()) :: t()
  def new(algorithm), do: %__MODULE__{state: :tame_sha3.init(algorithm)}

  @doc """
  The same digest, with the data in it, wherever it is known. Calls with one digest take turns. One that was ended, by a
  deadline or the death of its caller, leaves a digest that raises from then on.
  """
  @spec update(t(), iodata()) :: t()
  def update(%__MODULE__{state: state} = digest, data) do
    :tame_sha3.update(state, data)
    digest
  end

  @doc "The digest of SHA-3. What it was made of is used up."
  @spec final(t()) :: binary()
  def final(%__MODULE__{state: state}), do: :tame_sha3.final(state)

  @doc "So many bytes of the others, whose digest has no size of its own."
  @spec final(t(), digest_length()) :: binary()
  def final(%__MODULE__{state: state}, length), do: :tame_sha3.final(state, length)

  @doc """
  One that has the same data in it, and goes on alone.

      iex> begun = Tame.SHA3.new(:sha3_256) |> Tame.SHA3.update("to be ")
      iex> other = Tame.SHA3.clone(begun) |> Tame.SHA3.update("or not")
      iex> Tame.SHA3.final(begun) == Tame.SHA3.final(other)
      false
  """
  @spec clone(t()) :: t()
  def clone(%__MODULE__{state: state}), do: %__MODULE__{state: :tame_sha3.clone(state)}

  @doc "The permutation itself, of 200 bytes, the lanes in little-endian order."
  @spec keccak_f1600(binary()) :: binary()
  defdelegate keccak_f1600(state), to: :tame_sha3

  @doc "What was chosen for this machine when the library was loaded, or by `TAME_SHA3_IMPL` in the environment."
  @spec implementation() :: :portable | :avx2 | :avx512
  defdelegate implementation(), to: :tame_sha3

  defimpl Collectable do
    # Into a clone, which is garbage when the stream is halted.
    def into(digest), do: {Tame.SHA3.clone(digest), &collect/2}

    defp collect(digest, {:cont, data}), do: Tame.SHA3.update(digest, data)
    defp collect(digest, :done), do: digest
    defp collect(_digest, :halt), do: :ok
  end
end
