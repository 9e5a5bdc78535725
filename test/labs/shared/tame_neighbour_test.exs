defmodule Tame.NeighbourTest do
  # Not async: one test compares what two runs do to the scheduler.
  use ExUnit.Case

  alias Tame.Property

  import :proper_types, only: [integer: 2]

  describe "late/3" do
    test "has nothing to say before the planned moment" do
      assert :tame_neighbour.late(1000, 999, 100) == {[], 1000}
    end

    test "gives one lateness for one planned moment" do
      assert :tame_neighbour.late(1000, 1000, 100) == {[0], 1100}
      assert :tame_neighbour.late(1000, 1099, 100) == {[99], 1100}
    end

    test "gives each missed moment its own lateness" do
      assert :tame_neighbour.late(1000, 1250, 100) == {[250, 150, 50], 1300}
      assert :tame_neighbour.late(1000, 1200, 100) == {[200, 100, 0], 1300}
    end

    test "counts from times below zero, which is where the VM's clock begins" do
      assert :tame_neighbour.late(-1000, -750, 100) == {[250, 150, 50], -700}
    end

    test "leaves no moment out and none to be asked for twice" do
      Property.check(
        {integer(-1000, 1000), integer(0, 5000), integer(1, 300)},
        fn {planned, held_up, period} ->
          now = planned + held_up
          {late, next} = :tame_neighbour.late(planned, now, period)
          moments = for lateness <- late, do: now - lateness
          moments == Enum.to_list(planned..now//period) and next == List.last(moments) + period
        end
      )
    end
  end

  describe "start/1" do
    test "refuses a wrong option by its name and value" do
      for {options, key, value} <- [
            {%{}, :scheduler, :undefined},
            {%{scheduler: 0}, :scheduler, 0},
            {%{scheduler: 100_000}, :scheduler, 100_000},
            {%{scheduler: 1, period_ms: 0}, :period_ms, 0},
            {%{scheduler: 1, period: 10}, :period, 10}
          ] do
        assert :tame_neighbour.start(options) == {:error, {:bad_option, key, value}}
      end
    end

    test "makes a neighbour that ends with its starter" do
      test = self()

      {owner, monitor} =
        spawn_monitor(fn ->
          {:ok, {pid, _}} = :tame_neighbour.start(%{scheduler: 1})
          send(test, pid)
        end)

      assert_receive neighbour when is_pid(neighbour), 5000
      assert_receive {:DOWN, ^monitor, :process, ^owner, :normal}, 5000
      gone = Process.monitor(neighbour)
      assert_receive {:DOWN, ^gone, :process, ^neighbour, _}, 5000
    end
  end

  describe "stop/1" do
    test "gives no wake-up before the first planned one" do
      {:ok, neighbour} = :tame_neighbour.start(%{scheduler: 1, period_ms: 60_000})
      assert :tame_histogram.count(:tame_neighbour.stop(neighbour)) == 0
    end

    test "gives as many wake-ups as periods have passed, however late they were" do
      started = System.monotonic_time(:millisecond)
      {:ok, neighbour} = :tame_neighbour.start(%{scheduler: 1, period_ms: 2})
      # Time itself is tested: its periods are counted.
      Process.sleep(100)
      histogram = :tame_neighbour.stop(neighbour)
      passed = System.monotonic_time(:millisecond) - started
      # The first is one to two periods away, and stopping takes its time.
      assert :tame_histogram.count(histogram) in 48..(div(passed, 2) + 1)
    end
  end

  # A relation and no time: the uncut loop's typical delay is half its length, the yielding one's a
  # slice and the timer; between the two lies a factor of 50. On a machine that others use the second
  # may be as late: then it is measured again.
  @tag :timing
  test "a NIF that does not yield makes its neighbour much later than one that does" do
    a = :binary.copy(<<7>>, 128 * 1024 * 1024)
    uncut = p50(fn -> :tame_exor_classic.exor_loop(a, a) end)
    yielding = fn -> p50(fn -> for _ <- 1..100_000, do: :tame_echo_nif.echo_yielding(:x) end) end
    assert Enum.any?(1..20, fn _ -> uncut > 5 * yielding.() end)
  end

  # Of three calls, in a process beside its neighbour.
  defp p50(fun) do
    test = self()

    :erlang.spawn_opt(
      fn ->
        fun.()
        {:ok, neighbour} = :tame_neighbour.start(%{scheduler: 1})
        for _ <- 1..3, do: fun.()
        send(test, {:p50, :tame_histogram.percentile(:tame_neighbour.stop(neighbour), 50.0)})
      end,
      [:link, scheduler: 1]
    )

    assert_receive {:p50, ns}, 60_000
    ns
  end

  describe "a neighbour that tells" do
    test "says when each wake-up was planned and took place, in order, and leaves none out" do
      {:ok, neighbour} = :tame_neighbour.start(%{scheduler: 1, period_ms: 5, tell: self()})
      assert_receive {:tame_neighbour, pid, first}, 5000
      histogram = :tame_neighbour.stop(neighbour)
      wakes = Enum.reverse(first) ++ rest(pid)

      for {planned, woke} <- wakes, do: assert(woke >= planned)

      moments = for {planned, woke} <- wakes, at <- planned..woke//5_000_000, do: at

      assert moments == Enum.to_list(hd(moments)..List.last(moments)//5_000_000)
      assert length(moments) == :tame_histogram.count(histogram)
    end

    test "is refused what is no process" do
      assert :tame_neighbour.start(%{scheduler: 1, tell: :me}) ==
               {:error, {:bad_option, :tell, :me}}
    end
  end

  defp rest(pid) do
    receive do
      {:tame_neighbour, ^pid, wakes} -> Enum.reverse(wakes) ++ rest(pid)
    after
      0 -> []
    end
  end
end
