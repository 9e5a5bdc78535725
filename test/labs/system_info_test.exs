defmodule Tame.SystemInfoTest do
  use ExUnit.Case, async: true

  alias Tame.SystemInfo

  test "collect/1 says what runs, and every fact has a label and a text" do
    system = SystemInfo.collect("mix some.task")
    assert system[:command] == "mix some.task"
    assert system[:otp] == to_string(:erlang.system_info(:otp_release))
    assert system[:schedulers] == System.schedulers_online()
    lines = SystemInfo.lines(system)
    assert length(lines) == length(system)
    for {label, text} <- lines, do: assert(is_binary(label) and is_binary(text) and text != "")
    assert {"schedulers", "#{System.schedulers_online()}"} in lines
  end

  describe "step_ns/1" do
    test "is what nearly all differences are multiples of, give or take their rounding" do
      coarse = Enum.flat_map([40, 41, 50, 49, 60, 120], &List.duplicate(&1, 20))
      assert SystemInfo.step_ns(coarse) == 10
      assert SystemInfo.step_ns([7083 | coarse]) == 10
      assert SystemInfo.step_ns([1000, 2000, 1001, 0]) == 1000
    end

    test "is 1 where they have nothing in common" do
      assert SystemInfo.step_ns(Enum.to_list(20..60)) == 1
      assert SystemInfo.step_ns([0, 0]) == 1
    end
  end

  describe "busy_wait/1" do
    test "flags that are not given have their documented defaults" do
      line = Enum.join(["beam.smp", "-sbwtdcpu", "none", "--", "-sbwt", "x"], <<0>>)

      assert SystemInfo.busy_wait({:ok, line}) ==
               "sbwt medium (default), sbwtdcpu none, sbwtdio short (default)"
    end
  end

  test "ended/2 adds what others took while it ran, where that is known" do
    load = Tame.OtherLoad.start()
    system = SystemInfo.ended([tame: "0.1.0"], load)
    assert Keyword.keys(system) == [:tame, :others_percent]
    assert [{_, _}, {"CPU that others took", text}] = SystemInfo.lines(system)
    assert text == "unknown" or text =~ ~r/^\d+ %$/
    assert SystemInfo.ended([], nil) == [others_percent: nil]
  end

  describe "cpu_quota/1" do
    defp files(map),
      do: &(Map.fetch(map, &1) |> then(fn r -> if r == :error, do: {:error, :enoent}, else: r end))

    test "the tightest of the group and its parents counts" do
      read =
        files(%{
          "/proc/self/cgroup" => "0::/a/b\n",
          "/sys/fs/cgroup/a/b/cpu.max" => "max 100000\n",
          "/sys/fs/cgroup/a/cpu.max" => "150000 100000\n",
          "/sys/fs/cgroup/cpu.max" => "400000 100000\n"
        })

      assert SystemInfo.cpu_quota(read) == 1.5
    end

    test "no limit anywhere is none" do
      assert SystemInfo.cpu_quota(files(%{"/proc/self/cgroup" => "0::/\n"})) == :none
      assert SystemInfo.cpu_quota(files(%{})) == :none
    end

    test "version 1 has quota and period in files of their own, -1 is no limit" do
      v1 = fn quota ->
        files(%{
          "/proc/self/cgroup" => "3:cpu,cpuacct:/\n",
          "/sys/fs/cgroup/cpu/cpu.cfs_quota_us" => quota,
          "/sys/fs/cgroup/cpu/cpu.cfs_period_us" => "100000\n"
        })
      end

      assert SystemInfo.cpu_quota(v1.("50000\n")) == 0.5
      assert SystemInfo.cpu_quota(v1.("-1\n")) == :none
    end
  end

  describe "warnings/1" do
    @quiet [others_percent: 3, flavor: "jit", build_type: "opt"] ++
             [cpu_quota: :none, schedulers: 2, clock_step_ns: 1]

    defp ids(change),
      do: @quiet |> Keyword.merge(change) |> SystemInfo.warnings() |> Enum.map(& &1.id)

    test "a quiet, normal machine has none" do
      assert ids([]) == []
    end

    test "each oddity has its own" do
      assert ids(others_percent: 11) == [:machine_busy]
      assert ids(flavor: "emu") == [:no_jit]
      assert ids(build_type: "debug") == [:not_optimised]
      assert ids(cpu_quota: 1.5) == [:cpu_quota]
      assert ids(clock_step_ns: 1000) == [:clock_too_coarse]
    end

    test "what the machine does not say raises no warning" do
      assert ids(others_percent: nil) == []
    end
  end
end
