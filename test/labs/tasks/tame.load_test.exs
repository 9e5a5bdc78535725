defmodule Mix.Tasks.Tame.LoadTest do
  # Not async: cells use all cores.
  use ExUnit.Case
  import ExUnit.CaptureIO
  import Tame.Test.{OsProcess, Refused, Schema}

  alias Mix.Tasks.Tame.Load

  @no_h2load if System.find_executable("h2load") == nil, do: "there is no h2load", else: false
  if @no_h2load, do: IO.puts("skip: load, closed loops: #{@no_h2load}")

  # Of a server that needs nothing.
  @short ~w(--server bare --placements inline,yielding --job 1ms --load 50 --hello-rate 100 --for 300ms)

  @tag :tmp_dir
  @tag skip: @no_h2load
  test "measures and writes JSON", %{tmp_dir: folder} do
    path = Path.join(folder, "out.json")
    text = capture_io(fn -> Load.run(@short ++ ["--json", path]) end)
    json = assert_schema(path)

    assert for(cell <- json["cells"], do: {cell["placement"], cell["status"]}) |> Enum.sort() ==
             [{"inline", "ok"}, {"yielding", "ok"}]

    assert Enum.all?(json["cells"], & &1["counts_agree?"])

    assert [%{"server" => "bare", "protocol" => "h1", "status" => "ok", "per_s" => per_s}] =
             json["capacity"]

    assert per_s > 0
    assert json["ceiling"]["answered_per_s"] > 0
    assert [sentence] = json["sentences"]
    assert text =~ sentence
    assert text =~ "tame_load, each time from the planned start"
    assert text =~ "yielding, 1 ms: from -500 ms on"
  end

  @tag :tmp_dir
  test "a server that dies is a row, and the exit status is that of a failure", %{tmp_dir: folder} do
    path = Path.join(folder, "out.json")

    argv =
      ~w(--only placements --server Tame.LoadServers.Crashing --placements inline --job 1ms --for 300ms)

    text =
      capture_io(fn ->
        assert {:shutdown, 1} = catch_exit(Load.run(argv ++ ["--json", path]))
      end)

    assert text =~ ~r/^inline, 1 ms  died after [\d.]+ (ms|s), signal 11$/m
    assert [%{"status" => "died", "reason" => "died after " <> _}] = assert_schema(path)["cells"]
  end

  @tag :tmp_dir
  test "a server that answers no hello was not measured: a row, and the exit status of a failure",
       %{
         tmp_dir: folder
       } do
    path = Path.join(folder, "out.json")
    parts = if @no_h2load, do: "placements", else: "capacity,placements"

    argv =
      ~w(--only #{parts} --server Tame.LoadServers.Once --placements inline --job 1ms --for 300ms)

    text =
      capture_io(fn ->
        assert {:shutdown, 1} = catch_exit(Load.run(argv ++ ["--json", path]))
      end)

    assert text =~ ~r/^inline, 1 ms  failed: none of \d+ requests for hello was answered$/m
    json = assert_schema(path)
    assert [%{"status" => "failed", "hello_answered" => 0}] = json["cells"]
    for row <- json["capacity"], do: assert(%{"status" => "failed", "answered" => 0} = row)
  end

  test "a server of the project that does not start is one line, before anything is measured" do
    assert_refused(
      Load,
      ~w(--only placements --server Tame.LoadServers.Unstartable),
      "the server Tame.LoadServers.Unstartable does not start: :no_licence"
    )
  end

  test "a port in use is one line" do
    {:ok, socket} = :gen_tcp.listen(0, ip: {127, 0, 0, 1})
    {:ok, port} = :inet.port(socket)
    argv = ~w(--only placements --server bare --port #{port})
    assert_refused(Load, argv, "--port #{port}: is in use, expected a free one")
  end

  test "no h2load and no cowboy are one line each, which says where to get it" do
    {path, cowboy} = {System.get_env("PATH"), System.get_env("TAME_COWBOY")}

    try do
      System.put_env("PATH", "/nowhere")
      System.put_env("TAME_COWBOY", "/nowhere")
      assert {:error, line} = Tame.Load.H2load.version()
      assert line =~ "install Debian's nghttp2-client"
      refute line =~ "\n"

      if :code.where_is_file(~c"cowboy.beam") == :non_existing and
           Path.wildcard("/usr/lib/rabbitmq/lib/*/plugins") == [] do
        assert {:error, line} = Tame.Load.Cowboy.find()
        assert line =~ ~r/there is no cowboy here: add|cowboy needs OTP's ssl/
        refute line =~ "\n"
      end
    after
      System.put_env("PATH", path)
      if cowboy, do: System.put_env("TAME_COWBOY", cowboy), else: System.delete_env("TAME_COWBOY")
    end
  end

  # Ctrl-C goes to all of the terminal's process group.
  for {name, signal, expected} <- [{"SIGTERM", "TERM ", 143}, {"Ctrl-C", "INT -", 130}] do
    test "#{name} ends it, its server and its clients with #{expected}" do
      ended_by(unquote(signal), unquote(expected))
    end
  end

  defp ended_by(signal, expected) do
    argv =
      ~w(do app.config --no-compile --no-deps-check + tame.load --only placements --server bare --placements inline --for 60s)

    port =
      Port.open({:spawn_executable, System.find_executable("mix")}, [
        :binary,
        :exit_status,
        :stderr_to_stdout,
        args: argv,
        cd: "../labs",
        env: [{~c"MIX_ENV", ~c"test"}]
      ])

    {:os_pid, os_pid} = Port.info(port, :os_pid)
    on_exit(fn -> System.cmd("kill", ["-KILL", "#{os_pid}"], stderr_to_stdout: true) end)
    client? = fn -> Enum.count(below(os_pid), &named?(&1, "tame_load")) == 2 end
    assert Tame.Await.until(client?, 60_000)
    others = below(os_pid)
    {"", 0} = System.cmd("/bin/sh", ["-c", "kill -#{signal}#{os_pid}"], stderr_to_stdout: true)
    assert_receive {^port, {:exit_status, ^expected}}, 60_000
    for other <- others, do: await_gone(other)
  end

  defp named?(os_pid, name), do: File.read("/proc/#{os_pid}/comm") == {:ok, name <> "\n"}

  test_refused(Load, [
    {~w(--server bare --placements inlin), "--placements inlin: expected some of nothing, inline"},
    {~w(--job 10), "--job 10: expected a whole number above 0 with us, ms or s"},
    {~w(--job 1ms,-5ms), "--job -5ms: expected"},
    {~w(--protocol h3), "--protocol h3: expected h1 or h2"},
    {~w(--server bare --protocol h2), "--protocol h2: the server bare speaks h1"},
    {~w(--server nginx), "--server nginx: expected bare, cowboy, cowboy_stream or a module"},
    {~w(--server Enum), "--server Enum: expected a module with the behaviour Tame.Load.Server"},
    {~w(--hello-rate 0), "--hello-rate 0: expected a whole number of 1 or more"},
    {~w(--server bare --only placements --hello-rate 50000),
     "--hello-rate 50000: expected at most 20000"},
    {~w(--load 0), "--load 0: expected a whole number of 1 or more"},
    {~w(--load 20000), "--load 20000: expected at most 10000 per cent"},
    {~w(--for 0s), "--for 0s: expected"},
    {~w(--for 999s), "--for 999s: expected 1 ms to 600 s"},
    {~w(--find-limit no), "--find-limit no: expected"},
    {~w(--port 99999), "--port 99999: expected a number up to 65535"},
    {~w(--rounds 0), "--rounds 0: expected a whole number of 1 or more"},
    {~w(--server bare --only speed), "--only speed: expected some of capacity, placements, limits"},
    {~w(--server bare --only placements --json /proc/none/x.json),
     ~s(cannot write "/proc/none/x.json")},
    {~w(more), ~s(unexpected word "more")}
  ])
end
