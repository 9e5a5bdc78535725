defmodule Tame.Load.PureTest do
  use ExUnit.Case, async: true

  alias Tame.Load.{Client, Format, H2load, Limit, Plan, Requests, Threads, Verdict}

  doctest Client
  doctest Format
  doctest H2load
  doctest Limit
  doctest Plan
  doctest Requests
  doctest Threads
  doctest Verdict

  defp request(planned_ms, done_ms, status \\ :answered) do
    %{
      planned_ns: planned_ms * 1_000_000,
      sent_ns: planned_ms * 1_000_000,
      done_ns: done_ms && done_ms * 1_000_000,
      status: status,
      at_once: true
    }
  end

  test "an interval has the answers that came in it, and the times of what was planned in it" do
    requests = [request(0, 5), request(100, 350), request(200, 360), request(300, nil, :unanswered)]
    ms = 1_000_000

    assert [first, second] = Requests.intervals(requests, 0, 500 * ms, 250 * ms, 1000 * ms)
    assert %{answered_per_s: 4.0, p50: 160_000.0, max: 250_000.0} = first
    assert %{answered_per_s: 8.0, p50: 700_000.0, from_ns: 250_000_000} = second
  end

  test "only the client's own lateness counts as its own" do
    late = fn ms, at_once -> %{request(0, 9) | sent_ns: ms * 1_000_000, at_once: at_once} end
    assert Requests.own_late_us([late.(3, true), late.(900, false)]) == 3000.0
    assert Requests.own_late_us([late.(900, false)]) == nil
  end

  describe "the limit" do
    # Hello's p99 in ms at each rate, and whether jobs keep up.
    defp limit(p99, keeps_up? \\ fn _ -> true end, failed \\ fn _ -> 0 end) do
      test = self()

      cell = fn rate ->
        send(test, {:rate, rate})

        %{
          status: "ok",
          reason: nil,
          hello_p99_us: 1000.0 * p99.(rate),
          hello_planned: 1000,
          hello_refused: 5,
          hello_failed: failed.(rate),
          job_answered_per_s: 1.0 * rate,
          job_in_time: if(keeps_up?.(rate), do: 0.95, else: 0.5),
          job_sent: rate,
          job_refused: 0,
          job_failed: 0,
          recovered_ms: 0.0
        }
      end

      {Limit.one(cell, 10, 10_000), rates([])}
    end

    defp rates(seen) do
      receive do
        {:rate, rate} -> rates([rate | seen])
      after
        0 -> Enum.reverse(seen)
      end
    end

    test "is the last rate within the bound; twice that was seen already" do
      {limit, rates} = limit(fn rate -> if rate <= 40, do: 5, else: 500 end)

      assert %{held_per_s: 40, held_p99_us: 5000.0, overload: %{rate: 80, hello_p99_us: 500_000.0}} =
               limit

      assert rates == [10, 20, 40, 80]
    end

    test "is none where the first rate is too much, and that one is the overload" do
      assert {%{held_per_s: nil, overload: %{rate: 10}}, [10]} = limit(fn _ -> 50 end)
    end

    test "is reached when jobs are answered slower than they are asked for" do
      assert {%{held_per_s: 20}, [10, 20, 40]} = limit(fn _ -> 1 end, &(&1 <= 20))
    end

    test "is reached when hello has no answer, however fast the others come" do
      failed = fn rate -> if rate <= 20, do: 5, else: 6 end
      {limit, rates} = limit(fn _ -> 1 end, fn _ -> true end, failed)
      assert {%{held_per_s: 20, held_p99_us: 1000.0}, [10, 20, 40]} = {limit, rates}
      assert %{hello_planned: 1000, hello_refused: 5, hello_failed: 6} = limit.overload
    end

    test "ends after a bounded number of steps, and then asks for twice the last" do
      {limit, rates} = limit(fn _ -> 1 end)
      assert length(rates) == 9
      assert limit.overload.rate == 2 * limit.held_per_s
    end
  end

  describe "the claim" do
    defp result(inline_us, yielding_us) do
      cell = fn placement, us ->
        %{placement: placement, job_us: 10_000, status: "ok", hello_p99_us: us}
      end

      %{load_percent: 200, cells: [cell.("inline", inline_us), cell.("yielding", yielding_us)]}
    end

    test "says what the data says, whatever it is" do
      for {inline, yielding, words} <- [
            {3.0e6, 1.2e4, "the yielding form keeps hello alive where the plain NIF kills it."},
            {3.0e6, 5.0e5, "the yielding form slows hello down where the plain NIF kills it."},
            {5.0e5, 1.0e4,
             "the yielding form keeps hello alive where the plain NIF slows it down."},
            {1.0e3, 1.0e3, "both keep hello alive."},
            {2.0e6, 2.0e6, "both kill hello."},
            {1.0e3, 2.0e6, "the plain NIF keeps hello alive, and the yielding form kills hello."}
          ] do
        assert [sentence] = Verdict.claim(result(inline, yielding))
        assert String.ends_with?(sentence, words)
        assert sentence =~ "jobs of 10 ms at 200 %"
      end
    end

    test "knows that hello has no answer, and says how much of it" do
      lost = %{hello_planned: 1000, hello_refused: 100, hello_failed: 800, hello_p99_us: 900.0}
      assert Verdict.level(lost) == :dead
      assert Verdict.level(%{lost | hello_refused: 50, hello_failed: 0}) == :slow
      assert Verdict.level(%{lost | hello_refused: 5, hello_failed: 5}) == :alive

      %{cells: [inline, yielding]} = result = result(9.0e3, 9.0e3)
      lossy = %{result | cells: [inline, Map.merge(yielding, lost)]}
      assert [sentence] = Verdict.claim(lossy)
      assert sentence =~ "900 µs (90 % refused or failed) beside its yielding form"
      assert sentence =~ "the plain NIF keeps hello alive, and the yielding form kills hello."
    end

    test "is not made without both" do
      assert Verdict.claim(%{result(1.0, 1.0) | cells: []}) == []
    end
  end
end
