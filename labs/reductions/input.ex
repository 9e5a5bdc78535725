defmodule Tame.Reductions.Input do
  @moduledoc """
  Two binaries to combine, and a check of the answer that needs no third one.

  Each binary repeats a pattern of its own, and the lengths of the patterns are two primes: so the
  right answer repeats a block as long as their product, which is computed here byte by byte. An
  answer of any size is compared with that block, one repetition after the other.
  """

  import Bitwise

  @enforce_keys [:bytes, :a, :b, :block]
  defstruct [:bytes, :a, :b, :block]

  @type t :: %__MODULE__{bytes: pos_integer(), a: binary(), b: binary(), block: binary()}

  # Primes, so that no chunk of a power of two, nor one of a round number, falls onto a repetition:
  # chunks that change places are seen.
  @length_a 251
  @length_b 509
  @period @length_a * @length_b

  # Two inputs and, in variants that are cut in Erlang, the parts of the result beside the whole of
  # it; the fifth is for what the allocators hold back.
  @copies 5

  @doc "Inputs of `bytes` bytes each."
  @spec new(pos_integer()) :: t()
  def new(bytes) when is_integer(bytes) and bytes > 0 do
    a = pattern(@length_a)
    b = pattern(@length_b)

    block =
      for i <- 0..(@period - 1), into: <<>> do
        <<bxor(:binary.at(a, rem(i, @length_a)), :binary.at(b, rem(i, @length_b)))>>
      end

    %__MODULE__{bytes: bytes, a: repeat(a, bytes), b: repeat(b, bytes), block: block}
  end

  @doc """
  Whether `answer` is the exclusive or of the two.

      iex> input = Tame.Reductions.Input.new(300_000)
      iex> Tame.Reductions.Input.right?(input, :crypto.exor(input.a, input.b))
      true
      iex> Tame.Reductions.Input.right?(input, input.a)
      false
  """
  @spec right?(t(), term()) :: boolean()
  def right?(%__MODULE__{bytes: bytes, block: block}, answer)
      when is_binary(answer) and byte_size(answer) == bytes do
    right_from?(answer, 0, bytes, block)
  end

  def right?(_input, _other), do: false

  defp right_from?(answer, from, bytes, block) when bytes - from > @period do
    binary_part(answer, from, @period) == block and
      right_from?(answer, from + @period, bytes, block)
  end

  defp right_from?(answer, from, bytes, block) do
    binary_part(answer, from, bytes - from) == binary_part(block, 0, bytes - from)
  end

  @doc "Whether a run with inputs of `bytes` bytes fits into `available` bytes of free memory; if not, why."
  @spec fits(pos_integer(), pos_integer()) :: :ok | {:error, String.t()}
  def fits(bytes, available \\ Tame.Payload.available_bytes()) do
    limit = div(available, @copies)

    if bytes <= limit do
      :ok
    else
      {:error,
       "does not fit in memory: two inputs of #{bytes} bytes, expected at most #{limit} (1/#{@copies} of what is free)"}
    end
  end

  defp pattern(length), do: for(i <- 1..length, into: <<>>, do: <<rem(i * i * 31 + i * 7, 256)>>)

  defp repeat(pattern, bytes) do
    length = byte_size(pattern)
    pattern |> :binary.copy(div(bytes + length - 1, length)) |> binary_part(0, bytes)
  end
end
