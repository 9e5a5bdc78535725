defmodule Tame.Duration do
  @moduledoc """
  Times as people write them: read from a command line, and written with as many digits as their place needs. All
  numbers are µs.
  """

  alias Tame.Number

  @units %{"us" => 1, "ms" => 1000, "s" => 1_000_000}
  @longest_us 1000 * 1_000_000

  @doc """
  A duration as people write it, in µs. An error begins with `name`, the word that the caller used for it.

      iex> Tame.Duration.parse("500us")
      {:ok, 500}

      iex> Tame.Duration.parse("0ms")
      {:error, "duration 0ms: expected a whole number above 0 with us, ms or s, at most 1000s"}

      iex> Tame.Duration.parse("3", "--for")
      {:error, "--for 3: expected a whole number above 0 with us, ms or s, at most 1000s"}
  """
  @spec parse(String.t(), String.t()) :: {:ok, pos_integer()} | {:error, String.t()}
  def parse(text, name \\ "duration") do
    with [_, digits, unit] <- Regex.run(~r/^(\d{1,12})(us|µs|ms|s)$/u, text),
         us = String.to_integer(digits) * @units[String.replace(unit, "µ", "u")],
         true <- us > 0 and us <= @longest_us do
      {:ok, us}
    else
      _ ->
        {:error, "#{name} #{text}: expected a whole number above 0 with us, ms or s, at most 1000s"}
    end
  end

  @doc """
  A duration to its last digit, as a table's title or a limit names it.

      iex> Enum.map([500, 10_000, 2_000_000], &Tame.Duration.text/1)
      ["500 µs", "10 ms", "2 s"]
  """
  @spec text(pos_integer()) :: String.t()
  def text(us) when rem(us, 1_000_000) == 0, do: "#{div(us, 1_000_000)} s"
  def text(us) when rem(us, 1000) == 0, do: "#{div(us, 1000)} ms"
  def text(us), do: "#{us} µs"

  @doc """
  A measured time to three digits.

      iex> Enum.map([12.3, 1500, 2_340_000], &Tame.Duration.measured/1)
      ["12.3 µs", "1.5 ms", "2.34 s"]
  """
  @spec measured(number()) :: String.t()
  def measured(us) when us < 1000, do: "#{digits(us)} µs"
  def measured(us) when us < 1_000_000, do: "#{digits(us / 1000)} ms"
  def measured(us), do: "#{digits(us / 1_000_000)} s"

  @doc """
  A measured time to two digits and without a space, for the cells of a table; `-` where there is none.

      iex> Enum.map([0.4, 850.0, 12_400.0, 310_000, 2_140_000, 12_000_000, nil], &Tame.Duration.short/1)
      ["0.0ms", "0.9ms", "12ms", "310ms", "2.1s", "12s", "-"]
  """
  @spec short(nil | number()) :: String.t()
  def short(nil), do: "-"
  def short(us) when us < 9950, do: decimals(us / 1000) <> "ms"
  def short(us) when us < 999_500, do: "#{round(us / 1000)}ms"
  def short(us) when us < 9_950_000, do: decimals(us / 1_000_000) <> "s"
  def short(us), do: "#{round(us / 1_000_000)}s"

  defp decimals(value), do: :erlang.float_to_binary(value / 1, decimals: 1)

  defp digits(number) do
    text = Number.short(number / 1)

    if String.contains?(text, "."),
      do: text |> String.trim_trailing("0") |> String.trim_trailing("."),
      else: text
  end
end
