defmodule Tame.Report.ThreadsTest do
  use ExUnit.Case, async: true

  alias Tame.Report.Threads

  defp share(since_ms, at_ms, fields) do
    Map.merge(
      %{since_ms: since_ms, at_ms: at_ms, normal: 0.0, dirty: 0.0, other: 0.0, hosts: 0.0},
      Map.new(fields)
    )
  end

  defp seen(fields \\ %{}) do
    cpu = [share(-20.0, 0.0, normal: 0.1), share(0.0, 20.0, other: 1.0)]
    Map.merge(%{cpu: cpu, held: [%{from_ms: 1.0, to_ms: 9.0}]}, Map.new(fields))
  end

  defp values(seen, opts \\ [span: [-20, 20], title: "ms"]) do
    Threads.chart("threads", seen, opts).data.values
  end

  defp lanes(seen), do: for({_, name, _} <- Threads.words([seen]), do: name)

  test "each kind of thread has a lane, in which a bar is as high as its share" do
    values = values(seen())
    assert [%{low: low, high: high, from_ms: from_ms, to_ms: 20.0}] = of(values, "other")
    assert from_ms == 0
    assert high - low == 1.0
    assert [%{low: low, high: high, text: "10 % of all cores"}] = of(values, "normal")
    assert_in_delta high - low, 0.1, 0.001
    # What used nothing has no bar.
    assert of(values, "dirty") == []
    assert [%{from_ms: 1.0, to_ms: 9.0}] = of(values, "neighbours")
  end

  test "lanes do not overlap" do
    all = %{
      bursts: [%{from_ms: 0, to_ms: 5}],
      cpu: [share(0, 20, normal: 1, dirty: 1, other: 1, hosts: 1)]
    }

    spans = for v <- values(seen(all)), do: {v.low, v.high}
    assert length(spans) == 6
    for {{_, high}, {low, _}} <- spans |> Enum.sort() |> pairs(), do: assert(high < low)
  end

  test "bursts and hosts have a lane where there are some" do
    assert lanes(seen()) == ~w(neighbours normal dirty other)

    assert lanes(seen(bursts: [%{from_ms: 0, to_ms: 1}])) ==
             ~w(bursts neighbours normal dirty other)

    assert "hosts" in lanes(seen(cpu: [share(0, 20, hosts: 0.5)]))
  end

  test "pictures are on one scale, and one that is much longer than the others is cut off" do
    long = seen(cpu: [share(0.0, 20.0, []), share(980.0, 1000.0, normal: 1.0)])
    assert Threads.span([seen(), seen()]) == [-20.0, 20.0]
    assert [-20.0, 40.0] = span = Threads.span([seen(), seen(), long])
    assert of(values(long, span: span, title: "ms"), "normal") == []
    assert [from, to] = Threads.span([seen(cpu: [])])
    assert from < to
  end

  defp of(values, lane), do: Enum.filter(values, &(&1.lane == lane))
  defp pairs(list), do: Enum.zip(list, tl(list))
end
