defmodule Tame.Reductions.BurstsTest do
  use ExUnit.Case, async: true

  alias Tame.FakeExor
  alias Tame.Reductions.{Bursts, BurstsFigure}

  defp spec(lanes, id), do: Enum.find(lanes.panels, &(&1.title == id)).spec

  test "sees each burst, the neighbour's gaps and the threads; a variant that fails is named" do
    test = self()
    inline = %{id: "inline", mfa: {:tame_exor, :exor_inline}}
    variants = [inline, FakeExor.variant(:raising), FakeExor.variant(:halting)]

    assert [seen, raising, halting] =
             rows = Bursts.measure(variants, 4_000_000, 2, &send(test, {:at, &1}))

    assert %{id: "inline", status: "ok", reason: nil, bursts: [first, second]} = seen
    assert first.from_ms == 0.0 and first.to_ms > 0 and second.from_ms > first.to_ms
    assert seen.burst_ms > 0 and seen.bytes == 4_000_000
    # They are seen from before the first burst to after the last one.
    assert hd(seen.cpu).since_ms < 0 and List.last(seen.cpu).at_ms > second.to_ms
    assert Enum.any?(seen.cpu, &(&1.normal > 0))
    for %{from_ms: from, to_ms: to} <- seen.held, do: assert(to - from >= 1)

    assert %{status: "failed", reason: "** (RuntimeError) no memory" <> _, bursts: []} = raising
    assert %{status: "failed", reason: "ended its VM"} = halting
    for id <- ~w(inline raising halting), do: assert_received({:at, ^id})

    assert [figure] = BurstsFigure.figures(rows)
    assert [%{title: "inline"}] = figure.panels
    lanes = for value <- spec(figure, "inline").data.values, do: value.lane
    assert Enum.count(lanes, &(&1 == "bursts")) == 2
    assert "normal" in lanes
    assert ["raising", {:note, "failed: " <> _}] = Enum.at(figure.table.rows, 1)
  end

  test "beside exor_inline there is the same in a host, whose CPU is seen" do
    inline = %{id: "exor_inline", mfa: {:tame_exor, :exor_inline}}
    assert [in_vm, isolated] = Bursts.measure([inline], 33_554_433, 1, fn _ -> :ok end)
    assert %{id: "exor_inline, isolated", status: "ok", bursts: [_], bytes: 33_554_432} = isolated
    assert Enum.any?(isolated.cpu, &(&1.hosts > 0))
    assert Enum.all?(in_vm.cpu, &(&1.hosts == 0))

    assert [%{panels: [_, _]}] = BurstsFigure.figures([in_vm, isolated])
    refute "hosts" in words([in_vm])
    assert "hosts" in words([in_vm, isolated])
  end

  defp words(rows), do: for({_, name, _} <- BurstsFigure.words(rows, []), do: name)

  test "none are asked for, none are made" do
    assert Bursts.measure([FakeExor.variant(:halting)], 1, 0, fn _ -> flunk("called") end) == []
    assert BurstsFigure.figures([]) == []
    assert BurstsFigure.words([], []) == []
  end
end
