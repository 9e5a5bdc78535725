defmodule Mix.Tasks.Tame.WatchTest do
  # Not async: nodes are watched whose schedulers are held.
  use ExUnit.Case
  import Tame.Test.Schema
  import Tame.Test.OsProcess

  alias Mix.Tasks.Tame.Watch
  alias Tame.{Await, WatchNode}
  alias Tame.Latency.Distribution
  alias Tame.Test.MixTask

  # A node needs an epmd, which comes and goes with the distribution of this VM.
  setup do
    {:ok, _} = Distribution.join()
    on_exit(fn -> Distribution.leave() end)
    :ok
  end

  # {standard output, standard error, exit status, JSON}
  defp watch(watched, more, schema? \\ false) do
    folder = Path.join(System.tmp_dir!(), "tame_watch_#{System.unique_integer([:positive])}")
    path = Path.join(folder, "watch.json")
    File.mkdir_p!(folder)

    argv = ["--node", "#{watched.node}", "--cookie", WatchNode.cookie(), "--json", path] ++ more
    {out, err, status} = MixTask.run(Watch, argv)
    json = if schema?, do: assert_schema(path), else: elem(:tame_json.decode(File.read!(path)), 1)
    File.rm_rf!(folder)
    {out, err, status, json}
  end

  defp clean!(watched) do
    assert Await.until(fn -> WatchNode.clean?(watched) end, 10_000)
  end

  test "an idle node: nobody holds anything, and nothing is left there" do
    watched = WatchNode.start()
    {out, "", 0, json} = watch(watched, ~w(--for 2s), true)
    clean!(watched)

    assert %{"tool" => "tame.watch", "format" => 1, "ended" => :null} = json
    assert [second | _] = json["seconds"]

    assert second["holders"] == []
    assert second["neighbour"]["wakes"] > 0
    # The cookie is nobody else's to read.
    refute json["system"]["command"] =~ WatchNode.cookie()
    assert out =~ "#{watched.node}  OTP #{:erlang.system_info(:otp_release)}"
    WatchNode.stop(watched)
  end

  test "who holds dirty threads, by the NIF, and for how long" do
    watched = WatchNode.start()
    WatchNode.work(watched, :dirty, 3)
    {out, "", 0, json} = watch(watched, ~w(--for 4s))
    clean!(watched)

    holders = Enum.flat_map(json["seconds"], & &1["holders"])
    assert [%{"process" => "<0." <> _} | _] = holders
    assert Enum.uniq(Enum.map(holders, & &1["function"])) == ["tame_spin:spin_dirty_nif/1"]
    assert Enum.max(Enum.map(holders, & &1["for_ms"])) > 100
    assert Enum.any?(json["seconds"], &(&1["dirty"]["cpu"]["busy"] > 0))
    assert Enum.any?(json["seconds"], &((&1["utilisation"]["dirty_cpu"] || 0) > 20))
    assert out =~ "tame_spin:spin_dirty_nif/1"
    WatchNode.stop(watched)
  end

  test "long slices by the NIF that the process was in, and neighbours that wake late" do
    watched = WatchNode.start()
    WatchNode.work(watched, :cuts, 1)
    {out, "", 0, json} = watch(watched, ~w(--for 4s))
    clean!(watched)

    rows = Enum.flat_map(json["seconds"], & &1["long_schedules"])
    assert [_ | _] = by = Enum.filter(rows, &(&1["nifs"] == ["tame_thousand_cuts:cut/1"]))
    assert Enum.any?(by, &(&1["from"] == "Tame.WatchNode.cuts/0"))
    assert Enum.max(Enum.map(by, & &1["longest_ms"])) > 30
    assert Enum.max(Enum.map(json["seconds"], & &1["neighbour"]["max_us"])) > 20_000
    assert out =~ ~r/^tame_thousand_cuts:cut\/1 +Tame.WatchNode.cuts\/0/m
    WatchNode.stop(watched)
  end

  test "the slice before a dirty NIF is not that one's" do
    watched = WatchNode.start()
    WatchNode.work(watched, :before_dirty, 1)
    {_, "", 0, json} = watch(watched, ~w(--for 4s))
    clean!(watched)

    nifs = for second <- json["seconds"], row <- second["long_schedules"], do: row["nifs"]
    assert ["tame_thousand_cuts:cut/1"] in nifs
    refute Enum.any?(nifs, &Enum.any?(&1, fn nif -> nif =~ "spin_dirty" end))
    WatchNode.stop(watched)
  end

  test "who holds a scheduler while it lasts" do
    watched = WatchNode.start()
    [pid] = WatchNode.work(watched, :long_cuts, 1)
    {out, "", 0, json} = watch(watched, ~w(--for 8s))
    clean!(watched)

    # As it is written there: <9001.90.0> here is <0.90.0>.
    there = String.replace(inspect(pid), ~r/^#PID<\d+/, "<0")
    held = for %{"held" => %{} = held} <- json["seconds"], do: held
    assert [_ | _] = held
    assert Enum.all?(held, &(&1["process"] == there))
    assert out =~ "#{there} has not answered for "
    WatchNode.stop(watched)
  end

  test "the slices of that number of calls of a function, and no more" do
    watched = WatchNode.start()
    WatchNode.work(watched, :yielding, 2)
    {out, "", 0, json} = watch(watched, ~w(--for 3s --slices tame_spin:spin_yielding/1 --calls 7))
    clean!(watched)

    assert %{"function" => "tame_spin:spin_yielding/1", "state" => "done", "calls" => calls} =
             json["calls"]

    assert length(calls) == 7

    for call <- calls do
      assert call["elapsed_us"] > 500
      assert call["normal"]["count"] > 1
      assert call["normal"]["longest_us"] <= call["elapsed_us"]
      assert call["dirty"]["count"] == 0
    end

    assert out =~ "calls traced: 7, "
    assert {_, false} = WatchNode.call(watched, :erlang, :trace_info, [traced(), :all])

    for pid <- WatchNode.call(watched, :erlang, :processes, []) do
      assert WatchNode.call(watched, :erlang, :trace_info, [pid, :tracer]) in [
               {:tracer, []},
               :undefined
             ]
    end

    WatchNode.stop(watched)
  end

  defp traced, do: {:tame_spin, :spin_yielding, 1}

  test "a system monitor that somebody has is left there" do
    watched = WatchNode.start()
    WatchNode.work(watched, :monitor, 1)

    monitor = fn -> WatchNode.call(watched, :erlang, :system_monitor, []) end
    assert Await.until(fn -> monitor.() != :undefined end)
    before = monitor.()
    WatchNode.work(watched, :cuts, 1)
    {out, "", 0, json} = watch(watched, ~w(--for 2s))
    assert monitor.() == before

    # From OTP 28 on both have one.
    if List.to_integer(:erlang.system_info(:otp_release)) < 28 do
      assert Enum.all?(json["seconds"], &(&1["monitor"] == "somebody"))
      assert Enum.all?(json["seconds"], &(&1["long_schedules"] == []))
      assert out =~ "long slices are not seen: somebody has the system monitor"
    end

    WatchNode.stop(watched)
  end

  describe "goes from the node" do
    @watches ~S"""
    [node] = System.argv()
    each = fn _, _, _ -> IO.puts("second") end
    {:ok, _} =
      Tame.Watch.run(%{
        node: String.to_atom(node), cookie: "s3cret", for_ms: 60_000,
        slices: {{:tame_spin, :spin_yielding, 1}, 1000}, each: each
      })
    """

    test "when the watcher gets SIGKILL" do
      watched = WatchNode.start()
      WatchNode.work(watched, :yielding, 2)
      WatchNode.work(watched, :dirty, 2)
      code = String.replace(@watches, "System.argv()", inspect(["#{watched.node}"]))
      vm = start_vm(code, %{})
      {:os_pid, os_pid} = Port.info(vm, :os_pid)
      assert_receive {^vm, {:data, {:eol, "second"}}}, 60_000
      refute WatchNode.clean?(watched)
      signal(os_pid, "KILL")
      clean!(watched)
      # And it was the watch that ended, not the node.
      assert WatchNode.call(watched, :erlang, :node, []) == watched.node
      WatchNode.stop(watched)
    end

    test "when a part of it fails there, which is said" do
      watched = WatchNode.start()
      task = Task.async(fn -> watch(watched, ~w(--for 30s)) end)
      keeper = fn -> WatchNode.call(watched, :erlang, :whereis, [:tame_watch]) end
      assert Await.until(fn -> keeper.() != :undefined end, 20_000)

      assert Await.until(fn ->
               {:links, [one | _]} =
                 WatchNode.call(watched, :erlang, :process_info, [keeper.(), :links])

               WatchNode.call(watched, :erlang, :exit, [one, :kill])
             end)

      {_, err, 1, json} = Task.await(task, 600_000)
      assert err =~ "the watch failed there"
      assert json["ended"] =~ "killed"
      clean!(watched)
      WatchNode.stop(watched)
    end

    test "and when the node goes, what was seen is kept" do
      watched = WatchNode.start()
      task = Task.async(fn -> watch(watched, ~w(--for 30s)) end)

      assert Await.until(
               fn -> WatchNode.call(watched, :erlang, :whereis, [:tame_watch]) != :undefined end,
               20_000
             )

      WatchNode.stop(watched)
      {_, err, 1, json} = Task.await(task, 600_000)
      assert err =~ "#{watched.node}: the connection was lost"
      assert json["ended"] == "the connection was lost"
    end
  end

  describe "is refused in one line:" do
    defp refused(argv) do
      error = assert_raise Mix.Error, fn -> Watch.run(argv) end
      refute error.message =~ "\n"
      error.message
    end

    test "where the module is already" do
      watched = WatchNode.start()
      argv = ["--node", "#{watched.node}", "--cookie", WatchNode.cookie(), "--for", "1s"]
      {_, beam, file} = :code.get_object_code(:tame_watch)
      {:module, _} = WatchNode.call(watched, :code, :load_binary, [:tame_watch, file, beam])

      assert refused(argv) =~
               "has a module tame_watch already, which nobody uses; remove it there with code:delete(tame_watch)"

      [pid] = WatchNode.work(watched, :idle, 1)
      true = WatchNode.call(watched, :erlang, :register, [:tame_watch, pid])
      assert refused(argv) =~ "somebody watches it already"
      # It is theirs.
      assert WatchNode.call(watched, :erlang, :module_loaded, [:tame_watch])
      WatchNode.stop(watched)
    end

    test "a cookie that is another, a function that is not there" do
      watched = WatchNode.start()

      assert refused(["--node", "#{watched.node}", "--cookie", "other"]) =~
               "#{watched.node}: it refuses the connection: expected its cookie by --cookie"

      for function <- ~w(lists:nope/1 no_such_module:nope/1) do
        assert refused(
                 ["--node", "#{watched.node}", "--cookie", WatchNode.cookie()] ++
                   ["--slices", function]
               ) == "--slices #{function}: there is no such function on #{watched.node}"
      end

      WatchNode.stop(watched)
    end

    test "a node that is not there" do
      assert refused(~w(--node nobody@127.0.0.1)) =~
               "nobody@127.0.0.1: there is no node nobody on 127.0.0.1, where epmd knows "

      assert refused(~w(--node nobody@host.invalid)) =~ "the host host.invalid is not known"
    end

    for {argv, expected} <- [
          {[], "no node to watch, expected: mix tame.watch --node name@host"},
          {~w(--node app), "--node app: expected a node's name, as name@host"},
          {~w(--node a@b --for 3), "--for 3: expected a whole number"},
          {~w(--node a@b --for 10ms), "--for 10ms: expected 1s or more"},
          {~w(--node a@b --calls 3), "--calls goes with --slices"},
          {~w(--node a@b --slices lists), "--slices lists: expected a function as module"},
          {~w(--node a@b --slices lists:seq/2 --calls 0), "--calls 0: expected a whole number"},
          {~w(--node a@b --slices lists:seq/2 --calls 20000), "expected at most 10000"},
          {~w(--node a@b --json /proc/none/x.json), ~s(cannot write "/proc/none/x.json")},
          {~w(--nope), "unknown switch --nope, expected one of: --node"}
        ] do
      test Enum.join(argv, " ") do
        assert refused(unquote(argv)) =~ unquote(expected)
      end
    end
  end
end
