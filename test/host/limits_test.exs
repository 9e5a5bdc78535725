defmodule Tame.Host.LimitsTest do
  # Limits that a host cannot have: it says so in one sentence, and loads nothing. c_src/host/life/limits.h.
  use ExUnit.Case, async: true

  alias Tame.Test.{CLibrary, Host, OsProcess}

  # What a host says first, which a shell command before it has bounded.
  defp first(before, args, env \\ []) do
    port =
      Port.open({:spawn_executable, "/bin/sh"}, [
        :nouse_stdio,
        :binary,
        :exit_status,
        packet: 4,
        args: ["-c", before <> ~s( "$0" "$@"), Host.path() | args],
        env: for({name, value} <- env, do: {to_charlist(name), to_charlist(value)})
      ])

    {:os_pid, guard} = Port.info(port, :os_pid)
    assert_receive {^port, {:data, frame}}, 10_000
    Port.close(port)
    OsProcess.await_gone(guard)
    :erlang.binary_to_term(frame)
  end

  for {before, args, sentence} <- [
        {"ulimit -n 128; exec", ~w(--open-files 200),
         "open_files => 200: it takes a limit of 216, and the hard limit here is 128"},
        {"ulimit -t 50; exec", ~w(--cpu-seconds 100),
         "cpu_seconds => 100: it takes a limit of 101, and the hard limit here is 50"},
        {"exec", ~w(--cpu-list 0,1023), "cpus: there is no CPU 1023 that this process may use"}
      ] do
    test "#{hd(args)} is refused: #{sentence}" do
      assert {:refused, :limit, %{}, unquote(sentence)} = first(unquote(before), unquote(args))
    end
  end

  test "a priority that this user may not have" do
    before =
      if File.stat!("/proc/self").uid == 0,
        do: "exec setpriv --bounding-set -sys_nice",
        else: "exec"

    assert {:refused, :limit, %{}, "nice => -20: the VM runs with " <> _} =
             first(before, ~w(--nice -20))
  end

  # Not under sanitizers, which need terabytes of address space, and their own library before any other.
  if System.get_env("TAME_TEST_HOST") == nil do
    test "memory beyond the hard limit" do
      assert {:refused, :limit, %{}, "memory_mb => 8000000: the hard limit of " <> _} =
               first("ulimit -d 4000000000; exec", ~w(--memory-mb 8000000))
    end

    # It takes the limit, and does not hold the process to it.
    test "memory that the system does not limit" do
      folder = CLibrary.tmp_dir!()

      library =
        CLibrary.nif!(folder, "no_limit", """
        #include <sys/resource.h>
        int setrlimit(__rlimit_resource_t resource, const struct rlimit *limit)
        { (void)resource; (void)limit; return 0; }
        """)

      assert {:refused, :limit, %{}, "memory_mb => 64: this system does not limit memory" <> _} =
               first("exec", ~w(--memory-mb 64), [{"LD_PRELOAD", library}])
    end
  end

  test "limits that can be had are no news" do
    args = ~w(--memory-mb 64 --cpu-seconds 100 --open-files 64 --threads 4 --nice 1 --cpus 1)
    assert {:hello, 4, _, _} = first("exec", args)
  end

  test "values that are none: one line, and status 2" do
    for {args, line} <- [
          {~w(--memory-mb 0), "--memory-mb takes a number from 1 to 16777216, not: 0"},
          {~w(--cpu-seconds 1s), "--cpu-seconds takes a number from 1 to 2147483648, not: 1s"},
          {~w(--open-files -1), "--open-files takes a number from 1 to 1048576, not: -1"},
          {~w(--threads 99999999999999999999), "--threads takes a number from 0 to 32768, not: "},
          {~w(--nice 20), "--nice takes a number from -20 to 19, not: 20"},
          {~w(--cpus), "--cpus takes a number from 1 to 1024, not: nothing"},
          {~w(--cpu-list 0,,1), "--cpu-list takes numbers from 0 to 1023 with commas"},
          {["--cpu-list", "0,1,"], "--cpu-list takes numbers from 0 to 1023 with commas"},
          {~w(--disk 1), "unknown argument: --disk"}
        ] do
      assert {text, 2} = System.cmd(Host.path(), args, stderr_to_stdout: true)
      assert text |> String.split("\n") |> hd() =~ "tame_host: " <> line
    end
  end
end
