defmodule Tame.CPUTest do
  # Which threads of a VM use the cores.
  use ExUnit.Case, async: true

  alias Tame.{CPU, Peer, Proc}

  doctest CPU
  doctest Tame.Spans

  @ms 1_000_000

  defp sample(at_ms, fields) do
    Map.merge(%{at_ns: at_ms * @ms, normal: 0, dirty: 0, process: 0, hosts: 0}, Map.new(fields))
  end

  describe "stretches/1" do
    test "threads that are counted late take nothing from the others, nor give them something" do
      # The process is exact; its scheduler is counted 4 ms late, and so seen to have run less, then more.
      samples = [
        sample(0, []),
        sample(20, process: 20 * @ms, normal: 16 * @ms),
        sample(40, process: 40 * @ms, normal: 40 * @ms),
        sample(60, process: 60 * @ms, normal: 56 * @ms)
      ]

      other = for stretch <- CPU.stretches(samples), do: stretch.other
      assert other == [0.2, 0.0, 0.0]
    end

    test "a long recording is thinned, and its sums stay" do
      samples = for n <- 0..2000, do: sample(20 * n, process: 10 * n * @ms)
      stretches = CPU.stretches(samples)
      assert length(stretches) in 200..400
      assert Enum.all?(stretches, &(&1.other == 0.5))
    end

    test "of nothing or of one sample is nothing" do
      assert CPU.stretches([]) == []
      assert CPU.stretches([sample(0, [])]) == []
    end
  end

  describe "process_ns/1" do
    test "counts on while the process works, and knows those that are there" do
      own = List.to_integer(:os.getpid())
      before = :tame_cpu.process_ns(own)
      :tame_spin.spin_inline(20_000)
      assert :tame_cpu.process_ns(own) - before >= @ms
      # No process has such a high number.
      assert :tame_cpu.process_ns(2_000_000_000) == :unknown
    end

    test "refuses what is no number of a process" do
      for wrong <- [0, -1, 1.0, :self, 1_000_000_000_000] do
        assert_raise ArgumentError, fn -> :tame_cpu.process_ns(wrong) end
      end
    end
  end

  describe "a recording" do
    setup do
      {:ok, peer} = Peer.start([])
      on_exit(fn -> File.exists?("/proc/#{peer.os_pid}") && Peer.stop(peer) end)
      %{peer: peer}
    end

    defp used_ms(peer, function) do
      recording = CPU.start(peer.os_pid)
      :ok = Peer.call(peer, :tame_spin, function, [200_000])
      samples = CPU.stop(recording)

      for kind <- CPU.kinds(), into: %{} do
        times = for s <- CPU.stretches(samples), do: s[kind] * (s.to_ns - s.from_ns) / @ms
        {kind, Enum.sum(times)}
      end
    end

    test "tells schedulers, dirty schedulers and other threads apart", %{peer: peer} do
      # The first call of a library measures its rate.
      :ok = Peer.call(peer, :tame_spin, :spin_inline, [1])

      # A rate that was measured on a busy machine makes less work of the 200 ms.
      for {function, kind} <- [
            spin_inline: :normal,
            spin_dirty: :dirty,
            spin_pool: :other,
            spin_thread: :other
          ] do
        used = used_ms(peer, function)
        assert used[kind] > 5
        assert used[kind] > 2 * (used |> Map.delete(kind) |> Map.values() |> Enum.max())
      end
    end

    test "sees other processes, as hosts are", %{peer: peer} do
      own = List.to_integer(:os.getpid())
      recording = CPU.start(peer.os_pid, [own])
      :tame_spin.spin_inline(20_000)
      [first | _] = samples = CPU.stop(recording)
      assert List.last(samples).hosts - first.hosts >= @ms
    end

    test "of a VM that ends keeps what was seen of it", %{peer: peer} do
      recording = CPU.start(peer.os_pid)
      :ok = Peer.call(peer, :tame_spin, :spin_inline, [30_000])
      Peer.stop(peer)
      assert [_ | _] = CPU.stop(recording)
    end

    test "ends with the process that began it", %{peer: peer} do
      test = self()

      {owner, _} =
        spawn_monitor(fn ->
          {pid, _} = CPU.start(peer.os_pid)
          send(test, {:sampler, pid})
          Process.sleep(:infinity)
        end)

      assert_receive {:sampler, pid}, 5000
      monitor = Process.monitor(pid)
      Process.exit(owner, :kill)
      assert_receive {:DOWN, ^monitor, :process, ^pid, :normal}, 5000
    end
  end

  test "of no process at all is empty" do
    recording = CPU.start("2000000000")
    assert CPU.stop(recording) == []
  end

  test "time is read from stat where the kernel has no schedstat" do
    spin = Task.async(fn -> :tame_spin.spin_inline(60_000) end)
    Task.await(spin)
    # No such folder has a schedstat, so the time is that of stat, in ticks.
    assert {:stat, path} = Proc.open_time("/proc/self/none")
    assert path == "/proc/self/none/stat"
    assert Proc.time_ns({:stat, "/proc/self/none/stat"}) == nil
    assert Proc.time_ns({:stat, "/proc/self/stat"}) >= 10 * @ms
  end
end
