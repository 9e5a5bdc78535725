defmodule Tame.Number do
  @moduledoc """
  Numbers as the report prints them.
  """

  @doc """
  Three significant digits, or all digits before the point when there are more; `nil` stays `nil`.

  The histogram keeps three significant digits and the clock counts nanoseconds, so more than
  three decimals of a microsecond are never real.

      iex> Enum.map([0.0421, 2.98, 51.84, 180.2, 12_345.6], &Tame.Number.short/1)
      ["0.042", "2.98", "51.8", "180", "12346"]
  """
  @spec short(number() | nil) :: String.t() | nil
  def short(nil), do: nil
  def short(number) when number < 1, do: decimals(number, 3)
  def short(number) when number < 10, do: decimals(number, 2)
  def short(number) when number < 100, do: decimals(number, 1)
  def short(number), do: decimals(number, 0)

  @doc """
  A count of bytes as people say it, with the exact count behind it where that differs.

      iex> Enum.map([16, 65_536, 1_500_000], &Tame.Number.bytes/1)
      ["16 B", "64 KiB (65,536 B)", "1.43 MiB (1,500,000 B)"]
  """
  @spec bytes(non_neg_integer()) :: String.t()
  def bytes(count) when count < 1024, do: "#{count} B"
  def bytes(count) when count < 1024 * 1024, do: "#{scaled(count, 1024)} KiB (#{grouped(count)} B)"
  def bytes(count), do: "#{scaled(count, 1024 * 1024)} MiB (#{grouped(count)} B)"

  @doc """
  An integer with its thousands apart.

      iex> Enum.map([7, 1000, 1_234_567], &Tame.Number.grouped/1)
      ["7", "1,000", "1,234,567"]
  """
  @spec grouped(non_neg_integer()) :: String.t()
  def grouped(count), do: count |> Integer.to_string() |> thousands() |> Enum.join(",")

  @doc """
  Digits in groups of three, counted from the right.

      iex> Tame.Number.thousands("12346")
      ["12", "346"]
  """
  @spec thousands(String.t()) :: [String.t()]
  def thousands(digits) when byte_size(digits) <= 3, do: [digits]

  def thousands(digits) do
    {front, last} = String.split_at(digits, -3)
    thousands(front) ++ [last]
  end

  defp decimals(number, count), do: :erlang.float_to_binary(number / 1, decimals: count)

  defp scaled(count, unit) when rem(count, unit) == 0, do: Integer.to_string(div(count, unit))
  defp scaled(count, unit), do: short(count / unit)
end
