defmodule Tame.ReductionsTest do
  use ExUnit.Case, async: true

  alias Tame.{FakeExor, Reductions}
  alias Tame.Reductions.{Input, Variants}

  doctest Tame.Reductions.Input
  doctest Tame.Reductions.Variants

  @bytes 300_001

  defp measure(variants, options \\ []) do
    Reductions.measure(@bytes, Keyword.merge([variants: variants, rounds: 1], options))
  end

  defp row(result, id), do: Enum.find(result.variants, &(&1.id == id))

  describe "measure/2" do
    test "reads the figures of a variant that works" do
      result = measure(FakeExor.variants([:good, :slow]), rounds: 2)
      assert %{tool: "tame.reductions", format: 1, bytes: @bytes, rounds: 2} = result
      assert Reductions.ok?(result)

      slow = row(result, "slow")
      assert slow.status == "ok"
      # Twenty milliseconds of Erlang, twice.
      assert slow.elapsed_us >= 20_000
      assert slow.slices > 2
      assert slow.p999_slice_us <= slow.longest_slice_us
      assert slow.reductions > 4000
      assert slow.charge_ratio > 0
      assert slow.neighbour_wake_ups >= 2 * 18
      assert slow.neighbour_p99_us <= slow.neighbour_max_us
      assert slow.gb_per_s == @bytes / (slow.elapsed_us * 1000)
      assert [%{start_us: start, us: _, kind: _} | _] = slow.picture
      assert start >= 0.0 and start < slow.elapsed_us
      assert row(result, "good").reductions < slow.reductions
      [quickest, slowest] = slow.spread.elapsed_us
      assert slow.elapsed_us in [quickest, slowest]
    end

    test "tells fresh pages from pages at hand" do
      # Large enough for memory of its own, of 4 KiB a page.
      bytes = 16 * 1024 * 1024
      result = Reductions.measure(bytes, variants: FakeExor.variants([:good]), rounds: 1)
      good = row(result, "good")

      assert good.fresh.page_faults >= div(bytes, 4096)
      assert good.fresh.scheduler_page_faults >= div(bytes, 4096)
      assert good.page_faults < div(bytes, 4096) / 2
      assert good.fresh.spread.page_faults == [good.fresh.page_faults, good.fresh.page_faults]
    end

    test "a variant that ends its VM is failed, and the others go on" do
      result = measure([FakeExor.variant(:halting), FakeExor.variant(:good)])
      assert %{status: "failed", reason: "ended its VM"} = row(result, "halting")
      assert row(result, "good").status == "ok"
    end

    test "says where the time of a dirty call goes" do
      a_dirty = %{id: "dirty", mfa: {FakeExor, :dirty}}
      dirty = measure([a_dirty]) |> row("dirty")
      # A garbage collection may be another one.
      assert dirty.dirty_slices >= 10
      assert dirty.longest_dirty_slice_us > 0
      assert dirty.p999_slice_us <= dirty.longest_slice_us
      assert Enum.count(dirty.picture, &(&1.kind == "dirty")) >= 10
    end

    test "a variant that is not there is skipped with its reason, and that is no failure" do
      result =
        measure([
          %{id: "module", mfa: {:no_such_module, :exor}},
          %{id: "function", mfa: {FakeExor, :no_such_function}},
          FakeExor.variant(:good)
        ])

      assert %{status: "skipped", reason: "there is no module no_such_module", slices: nil} =
               row(result, "module")

      assert %{status: "skipped", reason: reason} = row(result, "function")
      assert reason == "there is no function Tame.FakeExor:no_such_function/2"
      assert row(result, "good").status == "ok"
      assert Reductions.ok?(result)
    end

    test "a variant that fails is failed with its reason, and the others go on" do
      bad = [:wrong, :no_binary, :raising, :throwing, :killed]
      result = measure(FakeExor.variants(bad ++ [:good]))

      assert for(name <- bad, do: row(result, "#{name}").reason) == [
               "what it returned is not the exclusive or of the two",
               "what it returned is not the exclusive or of the two",
               "no memory",
               "(throw) :ball",
               "its process was killed"
             ]

      assert for(name <- bad, do: row(result, "#{name}").status) |> Enum.uniq() == ["failed"]
      assert row(result, "good").status == "ok"
      refute Reductions.ok?(result)
    end

    test "the variants take turns, in each round in another order, which the seed gives, and a failed one is out" do
      test = self()

      result =
        measure(FakeExor.variants([:good, :raising, :other]),
          rounds: 2,
          seed: 2,
          progress: &send(test, {:progress, &1.what, &1.done})
        )

      assert result.seed == 2

      expected =
        for {order, round} <- Tame.Turns.rounds(~w(good raising other), 2, 2) |> Enum.with_index(1),
            id <- order,
            round == 1 or id != "raising",
            do: "#{id}, round #{round}"

      assert for({:progress, what, _} <- messages(), do: what) == expected
    end

    test "an unknown option is refused" do
      assert_raise ArgumentError, ~r/roundz/, fn -> measure([], roundz: 1) end
    end

    test "inputs that do not fit are refused before anything is made" do
      assert_raise ArgumentError, ~r/does not fit in memory/, fn ->
        Reductions.measure(1_000_000_000_000_000)
      end
    end

    defp messages do
      receive do
        message -> [message | messages()]
      after
        0 -> []
      end
    end
  end

  describe "warnings/3" do
    @floor %{slice_cost_ns: 1000, neighbour_p99_us: 100.0, neighbour_max_us: 200.0}
    @row %{
      id: "good",
      status: "ok",
      elapsed_us: 50_000.0,
      slices: 500,
      dirty_slices: 0,
      longest_slice_us: 150.0,
      neighbour_wake_ups: 150,
      neighbour_max_us: 900.0
    }

    defp ids(changes, system \\ [schedulers: 2]) do
      for warning <- Reductions.warnings([Map.merge(@row, changes)], @floor, system), do: warning.id
    end

    test "are none for a run that holds" do
      assert ids(%{}) == []
      assert ids(%{status: "failed", neighbour_wake_ups: 0}) == []
    end

    test "name what makes the figures doubtful" do
      assert ids(%{neighbour_wake_ups: 99}) == [:too_few_wake_ups]
      assert ids(%{slices: 3000}) == [:overhead_visible]
      assert ids(%{slices: 1500, dirty_slices: 1500}) == [:overhead_visible]
      assert ids(%{}, schedulers: 1) == [:one_scheduler]
    end

    test "tell a neighbour that waited for a slice from one that waited for something else" do
      assert ids(%{neighbour_max_us: 40_000.0}) == [:late_without_slice]
      assert ids(%{neighbour_max_us: 40_000.0, longest_slice_us: 39_000.0}) == []
      assert ids(%{neighbour_max_us: nil, neighbour_wake_ups: 0}) == [:too_few_wake_ups]
    end
  end

  describe "the answer's check" do
    test "holds for every size around its period" do
      for bytes <- [1, 2, 127_758, 127_759, 127_760, 255_518, 255_519, 400_000] do
        input = Input.new(bytes)
        right = :crypto.exor(input.a, input.b)
        assert byte_size(right) == bytes
        assert Input.right?(input, right)
      end
    end

    test "sees one wrong byte anywhere, a missing one, one too many, and chunks that changed places" do
      input = Input.new(300_000)
      right = :crypto.exor(input.a, input.b)

      for at <- [0, 1, 127_758, 127_759, 255_518, 299_999] do
        {before, <<byte, rest::binary>>} = split(right, at)
        refute Input.right?(input, <<before::binary, rem(byte + 1, 256), rest::binary>>)
      end

      refute Input.right?(input, binary_part(right, 0, 299_999))
      refute Input.right?(input, right <> <<0>>)

      <<first::binary-65_536, second::binary-65_536, rest::binary>> = right
      refute Input.right?(input, second <> first <> rest)
    end
  end

  describe "fits/2" do
    test "wants room for five" do
      assert Input.fits(100, 500) == :ok
      assert {:error, why} = Input.fits(101, 500)

      assert why ==
               "does not fit in memory: two inputs of 101 bytes, expected at most 100 (1/5 of what is free)"
    end
  end

  test "the built-in variants have ids and functions of their own" do
    ids = for variant <- Variants.builtin(), do: variant.id
    mfas = for variant <- Variants.builtin(), do: variant.mfa
    assert ids == Enum.uniq(ids)
    assert mfas == Enum.uniq(mfas)
    assert "crypto_exor" in ids and "exor_classic" in ids
  end

  test "compare/2 prints the machine, the table, what was not measured and the instruments' own cost" do
    text =
      ExUnit.CaptureIO.capture_io(fn ->
        variants = FakeExor.variants([:good, :raising])
        assert Reductions.compare(@bytes, variants: variants, rounds: 1) == :ok
      end)

    assert text =~ ~r/^CPU +\S/m
    assert text =~ ~r/^variant +pages +elapsed ms +spread % +GB\/s/m
    assert text =~ ~r/^good +at hand +[\d.]+ +[\d.]+ +[\d.]+ +\d+ /m
    assert text =~ ~r/^good +fresh +[\d.]+ /m
    assert text =~ ~r/^raising  failed: no memory$/m
    assert text =~ ~r/^Exclusive or of two binaries of 293 KiB \(300,001 B\), 1 rounds, seed \d+$/m
    assert text =~ ~r/^With nothing else to do, the neighbour woke [\d.]+ µs late/m
  end

  defp split(binary, at) do
    {binary_part(binary, 0, at), binary_part(binary, at, byte_size(binary) - at)}
  end
end
