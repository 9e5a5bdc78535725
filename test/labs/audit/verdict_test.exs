defmodule Tame.Audit.VerdictTest do
  # Made-up figures to verdicts and advice.
  use ExUnit.Case, async: true

  alias Tame.Audit.{Advice, Held, Point, Verdict}

  @budget_us 1000

  defp point(bytes, fields) do
    base = %Point{
      bytes: bytes,
      elapsed_us: 10.0,
      longest_slice_us: 10.0,
      slice_kind: :normal,
      longest_call_us: 10.0,
      charge_ratio: 1.0,
      neighbour_max_us: 100.0,
      loop_calls: 1000,
      loop_slice_us: 500.0,
      loop_median_us: 500.0
    }

    struct!(base, fields)
  end

  # One slice a call, in proportion to the size.
  defp whole(kind) do
    for n <- 5..11 do
      us = Integer.pow(4, n) / 100.0

      point(Integer.pow(4, n),
        elapsed_us: us,
        longest_slice_us: us,
        longest_call_us: us,
        slice_kind: kind
      )
    end
  end

  defp judge(points, seen \\ []),
    do: Verdict.judge(points, Enum.into(seen, %{killed: nil, leak: nil}), @budget_us)

  test "short slices at every size are well-behaved" do
    points = for n <- 5..11, do: point(Integer.pow(4, n), elapsed_us: Integer.pow(4, n) / 100.0)
    assert [{:well_behaved, 10.0, _}] = judge(points)
    assert Verdict.crosses(points, @budget_us) == nil
  end

  test "a slice a little over the budget is not one that blocks" do
    assert [{:well_behaved, 1040.0, 4096}] =
             judge([point(4096, longest_slice_us: 1040.0, elapsed_us: 9000.0)])
  end

  test "a slice that grows with the input blocks above the size where it crosses the budget" do
    assert [{:blocks, 100_000, 41_943.04, 4_194_304} = verdict] = judge(whole(:normal))
    assert Verdict.crosses(whole(:normal), @budget_us) == 100_000

    assert Verdict.text(verdict) ==
             "blocks above 100,000 bytes: a slice of 41.9 ms at 4,194,304 bytes"

    assert Advice.sentences("m:f/1", whole(:normal), [verdict], @budget_us) =~
             "should yield (enif_schedule_nif"
  end

  test "short calls whose row is long and uncharged under-charge" do
    row = [
      charge_ratio: 0.01,
      loop_median_us: 90_000.0,
      loop_slice_us: 250_000.0,
      neighbour_max_us: 240_000.0
    ]

    assert [{:under_charges, 10.0, 250_000.0, 240_000.0, 0.01} = verdict] =
             judge([point(1024, row)])

    assert Verdict.text(verdict) =~ "in a row hold a scheduler for 250 ms, charged 1 % of its time"
    assert [{:well_behaved, _, _}] = judge([point(1024, Keyword.put(row, :charge_ratio, 0.9))])
  end

  test "one call of many that holds its scheduler is neither well-behaved nor under-charges" do
    held = %{us: 8000.0, seen: 30, calls: 150}
    row = [charge_ratio: 0.1, loop_median_us: 20_000.0, loop_slice_us: 20_000.0, held: held]
    points = [point(1024, row), point(4096, Keyword.put(row, :held, nil))]
    assert [{:blocks_at_times, 5, 8000.0, 1024} = verdict] = judge(points)

    assert Verdict.text(verdict) ==
             "blocks now and then: 1 of 5 calls holds its scheduler for at least 8 ms at 1,024 bytes"
  end

  test "one of the calls of a size that was long blocks now and then, and two of them from there on" do
    once = [longest_slice_us: 13_500.0, elapsed_us: 13_500.0, calls: 3]

    assert [{:blocks_at_times, 3, 13_500.0, 4096}] =
             judge([point(4096, [second_slice_us: 900.0] ++ once)])

    assert [{:blocks, _, _, _}] = judge([point(4096, [second_slice_us: 9000.0] ++ once)])
    assert [{:blocks, _, _, _}] = judge([point(4096, once)])
  end

  test "what is long on both kinds of schedulers blocks, and is dirty" do
    both = [longest_slice_us: 60_000.0, other_slice_us: 40_000.0, elapsed_us: 100_000.0]

    for kind <- [:normal, :dirty], point = point(4096, [slice_kind: kind] ++ both) do
      assert [{:blocks, 4096, normal, 4096}, {:dirty, dirty, 4096, nil}] = judge([point])
      assert Enum.sort([normal, dirty]) == [40_000.0, 60_000.0]
      assert dirty > normal == (kind == :dirty)
    end
  end

  test "what blocks from a size on does not block at times besides" do
    held = point(64, held: %{us: 1600.0, seen: 3, calls: 150})
    assert [{:blocks, _, _, _}] = judge([held | whole(:normal)])
  end

  describe "one call of many" do
    defp row(ms, stolen_ms \\ 0) do
      ns = for ms <- ms, do: round(1_000_000 * ms)
      %{calls: 100, stretches_ns: ns, stolen_ns: round(1_000_000 * stolen_ms)}
    end

    test "is what the machine took from no two of them" do
      assert Held.judge([row([])], 1500) == nil
      assert Held.judge([row([4, 4, 4, 4], 15)], 1500) == nil
      assert %{us: 8000.0, seen: 2, calls: 100} = Held.judge([row([8, 8])], 1500)
      # Half of the machine is somebody else's, and the rest is still too much.
      assert %{us: us, seen: 12} = Held.judge([row(List.duplicate(16, 12), 100)], 1500)
      assert us > 7000
      # Not seen again, and 100 ms are no hiccup.
      assert Held.judge([row([8])], 1500) == :once
      assert %{us: 100_000.0, seen: 1} = Held.judge([row([100])], 1500)
      assert Held.judge([row([100], 99)], 1500) == nil
      # Each row shows it, though none shows it twice.
      assert %{us: 4000.0, seen: 2} = Held.judge([row([8], 4), row([8], 4)], 1500)
    end

    test "is looked for again when it was seen once" do
      look = fn rows ->
        {:ok, agent} = Agent.start_link(fn -> rows end)
        Held.look(1500, fn 1_500_000 -> Agent.get_and_update(agent, fn [a | b] -> {a, b} end) end)
      end

      assert look.([{:ok, row([])}]) == {:ok, nil}
      assert {:ok, %{seen: 2, calls: 200}} = look.([{:ok, row([8])}, {:ok, row([8])}])
      assert look.([{:ok, row([8])}, {:ok, row([])}, {:ok, row([])}]) == {:ok, nil}
      assert look.([{:ok, row([8])}, {:error, "raised"}]) == {:error, "raised"}
    end
  end

  test "a long slice made of short NIF calls under-charges, and does not block" do
    cuts = [
      longest_slice_us: 50_000.0,
      elapsed_us: 50_000.0,
      longest_call_us: 1000.0,
      charge_ratio: 0.1
    ]

    assert [{:under_charges, 1000.0, 50_000.0, _, _}] = judge([point(1024, cuts)])
    assert [{:blocks, _, _, _}] = judge([point(1024, Keyword.put(cuts, :longest_call_us, nil))])
    assert [{:blocks, _, _, _}] = judge([point(1024, Keyword.put(cuts, :charge_ratio, 3.0))])
  end

  test "a dirty call in one slice holds its thread; one in small slices does not" do
    assert [{:dirty, 41_943.04, 4_194_304, nil}] = judge(whole(:dirty))
    yields = point(4096, slice_kind: :dirty, longest_slice_us: 5000.0, elapsed_us: 100_000.0)
    assert [{:well_behaved, _, _}] = judge([yields])
    assert [{:dirty, 50_000.0, _, _}] = judge([%{yields | longest_slice_us: 50_000.0}])
  end

  test "work that goes on without its caller is a verdict beside the others" do
    killed = %{call_us: 100_000.0, after_us: 25_000, stopped_us: 75_000.0, bytes: 4096}

    assert [{:dirty, _, _, _}, {:ignores_kill, 75_000.0, 100_000.0, 4096}] =
             judge(whole(:dirty), killed: killed)

    assert [{:dirty, _, _, _}] = judge(whole(:dirty), killed: %{killed | stopped_us: 5000.0})
  end

  test "memory that calls keep is a verdict beside the others" do
    leak = %{per_call: 80.2, what: "bytes", calls: 80_000, bytes: 1024}
    assert [{:leaks, 80.2, "bytes", 80_000, 1024} = verdict] = judge([point(1024, [])], leak: leak)
    assert Verdict.text(verdict) =~ ~r/^leaks 80 bytes a call: .* 80,000 calls/
    assert [{:blocks, _, _, _}, {:leaks, _, _, _, _}] = judge(whole(:normal), leak: leak)
  end

  test "nothing measured has no verdict" do
    assert judge([]) == []
  end

  test "every verdict has words and advice with its numbers" do
    for {verdict, word} <- [
          {{:hangs, 1024, 10_000_000}, "after 10 s"},
          {{:crashes, 1024, "SIGSEGV"}, "SIGSEGV"},
          {{:ignores_kill, 75_000.0, 100_000.0, 4096}, "75 ms"}
        ] do
      assert Verdict.text(verdict) =~ word
      assert Advice.sentences("m:f/1", [], [verdict], @budget_us) =~ "m:f/1"
    end
  end

  test "every verdict of the type is listed, with words that begin as the list's do, and has advice" do
    verdicts = samples()
    assert Enum.map(verdicts, &Verdict.name/1) == Verdict.names()
    help = Verdict.help()

    for {verdict, line} <- Enum.zip(verdicts, String.split(help, "\n")) do
      [_, words | _] = Regex.run(~r/^  \* `([a-z-]+( [a-z]+)*)/, line)
      assert {words, String.starts_with?(Verdict.text(verdict), words)} == {words, true}
      assert Advice.sentences("m:f/1", whole(:normal), [verdict], @budget_us) =~ "m:f/1"
    end

    {_, _, _, _, %{"en" => task}, _, _} = Code.fetch_docs(Mix.Tasks.Tame.Audit)
    assert task =~ help
  end

  # A value of each alternative of the type, in its order.
  defp samples do
    {:ok, types} = Code.Typespec.fetch_types(Verdict)

    [{_, {:type, _, :union, alternatives}, _}] = for {:type, {:t, _, _} = type} <- types, do: type

    Enum.map(alternatives, &sample/1)
  end

  defp sample({:type, _, :tuple, fields}), do: fields |> Enum.map(&sample/1) |> List.to_tuple()
  defp sample({:ann_type, _, [_, type]}), do: sample(type)
  defp sample({:atom, _, atom}), do: atom
  defp sample({:type, _, :union, types}), do: types |> List.last() |> sample()
  defp sample({:type, _, :number, []}), do: 2000.0
  defp sample({:type, _, :pos_integer, []}), do: 1024
  defp sample({:remote_type, _, [{:atom, _, String}, {:atom, _, :t}, []]}), do: "SIGSEGV"

  describe "a point" do
    defp reading(fields \\ %{}) do
      %{
        elapsed_ns: 5_000_000,
        calls: 1,
        normal: %{longest_ns: 4_000_000, median_ns: 1000, total_ns: 5_000_000},
        dirty: %{longest_ns: 0, median_ns: 0, total_ns: 0},
        reductions: 20_000,
        stolen_ns: %{normal: 0, dirty: 0},
        neighbour_ns: 3_000_000
      }
      |> Map.merge(fields)
    end

    @none %{nif: 0.0, gc: 0.0}

    test "has the figures of one of several calls, and the charge of the row" do
      row = reading(%{reductions: 2000})

      point =
        Point.new(
          1024,
          [reading(), reading(%{elapsed_ns: 9_000_000})],
          row,
          %{@none | nif: 0.5},
          7000
        )

      assert %{
               elapsed_us: 5000.0,
               longest_slice_us: 4000.0,
               longest_call_us: 2500.0,
               charge_ratio: 0.1
             } = point

      assert %{slice_kind: :normal, dirty_wait_max_us: nil, neighbour_max_us: 3000.0} = point
    end

    test "has all of the call from which the operating system took the least" do
      call = fn ms, stolen_ms ->
        ns = ms * 1_000_000

        reading(%{
          elapsed_ns: ns,
          normal: %{longest_ns: ns, median_ns: ns, total_ns: ns},
          stolen_ns: %{normal: stolen_ms * 1_000_000, dirty: 0}
        })
      end

      assert %{elapsed_us: 13.0e3, longest_slice_us: 13.0e3, second_slice_us: 7000.0, calls: 3} =
               Point.new(1024, [call.(6, 1), call.(7, 1), call.(13, 0)], nil, @none, nil)

      assert %{second_slice_us: nil} = Point.new(1024, [call.(6, 1)], nil, @none, nil)
    end

    test "has the longest slice of both kinds of schedulers, without garbage collections" do
      both =
        reading(%{
          elapsed_ns: 100_000_000,
          normal: %{longest_ns: 60_000_000, median_ns: 1, total_ns: 60_000_000},
          dirty: %{longest_ns: 40_000_000, median_ns: 1, total_ns: 40_000_000}
        })

      new = fn gc -> Point.new(1024, [both], nil, %{@none | gc: gc}, nil) end
      assert %{slice_kind: :normal, longest_slice_us: 60.0e3, other_slice_us: 40.0e3} = new.(0.0)
      assert %{other_slice_us: 30.0e3} = new.(0.1)
      assert %{other_slice_us: nil} = new.(0.35)

      dirty = %{both | normal: both.dirty, dirty: both.normal}

      assert %{slice_kind: :dirty, longest_slice_us: 60.0e3, other_slice_us: 40.0e3} =
               Point.new(1024, [dirty], nil, @none, nil)
    end

    test "leaves out what the operating system took, but no more than half of the slices show" do
      stolen = reading(%{stolen_ns: %{normal: 3_500_000, dirty: 0}})

      assert %{longest_slice_us: 500.0, neighbour_max_us: +0.0} =
               Point.new(1024, [stolen], nil, @none, nil)

      all = reading(%{stolen_ns: %{normal: 90_000_000, dirty: 0}})
      assert %{longest_slice_us: 1.0, charge_ratio: nil} = Point.new(1024, [all], nil, @none, nil)
    end

    test "is dirty by what was no garbage collection" do
      dirty =
        reading(%{
          elapsed_ns: 20_000_000,
          dirty: %{longest_ns: 9_000_000, median_ns: 1, total_ns: 12_000_000}
        })

      assert %{slice_kind: :dirty, longest_slice_us: 9000.0} =
               Point.new(1024, [dirty], nil, @none, 5000)

      assert %{slice_kind: :normal} = Point.new(1024, [dirty], nil, %{@none | gc: 0.6}, 5000)
    end
  end
end
