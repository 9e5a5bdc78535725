defmodule Mix.Tasks.Tame.ReportTest do
  # PATH and the shell belong to the whole VM.
  use ExUnit.Case, async: false

  import ExUnit.CaptureIO

  alias Tame.ReportFixture, as: Fixture

  @moduletag :tmp_dir

  setup %{tmp_dir: folder} do
    path = Path.join(folder, "before.json")
    File.write!(path, Fixture.json())
    %{json: path, page: Path.join(folder, "page.html")}
  end

  defp run(argv), do: capture_io(fn -> Mix.Tasks.Tame.Report.run(argv) end)

  defp refused(argv) do
    capture_io(fn ->
      error = assert_raise(Mix.Error, fn -> Mix.Tasks.Tame.Report.run(argv) end)
      send(self(), {:refused, error.message})
    end)

    assert_received {:refused, message}
    refute message =~ "\n"
    message
  end

  test "runs a lab, and writes the page and its figures beside it", %{page: page} do
    said = run(~w(--only latency --bytes 16 --iterations 20 --output #{page}))
    assert said =~ "Latency in µs of 20 echoes of a term of 16 bytes"
    assert said =~ "The report is in #{page}, its figures in #{Path.rootname(page)}.json"

    assert {:ok, %{labs: %{"latency" => %{payload_bytes: 16}} = labs}} =
             Tame.Report.Saved.read(Path.rootname(page) <> ".json", Fixture.labs())

    assert map_size(labs) == 1
    html = File.read!(page)
    assert html =~ ~s(<h2 id="latency">)
    refute html =~ ~s(<h2 id="reductions">)
  end

  test "makes the page of saved figures, beside others", %{json: json, page: page} do
    said = run(["--from", json, "--compare", json, "--output", page, "--only", "latency,audit"])
    assert said =~ "The report is in #{page}"
    html = File.read!(page)
    for id <- ~w(compare latency audit), do: assert(html =~ ~s(<h2 id="#{id}">))
    refute html =~ ~s(<h2 id="contention">)
    assert File.read!(Path.rootname(page) <> ".json") == File.read!(json)
  end

  test "beside standard output or a device no figures are written", %{json: json, page: page} do
    File.ln_s!("/dev/null", page)
    capture_io(:stderr, fn -> send(self(), {:out, run(["--from", json, "--output", "-"])}) end)
    assert_received {:out, "<!DOCTYPE html>" <> html}
    refute html =~ "Figures: "
    refute File.exists?("-.json")

    assert run(["--from", json, "--output", page]) == "\nThe report is in #{page}\n"
    assert File.ls!(Path.dirname(page)) |> Enum.sort() == ["before.json", "page.html"]
  end

  test "opens the page by the program that the desktop has", %{
    json: json,
    page: page,
    tmp_dir: folder
  } do
    path = System.get_env("PATH")
    on_exit(fn -> System.put_env("PATH", path) end)
    opened = Path.join(folder, "opened")
    System.cmd("mkfifo", [opened])
    opener = Path.join(folder, "xdg-open")
    File.write!(opener, "#!/bin/sh\necho \"$1\" > #{opened}\n")
    File.chmod!(opener, 0o755)

    System.put_env("PATH", "#{folder}:#{path}")
    run(["--from", json, "--open", "--output", page])
    # A fifo gives what is written whenever that is.
    assert {said, 0} = System.cmd("timeout", ["20", "cat", opened])
    assert String.trim(said) == Path.expand(page)

    System.put_env("PATH", folder)
    File.rm!(opener)
    assert refused(["--from", json, "--open", "--output", page]) =~ "--open: there is no xdg-open"
  end

  test "refuses what it cannot do before it measures, and writes nothing", %{
    json: json,
    page: page,
    tmp_dir: folder
  } do
    nothing = Path.join(folder, "none.json")
    File.write!(Path.join(folder, "old.json"), "{")
    only_audit = Path.join(folder, "audit.json")
    audit = update_in(Fixture.decoded()["labs"], &Map.take(&1, ["audit"]))
    File.write!(only_audit, Fixture.encoded(audit))
    linked = Path.join(folder, "linked.html")
    File.ln_s!("linked.json", linked)

    for {argv, why} <- [
          {~w(--only latency,speed),
           ~s(unknown lab "speed", expected some of: latency, reductions, contention, load, http, io, isolation, audit, digest)},
          {["--compare", nothing], "cannot read #{nothing}: no such file"},
          {["--from", Path.join(folder, "old.json")],
           "old.json: expected the JSON that mix tame.report writes"},
          {[
             "--from",
             json,
             "--only",
             "latency",
             "--compare",
             json,
             "--output",
             Path.join(folder, "before.html")
           ], "--compare #{json}: would be replaced, expected another --output"},
          {["--from", only_audit, "--only", "latency"],
           "--only: #{only_audit} has audit and none of those"},
          {["--from", json, "--output", linked], ~s(another output, "#{linked}", is the same file)},
          {["--from", json, "--open", "--output", "-"],
           "--open and --output -: expected a file, which a browser can open"},
          {["--from", json, "--job-bytes", "5"], "--from and --job-bytes: expected one of them"},
          {["--output", "x.json"], "--output x.json: expected a page such as x.html"},
          {~w(--job-bytes 1000000000000000),
           "--job-bytes 1000000000000000: does not fit in memory"},
          {~w(--bytes many), "--bytes many: expected a whole number"}
        ] do
      argv = if "--output" in argv, do: argv, else: argv ++ ["--output", page]
      assert refused(argv) =~ why
    end

    refute File.exists?(page)
  end
end
