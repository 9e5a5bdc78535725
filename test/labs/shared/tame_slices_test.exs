defmodule Tame.SlicesTest do
  # Not async: who loads or purges code beside us asks every process whether it uses it, and a
  # process that answers runs once more for that.
  use ExUnit.Case

  alias Tame.Property

  import :proper_types, only: [integer: 2, list: 1]

  # What was seen of `fun` in a fresh process, which watches itself.
  defp watch(fun, options \\ %{}) do
    in_process(fn ->
      {:ok, watch} = :tame_slices.start(self(), options)
      fun.()
      :tame_slices.stop(watch)
    end)
  end

  defp in_process(fun) do
    test = self()
    {pid, monitor} = spawn_monitor(fn -> send(test, {self(), fun.()}) end)

    receive do
      {^pid, result} -> result
      {:DOWN, ^monitor, :process, ^pid, reason} -> flunk(inspect(reason))
    end
  end

  defp binary(mib), do: :binary.copy(<<7>>, mib * 1024 * 1024)

  describe "a process that watches itself" do
    test "has one slice, when it neither waits nor yields" do
      reading = watch(fn -> :ok end)
      assert reading.normal.count == 1
      assert reading.dirty.count == 0
      assert [{0, duration_ns, :normal}] = reading.slices
      assert duration_ns == reading.normal.longest_ns
      assert duration_ns == reading.normal.total_ns
    end

    test "has one more for each yield" do
      assert watch(fn -> for _ <- 1..10, do: :erlang.yield() end).normal.count == 11
    end

    test "has one more for each hop of a yielding NIF" do
      # The first call loads the module, which is a matter of messages.
      :tame_echo_nif.echo_yielding(:x)
      reading = watch(fn -> for _ <- 1..10, do: :tame_echo_nif.echo_yielding(:x) end)
      assert reading.normal.count == 11
      assert reading.dirty.count == 0
    end

    test "has dirty slices for dirty NIFs, and normal ones around them" do
      :tame_echo_nif.echo_dirty_cpu(:x)

      for name <- [:echo_dirty_cpu, :echo_dirty_io, :echo_yielding_dirty] do
        reading = watch(fn -> for _ <- 1..10, do: apply(:tame_echo_nif, name, [:x]) end)
        assert reading.dirty.count == 10
        assert reading.normal.count >= 11
        assert Enum.count(reading.slices, &match?({_, _, :dirty}, &1)) == 10
      end
    end

    test "has one long slice for a long NIF call that does not yield" do
      a = binary(32)
      :tame_exor_classic.exor_loop(<<>>, <<>>)
      call = fn -> :tame_exor_classic.exor_loop(a, a) end
      reading = watch(call)
      assert reading.normal.count == 1
      # It charges nothing for it, which is what makes it ill-behaved.
      assert reading.reductions < 1000
    end

    test "has a slice for every few thousand reductions of a loop in Erlang, all charged" do
      reading = watch(fn -> count_down(2_000_000) end)
      assert reading.normal.count > 100
      assert reading.dirty.count == 0
      assert reading.reductions >= 2_000_000
      assert reading.normal.longest_ns < reading.normal.total_ns
    end

    test "may watch itself again" do
      assert in_process(fn ->
               for _ <- 1..3 do
                 {:ok, watch} = :tame_slices.start(self())
                 :tame_slices.stop(watch).normal.count
               end
             end) == [1, 1, 1]
    end

    test "gives figures that agree: the histogram, the counts, the totals, the picture" do
      %{normal: normal} = reading = watch(fn -> for _ <- 1..50, do: :erlang.yield() end)
      assert :tame_histogram.count(normal.histogram) == normal.count
      assert :tame_histogram.max(normal.histogram) >= normal.longest_ns
      assert reading.slices |> Enum.map(&elem(&1, 1)) |> Enum.sum() == normal.total_ns
      assert reading.left_out == 0
    end

    test "keeps as many slices as asked for, and counts the others" do
      reading = watch(fn -> for _ <- 1..999, do: :erlang.yield() end, %{keep: 10})
      assert length(reading.slices) in 5..10
      assert reading.left_out + length(reading.slices) == reading.normal.count
      assert Enum.any?(reading.slices, &(elem(&1, 1) == reading.normal.longest_ns))
    end
  end

  describe "another process" do
    test "is watched from outside, and what ran before is not counted" do
      pid = spawn(&worker/0)
      ask(pid, 1000)
      {:ok, watch} = :tame_slices.start(pid)
      ask(pid, 10)
      reading = :tame_slices.stop(watch)
      # Each message may wake it once more.
      assert reading.normal.count in 10..14
      assert reading.reductions > 0
    end

    test "may die meanwhile: its last slice is counted, its reductions are not known" do
      pid = spawn(&worker/0)
      ask(pid, 1)
      {:ok, watch} = :tame_slices.start(pid)
      monitor = Process.monitor(pid)
      send(pid, :stop)
      assert_receive {:DOWN, ^monitor, :process, ^pid, :normal}, 5000
      assert %{reductions: :undefined, normal: %{count: 1}} = :tame_slices.stop(watch)
    end

    test "that is dead already is refused" do
      {pid, monitor} = spawn_monitor(fn -> :ok end)
      assert_receive {:DOWN, ^monitor, :process, ^pid, :normal}, 5000
      assert :tame_slices.start(pid) == {:error, :noproc}
    end

    test "that is traced already is refused up to OTP 26, and untouched; later each has its own session" do
      pid = spawn(&worker/0)
      {:ok, watch} = :tame_slices.start(pid)

      if System.otp_release() < "27" do
        assert :tame_slices.start(pid) == {:error, :already_traced}
      else
        {:ok, second} = :tame_slices.start(pid)
        assert :tame_slices.stop(second).normal.count <= 2
      end

      ask(pid, 10)
      assert :tame_slices.stop(watch).normal.count >= 10
    end

    test "is left alone when the one who watched dies" do
      pid = spawn(&worker/0)
      test = self()

      {owner, monitor} =
        spawn_monitor(fn ->
          {:ok, watch} = :tame_slices.start(pid)
          send(test, watch)
        end)

      assert_receive %{tracer: tracer}, 5000
      assert_receive {:DOWN, ^monitor, :process, ^owner, :normal}, 5000
      gone = Process.monitor(tracer)
      assert_receive {:DOWN, ^gone, :process, ^tracer, _}, 5000
      ask(pid, 1)
      assert :erlang.trace_info(pid, :tracer) == {:tracer, []}
    end

    # Yields as often as it is asked to, then answers.
    defp worker do
      receive do
        {from, times} ->
          for _ <- 1..times, do: :erlang.yield()
          send(from, {self(), :done})
          worker()

        :stop ->
          :ok
      end
    end

    defp ask(pid, times) do
      send(pid, {self(), times})
      assert_receive {^pid, :done}, 5000
    end
  end

  test "a wrong option is refused by its name and value" do
    for {options, key, value} <- [
          {%{keep: 1}, :keep, 1},
          {%{keep: :all}, :keep, :all},
          {%{scheduler: 0}, :scheduler, 0},
          {%{schedular: 1}, :schedular, 1}
        ] do
      assert :tame_slices.start(self(), options) == {:error, {:bad_option, key, value}}
    end
  end

  # On OTP 25 a trace switched off for a set of processes ends the VM while one is in a dirty NIF.
  # In a VM of its own, which may die of it.
  test "switching on and off while processes are in dirty NIFs leaves the VM alive" do
    peer = Tame.Test.PeerVm.start_link()
    assert :peer.call(peer, Tame.SlicesScenarios, :watch_dirty, [4, 300], 600_000) == 1200
  end

  describe "the picture" do
    test "keeps all slices while there is room" do
      for count <- 0..9 do
        slices = slices(Enum.to_list(1..count//1))
        assert kept(slices, 10) == {slices, 0}
      end
    end

    test "of any slices has the longest, in order, no more than its limit, and counts the others" do
      Property.check(
        {integer(2, 12), list(integer(0, 1000))},
        fn {limit, durations} ->
          slices = slices(durations)
          {kept, left_out} = kept(slices, limit)

          length(kept) <= limit and
            length(kept) + left_out == length(slices) and
            kept == Enum.filter(slices, &(&1 in kept)) and
            (slices == [] or Enum.max(durations) in Enum.map(kept, &elem(&1, 1)))
        end,
        max_size: 200
      )
    end

    defp slices(durations) do
      for {duration, index} <- Enum.with_index(durations), do: {index * 1000, duration, :normal}
    end

    defp kept(slices, limit) do
      slices
      |> Enum.reduce(:tame_slices.new_picture(limit), &:tame_slices.keep/2)
      |> :tame_slices.kept()
    end
  end

  defp count_down(0), do: :ok
  defp count_down(n), do: count_down(n - 1)
end
