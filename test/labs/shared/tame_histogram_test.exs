defmodule Tame.HistogramTest do
  use ExUnit.Case, async: true

  @max_ns 60_000_000_000
  @edges Enum.uniq(
           [0, 1, 2047, 2048, @max_ns - 1, @max_ns] ++
             for(bit <- 0..35, step <- -1..1, do: Bitwise.bsl(1, bit) + step)
         )

  defp histogram(values) do
    h = :tame_histogram.new()
    Enum.each(values, &:tame_histogram.record(h, &1))
    h
  end

  describe "an empty histogram" do
    test "answers 0 where a number is asked and no rows where a list is" do
      h = :tame_histogram.new()

      for figure <- [:count, :out_of_range, :min, :max], do: assert(figure(h, figure) === 0)
      for figure <- [:mean, :stddev], do: assert(figure(h, figure) === 0.0)
      for percentile <- [0, 50.0, 100], do: assert(:tame_histogram.percentile(h, percentile) === 0)
      assert :tame_histogram.percentiles(h, 5) == []
      assert :tame_histogram.to_list(h) == []
    end

    test "gives the text form a table without rows" do
      text = IO.iodata_to_binary(:tame_histogram.hgrm(:tame_histogram.new(), 5))

      assert text == """
                    Value     Percentile TotalCount 1/(1-Percentile)

             #[Mean    =        0.000, StdDeviation   =        0.000]
             #[Max     =        0.000, Total count    =            0]
             #[Buckets =           26, SubBuckets     =         2048]
             """
    end
  end

  describe "record/2" do
    test "keeps every value up to 2047 ns as it is" do
      h = histogram(0..2047)

      assert :tame_histogram.to_list(h) == for(value <- 0..2047, do: {value, 1})
      assert {:tame_histogram.min(h), :tame_histogram.max(h)} == {0, 2047}
    end

    test "keeps every other value to within 1/1000, at each power of two and beside it" do
      for value <- @edges do
        h = histogram([value])
        low = :tame_histogram.min(h)
        high = :tame_histogram.max(h)

        assert low <= value and value <= high
        assert (high - low) * 1000 <= value
        assert :tame_histogram.percentile(h, 50) == high
        assert low <= :tame_histogram.mean(h) and :tame_histogram.mean(h) <= high
        assert :tame_histogram.count(h) == 1
        assert :tame_histogram.out_of_range(h) == 0
      end
    end

    test "gives each bucket a place of its own, next to its neighbours" do
      lows = :tame_histogram.to_list(histogram(@edges)) |> Enum.map(&elem(&1, 0))
      assert lows == Enum.sort(Enum.uniq(lows))

      for value <- lows, value > 0 do
        below = :tame_histogram.max(histogram([value - 1]))
        assert below == value - 1, "the bucket below #{value} ends at #{below}"
      end
    end

    test "counts a value outside the range, and shows it in no other figure" do
      h = histogram([5, @max_ns + 1, -1, -Bitwise.bsl(1, 80), Bitwise.bsl(1, 36)])

      assert :tame_histogram.out_of_range(h) == 4
      assert :tame_histogram.count(h) == 1
      assert :tame_histogram.to_list(h) == [{5, 1}]
    end

    test "refuses what is no integer, and says so" do
      h = :tame_histogram.new()

      assert_raise ArgumentError, ~r/2nd argument.*integer, the time in nanoseconds/, fn ->
        :tame_histogram.record(h, 1.5)
      end

      assert_raise ArgumentError, fn -> :tame_histogram.record(make_ref(), 1) end
      assert :tame_histogram.count(h) == 0
    end
  end

  describe "record/3" do
    test "counts a value several times, in or out of range" do
      h = :tame_histogram.new()
      :ok = :tame_histogram.record(h, 1000, 3)
      :ok = :tame_histogram.record(h, 1000, 0)
      :ok = :tame_histogram.record(h, -1, 4)

      assert :tame_histogram.to_list(h) == [{1000, 3}]
      assert :tame_histogram.out_of_range(h) == 4
    end

    test "refuses a bad value and a bad count, and names them" do
      h = :tame_histogram.new()

      for {value, count, message} <- [
            {1.0, 1, ~r/2nd argument.*integer, the time/},
            {1, -1, ~r/3rd argument.*integer from 0/},
            {1, 1.0, ~r/3rd argument.*integer from 0/}
          ] do
        assert_raise ArgumentError, message, fn -> :tame_histogram.record(h, value, count) end
      end
    end
  end

  describe "many processes at once" do
    test "lose no record" do
      h = :tame_histogram.new()
      # All write the same three slots and one of their own.
      writers = 8
      rounds = 20_000

      1..writers
      |> Enum.map(fn writer ->
        Task.async(fn ->
          for _ <- 1..rounds, value <- [7, 5_000, -1, writer * 1_000_000] do
            :tame_histogram.record(h, value)
          end
        end)
      end)
      |> Task.await_many(600_000)

      assert :tame_histogram.count(h) == 3 * writers * rounds
      assert :tame_histogram.out_of_range(h) == writers * rounds
      assert {7, writers * rounds} in :tame_histogram.to_list(h)
    end
  end

  describe "percentile/2" do
    test "is the highest value of the bucket, and the lowest for 0" do
      h = histogram([10_000, 20_000])

      assert :tame_histogram.percentile(h, 0) == 10_000
      assert :tame_histogram.percentile(h, 0.0) == 10_000
      assert :tame_histogram.percentile(h, 50) == 10_007
      assert :tame_histogram.percentile(h, 50.1) == 20_015
      assert :tame_histogram.percentile(h, 100) == 20_015
    end

    test "asks for no value more because a percentile is not exact as a float" do
      h = histogram(1..1000)
      for p <- 1..1000, do: assert(:tame_histogram.percentile(h, p / 10) == p)
    end

    test "refuses what is no percentile, and says so" do
      h = histogram([1])

      for bad <- [-0.1, 100.1, -1, 101, :median, nil, "50"] do
        assert_raise ArgumentError, ~r/number from 0 to 100/, fn ->
          :tame_histogram.percentile(h, bad)
        end
      end
    end
  end

  describe "percentiles/2" do
    test "halves the distance to 100 % with the given number of ticks" do
      rows = :tame_histogram.percentiles(histogram(1..8), 2)
      assert [{+0.0, 1, 1}, {25.0, 2, 2}, {50.0, 4, 4}, {62.5, 5, 5}, {75.0, 6, 6} | _] = rows
      assert List.last(rows) == {100.0, 8, 8}
    end

    test "ends, even when floats have no more steps below 100" do
      h = histogram([1])
      :tame_histogram.record(h, 2, Bitwise.bsl(1, 61))
      :tame_histogram.record(h, 3)
      assert {100.0, 3, _} = List.last(:tame_histogram.percentiles(h, 5))
      assert :tame_histogram.hgrm(h, 5)
    end

    test "refuses a bad number of ticks, as hgrm/2 does" do
      for bad <- [0, -1, 1.0, :five], function <- [:percentiles, :hgrm] do
        assert_raise ArgumentError, ~r/ticks/, fn ->
          apply(:tame_histogram, function, [histogram([1]), bad])
        end
      end
    end
  end

  describe "hgrm/2" do
    test "writes microseconds in the form that HdrHistogram's plotter reads" do
      h = histogram([1500])
      :tame_histogram.record(h, 2_000_000, 3)

      assert IO.iodata_to_binary(:tame_histogram.hgrm(h, 1)) == """
                    Value     Percentile TotalCount 1/(1-Percentile)

                    1.500 0.000000000000          1           1.00
                 2000.895 0.500000000000          4           2.00
                 2000.895 1.000000000000          4
             #[Mean    =     1500.663, StdDeviation   =      865.542]
             #[Max     =     2000.895, Total count    =            4]
             #[Buckets =           26, SubBuckets     =         2048]
             """
    end
  end

  describe "merge/2, to_list/1 and reset/1" do
    test "merge adds to the first and leaves the second as it is" do
      into = histogram([1, 5_001])
      from = histogram([5_003, @max_ns, -1])
      assert :tame_histogram.merge(into, from) == :ok

      assert [{1, 1}, {5_000, 2}, {59_995_324_416, 1}] = :tame_histogram.to_list(into)
      assert :tame_histogram.out_of_range(into) == 1
      assert :tame_histogram.count(from) == 2
    end

    test "a list, recorded again, makes the same histogram" do
      h = histogram(@edges)
      again = :tame_histogram.new()
      for {value, n} <- :tame_histogram.to_list(h), do: :tame_histogram.record(again, value, n)

      assert :tame_histogram.to_list(again) == :tame_histogram.to_list(h)
      assert :tame_histogram.out_of_range(again) == 0
    end

    test "reset empties all, also what was out of range" do
      h = histogram([0, @max_ns, -1])
      assert :tame_histogram.reset(h) == :ok
      assert {:tame_histogram.count(h), :tame_histogram.out_of_range(h)} == {0, 0}
    end
  end

  defp figure(h, name), do: apply(:tame_histogram, name, [h])
end
