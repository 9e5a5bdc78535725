defmodule Tame.Report.Words do
  @moduledoc """
  Figures in the sentences of the report: with two digits and a space that no line breaks at.
  """

  alias Tame.{Duration, Number}

  @typedoc "A sentence, of which some parts may stand out."
  @type rich :: String.t() | [String.t() | {:strong, String.t()}]

  @nbsp "\u00A0"

  @doc """
  A time given in µs.

      iex> Enum.map([0.0721, 12_400.0, 1_006_000], &Tame.Report.Words.time/1)
      ["0.072\u00A0µs", "12\u00A0ms", "1\u00A0s"]
  """
  @spec time(number()) :: String.t()
  def time(us), do: us |> two_digits() |> Duration.measured() |> String.replace(" ", @nbsp)

  @doc """
  How many times one figure is the other.

      iex> Enum.map([0.24, 1.0, 9.93, 41.4, 2512], &Tame.Report.Words.times/1)
      ["0.24\u00A0×", "1\u00A0×", "9.9\u00A0×", "41\u00A0×", "2,500\u00A0×"]
  """
  @spec times(number()) :: String.t()
  def times(ratio), do: digits(ratio) <> @nbsp <> "×"

  @doc """
  A number to two digits, or all before the point when there are more.

      iex> Enum.map([0.24, 3.0, 41.4, 2512], &Tame.Report.Words.digits/1)
      ["0.24", "3", "41", "2,500"]
  """
  @spec digits(number()) :: String.t()
  def digits(number) do
    rounded = two_digits(number)

    if rounded == trunc(rounded),
      do: Number.grouped(trunc(rounded)),
      else: :erlang.float_to_binary(rounded, [:short])
  end

  @doc """
  A size without its exact count.

      iex> Tame.Report.Words.bytes(268_435_456)
      "256\u00A0MiB"
  """
  @spec bytes(non_neg_integer()) :: String.t()
  def bytes(count) do
    count |> Number.bytes() |> String.replace(~r/ \(.*/, "") |> String.replace(" ", @nbsp)
  end

  @doc """
  A list as people say it.

      iex> Tame.Report.Words.list(["a", "b", "c"])
      "a, b and c"
  """
  @spec list([String.t()]) :: String.t()
  def list([]), do: ""
  def list([one]), do: one

  def list(many) do
    {front, [last]} = Enum.split(many, -1)
    Enum.join(front, ", ") <> " and " <> last
  end

  @doc "A rich sentence as text alone."
  @spec plain(rich()) :: String.t()
  def plain(text) when is_binary(text), do: text

  def plain(parts) do
    Enum.map_join(parts, fn
      {:strong, text} -> text
      text -> text
    end)
  end

  defp two_digits(number) when number <= 0, do: 0.0

  # By whole powers of ten, so that nothing is left of 2500 but 2500.
  defp two_digits(number) do
    case floor(:math.log10(number)) - 1 do
      power when power > 0 -> round(number / Integer.pow(10, power)) * Integer.pow(10, power) / 1
      power -> Float.round(number / 1, min(-power, 15))
    end
  end
end
