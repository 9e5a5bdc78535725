defmodule Zstd do
  @moduledoc """
  Zstandard by libzstd, for data of any size: no call holds a scheduler.

      iex> packed = Zstd.compress(["to be ", "or not ", "to be"])
      iex> Zstd.decompress(packed)
      "to be or not to be"

  A context is made once and used for many calls; calls of several processes on one context take turns:

      iex> c = Zstd.compressor(level: 1)
      iex> d = Zstd.decompressor()
      iex> Zstd.decompress(d, Zstd.compress(c, "abc"), [])
      "abc"

  Data is iodata everywhere, and is not flattened. What is wrong with it is raised as an error, `{what, position, why}`:
  `:corrupt`, `:truncated` or `:too_large`, and the number of bytes of the input before it.

      iex> Zstd.decompress("this is no frame")
      ** (ErlangError) Erlang error: {:corrupt, 0, 'Unknown frame descriptor'}
  """

  alias Zstd.Native

  defmodule Dictionary do
    @moduledoc "A digested dictionary, which any number of contexts share."
    @enforce_keys [:ref, :level]
    defstruct [:ref, :level]
    @type t :: %__MODULE__{ref: reference(), level: integer()}
  end

  defmodule Compressor do
    @moduledoc "A context for compression."
    @enforce_keys [:ref, :slow]
    defstruct [:ref, :slow]
    @type t :: %__MODULE__{ref: reference(), slow: boolean()}
  end

  defmodule Decompressor do
    @moduledoc "A context for decompression."
    @enforce_keys [:ref]
    defstruct [:ref]
    @type t :: %__MODULE__{ref: reference()}
  end

  @levels -7..19
  # From here on a block takes longer than a regular scheduler may be held: these go to the dirty ones.
  @slow_from 4
  @default_level 3
  @unlimited 0xFFFF_FFFF_FFFF_FFFF
  @default_limit 1024 * 1024 * 1024

  @doc "A dictionary of these bytes (made by `zstd --train`, or any that resemble the data), for a level."
  @spec dictionary(binary(), integer()) :: Dictionary.t()
  def dictionary(bytes, level \\ @default_level) when level in @levels and is_binary(bytes) do
    %Dictionary{ref: Native.new_dictionary(bytes, level), level: level}
  end

  @doc """
  A context for compression. Options: `:level` from -7 to 19 (3), `:checksum` (`true`), `:dictionary`, whose level counts
  then.
  """
  @spec compressor(keyword()) :: Compressor.t()
  def compressor(options \\ []) do
    options = Keyword.validate!(options, level: @default_level, checksum: true, dictionary: nil)
    dictionary = options[:dictionary]
    level = if dictionary, do: dictionary.level, else: options[:level]

    unless level in @levels,
      do: raise(ArgumentError, "level: expected -7 to 19, got: #{inspect(level)}")

    checksum = if options[:checksum], do: 1, else: 0
    ref = Native.new_compressor(level, checksum, dictionary && dictionary.ref)
    %Compressor{ref: ref, slow: level >= @slow_from}
  end

  @doc "A context for decompression. Option: `:dictionary`."
  @spec decompressor(keyword()) :: Decompressor.t()
  def decompressor(options \\ []) do
    options = Keyword.validate!(options, dictionary: nil)
    dictionary = options[:dictionary]
    %Decompressor{ref: Native.new_decompressor(dictionary && dictionary.ref)}
  end

  @doc "Compresses with a context of its own; options as `compressor/1`."
  @spec compress(iodata()) :: binary()
  def compress(data), do: compress(data, [])

  @doc "Compresses into one frame, which says its size. The first argument is a context, or the data with options."
  @spec compress(Compressor.t() | iodata(), iodata() | keyword()) :: binary()
  def compress(%Compressor{ref: ref, slow: slow}, data) do
    size = :erlang.iolist_size(data)
    if slow, do: Native.compress_slow(ref, data, size), else: Native.compress(ref, data, size)
  end

  def compress(data, options), do: compress(compressor(options), data)

  @doc "Decompresses with a context of its own; options as `decompressor/1`, and `:limit`."
  @spec decompress(iodata(), keyword()) :: binary()
  def decompress(data, options \\ []) do
    {limit, options} = Keyword.split(options, [:limit])
    decompress(decompressor(options), data, limit)
  end

  @doc """
  Decompresses all frames of `data`. `:limit` is the most bytes that may come out (1 GiB); `:infinity` is none.
  """
  @spec decompress(Decompressor.t(), iodata(), keyword()) :: binary()
  def decompress(%Decompressor{ref: ref}, data, options) do
    [limit: limit] = Keyword.validate!(options, limit: @default_limit)
    Native.decompress(ref, data, limit(limit))
  end

  @doc """
  Compresses an enumerable of iodata, lazily, into a stream of binaries: one frame. Options as `compressor/1`.

      File.stream!("log", [], 65_536) |> Zstd.compress_stream() |> Enum.into(File.stream!("log.zst"))
  """
  @spec compress_stream(Enumerable.t(), keyword()) :: Enumerable.t()
  def compress_stream(chunks, options \\ []) do
    transform(chunks, fn -> compressor(options) end, fn
      %Compressor{ref: ref, slow: false}, chunk, ends -> Native.compress_parts(ref, chunk, ends)
      %Compressor{ref: ref}, chunk, ends -> Native.compress_parts_slow(ref, chunk, ends)
    end)
  end

  @doc """
  Decompresses an enumerable of iodata, lazily, into a stream of binaries of 128 KiB at most: no more comes out than is asked
  for, whatever a frame holds. Options as `decompressor/1`, and `:limit` for all that comes out (`:infinity`).
  """
  @spec decompress_stream(Enumerable.t(), keyword()) :: Enumerable.t()
  def decompress_stream(chunks, options \\ []) do
    {limit, options} = Keyword.pop(options, :limit, :infinity)
    limit = limit(limit)

    transform(chunks, fn -> decompressor(options) end, fn %Decompressor{ref: ref}, chunk, ends ->
      Native.decompress_parts(ref, chunk, limit, ends)
    end)
  end

  defp transform(chunks, start, parts) do
    chunks
    |> Stream.map(&{&1, 0})
    |> Stream.concat([{[], 1}])
    |> Stream.transform(start, fn {chunk, ends}, c -> {parts.(c, chunk, ends), c} end, &done/1)
  end

  # A context is collected with its last reference.
  defp done(_context), do: :ok

  defp limit(:infinity), do: @unlimited
  defp limit(bytes) when is_integer(bytes) and bytes >= 0 and bytes < @unlimited, do: bytes

  defp limit(other),
    do: raise(ArgumentError, "limit: expected bytes or :infinity, got: #{inspect(other)}")
end
