defmodule Tame.Watch.PureTest do
  use ExUnit.Case, async: true
  doctest Tame.Watch.Blame
  doctest Tame.Watch.Calls
  doctest Tame.Watch.Connection
  doctest Tame.Watch.Second

  alias Tame.Watch.{Blame, Format, Second}

  defp blame(nifs) do
    Blame.new(nifs, fn module ->
      case :code.get_object_code(module) do
        {^module, code, _} -> code
        :error -> nil
      end
    end)
  end

  describe "a long slice is blamed on" do
    test "the NIF that its process is in, or what a NIF has scheduled under another name" do
      blame = blame([{:tame_spin, :spin_inline_nif, 1}])

      for {name, arity} <- [spin_inline_nif: 1, tame_settle: 3] do
        {verdict, _} = Blame.verdict(blame, [{:timer, :sleep, 1}, {:tame_spin, name, arity}])
        assert verdict == %{nifs: ["tame_spin:#{name}/#{arity}"], from: nil}
      end
    end

    test "the NIF that the function calls in which its process left, by way of others" do
      blame = blame([{:tame_thousand_cuts, :cut, 1}, {:tame_thousand_cuts, :dirty_cpu_clock, 0}])
      {verdict, _} = Blame.verdict(blame, [{:timer, :sleep, 1}, {Tame.WatchNode, :cuts, 0}])
      assert verdict == %{nifs: ["tame_thousand_cuts:cut/1"], from: "Tame.WatchNode.cuts/0"}
    end

    test "nobody's dirty NIF, which begins where the slice ends" do
      cut = {:tame_thousand_cuts, :cut, 1}
      dirty = {:tame_spin, :spin_dirty_nif, 1}
      seen = [dirty, {Tame.WatchNode, :before_dirty, 0}]
      {verdict, blame} = [cut, dirty] |> blame() |> Blame.verdict(seen)
      assert verdict.nifs == ["tame_spin:spin_dirty_nif/1"]

      # Once it was seen on a dirty thread.
      blame = Blame.dirty(blame, [dirty])
      {verdict, _} = Blame.verdict(blame, seen)
      assert %{nifs: ["tame_thousand_cuts:cut/1"], from: "Tame.WatchNode.before_dirty/0"} = verdict
      assert {%{nifs: []}, _} = Blame.verdict(blame, [dirty, {:lists, :seq, 2}])

      # And what was said before that is taken back.
      assert %{long_schedules: [%{nifs: [], count: 3}]} =
               Second.acquit(
                 %{
                   second([])
                   | long_schedules: [
                       %{nifs: ["m:f/1"], from: nil, count: 1, longest_ms: 12, process: "x"},
                       %{nifs: [], from: nil, count: 2, longest_ms: 31, process: "y"}
                     ]
                 },
                 MapSet.new(["m:f/1"])
               )
    end

    test "nobody, where no NIF is called or there is no code" do
      blame = blame([{:tame_thousand_cuts, :cut, 1}])
      {verdict, _} = Blame.verdict(blame, [{:lists, :seq, 2}])
      assert verdict == %{nifs: [], from: "lists:seq/2"}
      {verdict, _} = Blame.verdict(blame, [{:no_such_module, :f, 0}])
      assert verdict == %{nifs: [], from: "no_such_module:f/0"}
      assert {%{nifs: [], from: nil}, _} = Blame.verdict(blame, [])
    end
  end

  test "every delay has one bucket, and the buckets are in order" do
    buckets = for us <- 0..100_000, do: :tame_watch_ticker.bucket(us)
    assert buckets == Enum.sort(buckets)
    assert Enum.uniq(buckets) == Enum.to_list(0..Enum.max(buckets))
    assert :tame_watch_ticker.bucket(1_000_000_000_000) == 119
  end

  defp second(more) do
    Map.merge(
      %{
        at_ms: 12_000,
        utilisation: %{normal: 41.2, dirty_cpu: 99.7, dirty_io: nil},
        dirty: %{cpu: %{busy: 2, waiting: 1}, io: nil},
        holders: [
          %{process: "<0.90.0>", function: "m:f/1", kind: :cpu, for_ms: 315},
          %{process: "worker", function: "garbage collection", kind: :unknown, for_ms: 12}
        ],
        neighbour: %{wakes: 20, p50_us: 90.0, p99_us: 1500.0, max_us: 31_000.0},
        long_schedules: [
          %{nifs: ["a:b/1"], from: nil, count: 2, longest_ms: 31, process: "<0.91.0>"},
          %{nifs: ["a:b/1", "a:c/2"], from: "d:e/0", count: 1, longest_ms: 12, process: "x"}
        ],
        long_left_out: 3,
        monitor: nil,
        held: %{process: "<0.91.0>", for_ms: 80},
        processes: 1000,
        looked_at: 120,
        cost_percent: 0.123
      },
      Map.new(more)
    )
  end

  @facts %{
    node: :app@host,
    otp: "25",
    schedulers: 2,
    schedulers_online: 2,
    dirty_cpu_schedulers: 2,
    dirty_cpu_schedulers_online: 2,
    dirty_io_schedulers: 10,
    began_ns: 0
  }

  test "a function that called no NIF is not named as its caller" do
    row = %{nifs: [], from: "timer:sleep/1", count: 1, longest_ms: 12, process: "x"}
    screen = Format.screen(@facts, %{second([]) | long_schedules: [row]}, [])
    assert IO.iodata_to_binary(screen) =~ ~r/no NIF known +none, seen in timer:sleep\/1 /
  end

  test "a screen says who holds what, and what was not looked at" do
    assert @facts |> Format.screen(second([]), []) |> IO.iodata_to_binary() == """
           app@host  OTP 25, 2 schedulers, 2 dirty CPU, 10 dirty I/O
           second 12, 1,000 processes, cost 0.12 % of a core there

           schedulers  utilised %  threads at work  waiting
           normal              41                -        -
           dirty CPU          100                2        1
           dirty I/O            -                -        -

           neighbours woke 0.090 ms late (p50), 1.50 ms (p99), 31.0 ms at most
           <0.91.0> has not answered for 80 ms: it is in native code on a normal scheduler

           in a dirty NIF  function            threads    seen for ms
           <0.90.0>        m:f/1               dirty CPU          315
           worker          garbage collection  dirty               12
           (120 of 1000 processes looked at in the last round)

           slices over 10 ms in  called by  count  longest ms  process
           a:b/1                 -              2          31  <0.91.0>
           one of a:b/1, a:c/2   d:e/0          1          12  x
           (and 3 more)
           """
  end

  test "the sum has means of shares, and the longest of what took time" do
    late =
      second(utilisation: %{normal: nil, dirty_cpu: nil, dirty_io: nil}, holders: [], held: nil)

    result = %{facts: @facts, seconds: [second([]), late], calls: [], silent_ms: 0, ended: nil}
    sum = Format.sum(result)
    assert sum.utilisation == %{normal: 41.2, dirty_cpu: 99.7, dirty_io: nil}
    assert %{held: %{for_ms: 80}, long_left_out: 6} = sum

    assert [%{function: "m:f/1", kind: :cpu, processes: 1, for_ms: 315} | _] = sum.holders
    assert [%{nifs: ["a:b/1"], count: 4, longest_ms: 31} | _] = sum.long_schedules
    assert Second.group([]) == []
    text = IO.iodata_to_binary(Format.summary(%{result | ended: "the connection was lost"}))
    assert text =~ "ended early: the connection was lost\n"
  end
end
