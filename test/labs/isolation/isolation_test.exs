defmodule Tame.IsolationLabTest do
  # One small run of the lab, and the arithmetic of its time line.
  # Not async: a module is isolated once in a VM.
  use ExUnit.Case, async: false

  alias Tame.Isolation
  alias Tame.Isolation.There

  describe "per_ms/2" do
    test "counts each moment in its whole millisecond, below zero as well" do
      ms = 1_000_000
      moments = [-1, -ms, -ms - 1, 0, ms - 1, ms, 5 * ms]

      assert :tame_crashes.per_ms(moments, {-2 * ms, 3 * ms}) ==
               [{-2, 1}, {-1, 2}, {0, 2}, {1, 1}, {2, 0}]
    end

    test "leaves out a millisecond of which only a part was seen" do
      assert :tame_crashes.per_ms([0], {-900_000, 1_900_000}) == [{0, 1}]
      assert :tame_crashes.per_ms([0], {100_000, 900_000}) == []
    end
  end

  test "measures calls by size, crashes and memory" do
    test = self()

    result =
      Isolation.measure(
        sizes: [16, 4096],
        iterations: 20,
        crashes: 2,
        calls: 1000,
        seed: 3,
        progress: &send(test, {:step, &1})
      )

    assert Isolation.ok?(result)
    assert %{tool: "tame.isolation", format: 1, iterations: 20, seed: 3} = result

    for bytes <- [16, 4096], method <- ~w(isolated nif_dirty_cpu port) do
      row = Enum.find(result.calls, &(&1.bytes == bytes and &1.method == method))
      assert %{status: "ok", count: 20, p50_spread_us: [low, high]} = row
      assert row.p50_us > 0 and row.p50_us <= row.p99_us
      assert low <= high
    end

    assert [_, _] = result.crashes.crashes

    for crash <- result.crashes.crashes do
      assert crash.error == "sigsegv"
      assert crash.raised_ms > 0 and crash.raised_ms <= crash.answered_ms
      # What was seen reaches from before the crash to after the answer, without a hole.
      moments = for [ms, _] <- crash.calls, do: ms
      assert moments == Enum.to_list(hd(moments)..List.last(moments))
      assert hd(moments) < 0 and List.last(moments) > crash.answered_ms
      assert Enum.any?(crash.calls, fn [_, count] -> count > 0 end)
    end

    rows = result.memory.rows
    assert Enum.map(rows, & &1.calls) == Enum.to_list(0..1000//100)
    assert Enum.all?(rows, &(&1.host_bytes > 100_000 and &1.vm_rss_bytes > &1.host_bytes))
    assert [%{us_per_call: nil} | measured] = rows
    assert Enum.all?(measured, &(&1.us_per_call > 0))

    assert_received {:step, %{what: what, done: 0, total: total}} when total > 2
    assert what =~ ~r/^(isolated|nif_dirty_cpu|port), warm-up$/
    assert_received {:step, %{what: "memory"}}
  end

  test "a module that cannot be isolated, and a VM that ends, are said in words" do
    assert {:error, why} = There.run(:lists, 20_000, fn _ -> :never end)
    assert why =~ "lists"

    assert {:error, "the VM that was measured ended" <> _} =
             There.run(:tame_crash, 20_000, fn call ->
               :ok = call.(:tame, :restore, [:tame_crash])
               call.(:tame_crash, :crash, [])
             end)
  end
end
