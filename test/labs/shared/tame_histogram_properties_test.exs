defmodule Tame.HistogramPropertiesTest do
  use ExUnit.Case, async: true

  import :proper_types, only: [integer: 2, list: 1, oneof: 1]
  alias Tame.Property

  @max_ns 60_000_000_000

  # Each power of two is as likely as any other, so that all buckets are reached.
  defp value_ns do
    oneof(
      [integer(@max_ns - 9, @max_ns)] ++
        for(bit <- 1..35, do: integer(Bitwise.bsl(1, bit - 1) - 1, Bitwise.bsl(1, bit) - 1))
    )
  end

  defp outside_ns, do: oneof([integer(-9, -1), integer(@max_ns + 1, @max_ns + 9)])

  # In thousandths of a per cent, so that the exact rank can be computed in integers.
  defp percentile_milli, do: integer(0, 100_000)

  defp histogram(values) do
    h = :tame_histogram.new()
    Enum.each(values, &:tame_histogram.record(h, &1))
    h
  end

  defp contents(h), do: {:tame_histogram.to_list(h), :tame_histogram.out_of_range(h)}

  test "a higher percentile is never a lesser value" do
    Property.check(
      {list(value_ns()), percentile_milli(), percentile_milli()},
      fn {values, p, q} ->
        h = histogram(values)

        :tame_histogram.percentile(h, min(p, q) / 1000) <=
          :tame_histogram.percentile(h, max(p, q) / 1000)
      end,
      numtests: 200
    )
  end

  test "a percentile is at most 0.1 % away from the value that sorting finds" do
    Property.check(
      {value_ns(), list(value_ns()), percentile_milli()},
      fn {value, values, p} ->
        values = [value | values]
        rank = max(1, div(p * length(values) + 99_999, 100_000))
        exact = Enum.at(Enum.sort(values), rank - 1)
        got = :tame_histogram.percentile(histogram(values), p / 1000)
        abs(got - exact) * 1000 <= exact
      end,
      numtests: 500
    )
  end

  test "merging two histograms is recording everything in one" do
    value = oneof([value_ns(), outside_ns()])

    Property.check(
      {list(value), list(value)},
      fn {one, other} ->
        into = histogram(one)
        :tame_histogram.merge(into, histogram(other))
        contents(into) == contents(histogram(one ++ other))
      end,
      numtests: 200
    )
  end

  test "every value is counted once, within the range or out of it" do
    Property.check(
      {list(value_ns()), list(outside_ns())},
      fn {inside, outside} ->
        h = histogram(Enum.shuffle(inside ++ outside))
        rows = :tame_histogram.percentiles(h, 5)

        :tame_histogram.count(h) == length(inside) and
          :tame_histogram.out_of_range(h) == length(outside) and
          (inside == [] or elem(List.last(rows), 2) == length(inside))
      end,
      numtests: 200
    )
  end
end
