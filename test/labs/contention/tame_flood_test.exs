defmodule Tame.FloodTest do
  # Floods of work that ends, does not end, fails or is refused, and what keeps a CPU busy for the lab.
  use ExUnit.Case, async: true

  @moduletag isolation: :shared

  defp flood(job, jobs, window_ms, limit_ms) do
    flood = :tame_flood.start(job, jobs)
    outcome = :tame_flood.run(flood, %{window_ms: window_ms, limit_ms: limit_ms})
    {outcome, :tame_flood.stop(flood)}
  end

  test "short jobs come in burst after burst until the window is over" do
    {outcome, slices} = flood(fn -> :ok end, 5, 2000, 30_000)

    assert %{status: :ok, bursts: bursts, refused: 0} = outcome
    assert bursts > 1
    assert outcome.finished == 5 * bursts
    assert outcome.ended_ns - outcome.started_ns >= 1_999_000_000
    assert [%{normal: %{count: count}}, _] = slices
    assert count > 0
  end

  test "one that does not end is stopped at its limit" do
    {outcome, _} = flood(fn -> Process.sleep(:infinity) end, 3, 10, 30)
    assert %{status: :timeout, bursts: 1, finished: 0} = outcome
  end

  test "a job that fails ends it with its reason" do
    {outcome, _} = flood(fn -> raise ArgumentError end, 3, 10, 5000)
    assert %{status: {:failed, %ArgumentError{}}} = outcome
  end

  test "a job that is refused as busy is counted and no failure" do
    {outcome, _} = flood(fn -> :erlang.error({:tame, :busy}) end, 3, 0, 5000)
    assert %{status: :ok, finished: 0, refused: 3} = outcome
  end

  test "without jobs it lasts as long as its window" do
    assert {%{status: :ok, finished: 0}, []} = flood(fn -> :ok end, 0, 10, 5000)
  end

  test "nothing of it is left" do
    owner = self()

    flood(fn -> send(owner, {:worker, self()}) end, 4, 0, 5000)
    assert_receive {:worker, worker}
    assert Tame.Await.until(fn -> not Process.alive?(worker) end)
  end

  test "cuts of any length return ok, one of more than 10 ms is refused" do
    for us <- [0, 1, 999, 1000, 2500], do: assert(:tame_thousand_cuts.cuts(us) == :ok)

    for wrong <- [-1, 10_001, 1.0, :a],
        do: assert_raise(ArgumentError, fn -> :tame_thousand_cuts.cut(wrong) end)
  end

  test "the dirty clock is the VM's" do
    before = :erlang.monotonic_time(:nanosecond)
    there = :tame_thousand_cuts.dirty_cpu_clock()
    assert before <= there and there <= :erlang.monotonic_time(:nanosecond)
  end

  test "the loop in Erlang does more for more" do
    :ok = :tame_loop.loop(1)

    # As the VM counts it: how long it takes depends on what runs beside.
    work = fn us ->
      {:reductions, before} = Process.info(self(), :reductions)
      :ok = :tame_loop.loop(us)
      {:reductions, later} = Process.info(self(), :reductions)
      later - before
    end

    assert_in_delta work.(20_000) / work.(1000), 20, 2
  end

  describe "an asker" do
    for kind <- [:dirty_cpu, :dirty_io, :gc] do
      test "of #{kind} says when it asked, and then when it got" do
        kind = unquote(kind)

        asker = :tame_asker.start(kind, %{period_ms: 5, second_ms: 1, collector: self()})

        for _ <- 1..2 do
          assert_receive {:tame_asker, ^kind, :asked, asked}, 5000
          assert_receive {:tame_asker, ^kind, :got, got}, 5000
          assert got >= asked
        end

        :tame_asker.stop(asker)
        assert Tame.Await.until(fn -> not Process.alive?(asker) end)
      end
    end
  end
end
