defmodule Tame.TaskTest do
  # What all tasks have in common.
  # Not async: mix help looks for tasks in the dependencies, each in its own folder, and changes that of this VM meanwhile.
  use ExUnit.Case
  import ExUnit.CaptureIO
  import Tame.Test.OsProcess

  @tasks (
           _ = Application.load(:tame_labs)
           {:ok, modules} = :application.get_key(:tame_labs, :modules)
           Enum.filter(modules, &String.starts_with?(inspect(&1), "Mix.Tasks.Tame."))
         )

  doctest Tame.Task

  test "there are tasks" do
    assert Mix.Tasks.Tame.Latency in @tasks
  end

  for task <- @tasks do
    test "#{inspect(task)}: --help and -h print its page, --version the version, and nothing runs" do
      name = Mix.Task.task_name(unquote(task))
      page = capture_io(fn -> Mix.Tasks.Help.run([name]) end)
      assert page =~ name
      assert page =~ "## Exit status"

      for argv <- [["--help"], ["-h"], ["--no-such", "--help"]] do
        assert capture_io(fn -> unquote(task).run(argv) end) == page
      end

      assert capture_io(fn -> unquote(task).run(["--version"]) end) == "tame #{:tame.version()}\n"
    end
  end

  describe "as a process of its own" do
    @describetag :tmp_dir

    # All is compiled already, by this very project.
    defp mix(argv), do: ["do", "app.config", "--no-compile", "--no-deps-check", "+"] ++ argv

    defp start(argv) do
      port =
        Port.open({:spawn_executable, System.find_executable("mix")}, [
          :binary,
          :exit_status,
          :stderr_to_stdout,
          args: mix(argv),
          cd: "../labs",
          env: [{~c"MIX_ENV", ~c"test"}]
        ])

      {:os_pid, os_pid} = Port.info(port, :os_pid)
      on_exit(fn -> System.cmd("kill", ["-KILL", "#{os_pid}"], stderr_to_stdout: true) end)
      {port, os_pid}
    end

    defp status(port, seen \\ "") do
      receive do
        {^port, {:data, data}} -> status(port, seen <> data)
        {^port, {:exit_status, status}} -> {status, seen}
      after
        60_000 -> flunk("does not end; printed: #{seen}")
      end
    end

    # By what Tame.Peer starts it with.
    defp peer?(os_pid) do
      with {:ok, words} <- File.read("/proc/#{os_pid}/cmdline"),
           do: words =~ "-start_epmd",
           else: (_ -> false)
    end

    for {signal, expected} <- [{"TERM", 143}, {"INT", 130}] do
      test "SIG#{signal} ends it with #{expected}, without a half-written file or a process left",
           %{
             tmp_dir: folder
           } do
        path = Path.join(folder, "out.json")
        File.write!(path, "old")

        {port, os_pid} =
          start(
            ~w(tame.contention --placements inline --durations 100ms --multipliers 1000 --json #{path})
          )

        # The flood has begun: there is a VM below it.
        begun? = fn -> Enum.any?(below(os_pid), &peer?/1) end
        assert Tame.Await.until(begun?, 60_000)
        others = below(os_pid)
        signal(os_pid, unquote(signal))

        assert {unquote(expected), _} = status(port)
        for other <- others, do: await_gone(other)
        assert File.ls!(folder) == ["out.json"]
        assert File.read!(path) == "old"
      end
    end

    test "an output to a full device is one line and a failure; standard output has the JSON alone",
         %{
           tmp_dir: folder
         } do
      run = fn redirect ->
        command =
          Enum.map_join(
            ["mix" | mix(~w(tame.latency --only beam_call --iterations 10 --json -))],
            " ",
            &"'#{&1}'"
          )

        System.cmd("sh", ["-c", "#{command} #{redirect}"], cd: "../labs", env: [{"MIX_ENV", "test"}])
      end

      err = Path.join(folder, "err")
      assert {"", 1} = run.(">/dev/full 2>'#{err}'")
      assert File.read!(err) =~ ~r/\*\* \(Mix\) cannot write "-": no space left on device\n\z/
      assert {json, 0} = run.("2>'#{err}'")
      assert {:ok, %{"tool" => "tame.latency"}} = :tame_json.decode(json)
      assert File.read!(err) =~ "beam_call"
      refute File.read!(err) =~ "\e"
    end

    @tag skip: System.find_executable("script") == nil && "there is no script(1), of util-linux"
    test "a terminal gets colours, unless it is dumb or NO_COLOR is set" do
      shown = fn env ->
        command = Enum.map_join(["mix" | mix(~w(tame.collapse --nope))], " ", &"'#{&1}'")

        {out, _} =
          System.cmd("script", ["-qec", command, "/dev/null"],
            cd: "../labs",
            env: [{"MIX_ENV", "test"}, {"TERM", "xterm"}, {"NO_COLOR", nil} | env]
          )

        assert out =~ "unknown switch --nope"
        out
      end

      [colours, dumb, none] =
        [[], [{"TERM", "dumb"}], [{"NO_COLOR", "1"}]]
        |> Task.async_stream(shown, timeout: 60_000)
        |> Enum.map(fn {:ok, out} -> out end)

      assert colours =~ "\e["
      refute dumb =~ "\e"
      refute none =~ "\e"
    end
  end
end
