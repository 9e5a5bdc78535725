defmodule Tame.LatencyTest do
  use ExUnit.Case, async: true

  alias Tame.{FakeMethods, Latency}

  defp measure(modules, iterations \\ 200, options \\ []) do
    Latency.measure(:term, iterations, [methods: modules] ++ options)
  end

  defp row(result, id), do: Enum.find(result.methods, &(&1.id == id))

  describe "measure/3" do
    test "counts every call of the counted rounds and none of the warm-up" do
      row = measure([FakeMethods.Good], 1003, rounds: 10) |> row("good")
      assert row.status == "ok"
      assert row.count == 1003
      assert row.p50_us <= row.p90_us
      assert row.p90_us <= row.p99_us
      assert row.p99_us <= row.p999_us
      assert row.p999_us <= row.max_us
      assert row.mean_us <= row.max_us
    end

    test "more rounds than iterations is one call a round" do
      assert (measure([FakeMethods.Good], 3, rounds: 10) |> row("good")).count == 3
    end

    test "a method that cannot start is skipped with its reason, and that is no failure" do
      result = measure([FakeMethods.Skipped, FakeMethods.Good])

      assert %{status: "skipped", reason: "no such thing here", p50_us: nil} =
               row(result, "skipped")

      assert row(result, "good").count == 200
      assert Latency.ok?(result)
    end

    test "a method that fails midway is failed with its reason, and the others go on" do
      result = measure([FakeMethods.Raising, FakeMethods.Good])
      assert %{status: "failed", reason: "the other side is gone"} = row(result, "raising")
      assert row(result, "good").count == 200
      refute Latency.ok?(result)
    end

    test "a term that comes back different is a failure that shows what came" do
      result = measure([FakeMethods.Different])
      assert %{status: "failed", reason: reason} = row(result, "different")
      assert reason =~ "{:changed, :term}"
    end

    test "an unknown option is refused" do
      assert_raise ArgumentError, ~r/roundz/, fn -> measure([FakeMethods.Good], 1, roundz: 1) end
    end
  end

  describe "turns" do
    test "methods take turns, round by round, after one round of warm-up" do
      Process.register(self(), :recorder)
      seed = 3
      measure([FakeMethods.Recorder, FakeMethods.OtherRecorder], 4, rounds: 2, seed: seed)

      turns = for {:echo, who, :term} <- drain(), do: who

      # The warm-up and two rounds, each in an order of its own, two calls a turn.
      assert turns ==
               for(
                 order <- Tame.Turns.rounds([:recorder, :other], 3, seed),
                 who <- order,
                 _ <- 1..2,
                 do: who
               )
    end

    test "each term has its turn in each round, so that drift is in the spread of all" do
      Process.register(self(), :recorder)
      methods = [FakeMethods.Recorder, FakeMethods.OtherRecorder]
      rows = Latency.rows(methods, [:small, :large], 2, 2, 3, fn _ -> :ok end)

      rounds = for({:echo, who, term} <- drain(), do: {who, term}) |> Enum.chunk_every(4)
      assert length(rounds) == 3

      for round <- rounds do
        assert Enum.sort(round) == [
                 {:other, :large},
                 {:other, :small},
                 {:recorder, :large},
                 {:recorder, :small}
               ]
      end

      assert Enum.uniq(rounds) != [hd(rounds)]
      ids = for rows <- rows, do: Enum.map(rows, &{&1.id, &1.status, &1.count})
      assert ids == List.duplicate([{"recorder", "ok", 2}, {"other", "ok", 2}], 2)
    end

    test "a method that fails with one term is out with all" do
      rows =
        Latency.rows(
          [FakeMethods.Raising, FakeMethods.Good],
          [:small, :large],
          200,
          4,
          3,
          fn _ -> :ok end
        )

      for rows <- rows do
        assert [%{status: "failed", reason: "the other side is gone"}, %{count: 200}] = rows
      end
    end

    test "progress is told before each turn, warm-up included" do
      test = self()

      measure([FakeMethods.Good, FakeMethods.Skipped], 4,
        rounds: 2,
        progress: &send(test, {:progress, &1})
      )

      assert for({:progress, step} <- drain(), do: {step.what, step.done, step.total}) ==
               [{"good, warm-up", 0, 3}, {"good, round 1", 1, 3}, {"good, round 2", 2, 3}]
    end

    test "every method is closed at the end" do
      Process.register(self(), :recorder)
      measure([FakeMethods.Recorder], 1)
      assert {:closed, :recorder} in drain()
    end

    defp drain do
      receive do
        message -> [message | drain()]
      after
        0 -> []
      end
    end
  end

  describe "warnings" do
    test "too few samples for p99.9 are a warning, enough of them are none" do
      ids = fn result -> Enum.map(result.warnings, & &1.id) end
      assert :too_few_samples in ids.(measure([FakeMethods.Good], 9_999))
      refute :too_few_samples in ids.(measure([FakeMethods.Good], 10_000))
    end
  end

  describe "compare/3" do
    test "prints the machine, the methods and the orders of magnitude" do
      text =
        ExUnit.CaptureIO.capture_io(fn ->
          methods = [Latency.Methods.NIFNormal, Latency.Methods.Port, FakeMethods.Skipped]
          assert Latency.compare({:binary.copy(<<1>>, 65_536)}, 100, methods: methods) == :ok
        end)

      assert text =~ ~r/^CPU +\S/m
      assert text =~ ~r/^nif_normal +shared +Erlang term +none +\d/m
      assert text =~ ~r/^port +process .* +\d/m
      assert text =~ ~r/^skipped  skipped: no such thing here$/m
      assert text =~ ~r/^Port +process +port +[\d.]+ +[\d.]+ +10\^\d$/m
    end
  end
end
