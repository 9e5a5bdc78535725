defmodule Tame.Audit.Growth do
  @moduledoc """
  How a figure grows with the size of the input, and where it crosses a limit. Pure.
  """

  @type t :: %{exponent: float(), fit: float(), points: pos_integer()}

  # Below this a slice is as long as what happens around the call.
  @floor_us 20

  # Fewer make no line.
  @least 3

  @doc """
  The exponent e of `us = c * bytes^e` by least squares on logarithms, with its R² as `:fit`; nil of fewer than
  three pairs above the floor of #{@floor_us} µs.

      iex> growth = Tame.Audit.Growth.fit([{1000, 100}, {10_000, 1000}, {100_000, 10_000}])
      iex> {Float.round(growth.exponent, 3), Float.round(growth.fit, 3), growth.points}
      {1.0, 1.0, 3}

      iex> Tame.Audit.Growth.fit([{1000, 1}, {10_000, 2}, {100_000, 100}])
      nil
  """
  @spec fit([{pos_integer(), number()}]) :: t() | nil
  def fit(pairs) do
    case for {bytes, us} <- pairs, us >= @floor_us, do: {:math.log(bytes), :math.log(us)} do
      logs when length(logs) >= @least -> line(logs)
      _ -> nil
    end
  end

  defp line(logs) do
    count = length(logs)
    {xs, ys} = Enum.unzip(logs)
    {x, y} = {Enum.sum(xs) / count, Enum.sum(ys) / count}
    xx = Enum.sum(for a <- xs, do: (a - x) * (a - x))
    yy = Enum.sum(for b <- ys, do: (b - y) * (b - y))
    xy = Enum.sum(for {a, b} <- logs, do: (a - x) * (b - y))

    # A flat line is explained wholly.
    fit = if yy < 1.0e-12, do: 1.0, else: xy * xy / (xx * yy)
    %{exponent: xy / xx, fit: fit, points: count}
  end

  @doc """
  The size at which the figure goes over `limit` for good, on a straight line between the logarithms of the two sizes around
  it; nil where the largest size does not. The smallest size, where that is over already. Nothing is extrapolated.

      iex> Tame.Audit.Growth.crosses([{1000, 10}, {100_000, 1000}], 100)
      10000

      iex> Tame.Audit.Growth.crosses([{1000, 10}, {100_000, 90}], 100)
      nil

      iex> Tame.Audit.Growth.crosses([{1000, 200}, {100_000, 900}], 100)
      1000
  """
  @spec crosses([{pos_integer(), number()}], number()) :: pos_integer() | nil
  def crosses(pairs, limit) do
    {over, below} = pairs |> Enum.sort(:desc) |> Enum.split_while(fn {_, us} -> us > limit end)

    case {List.last(over), below} do
      {nil, _} -> nil
      {{bytes, _}, []} -> bytes
      {after_it, [before | _]} -> between(before, after_it, limit)
    end
  end

  defp between({_, us}, {bytes, _}, _limit) when us <= 0, do: bytes

  defp between({x1, y1}, {x2, y2}, limit) do
    share = (:math.log(limit) - :math.log(y1)) / (:math.log(y2) - :math.log(y1))
    round(:math.exp(:math.log(x1) + share * (:math.log(x2) - :math.log(x1))))
  end
end
