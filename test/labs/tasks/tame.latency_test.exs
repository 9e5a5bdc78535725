defmodule Mix.Tasks.Tame.LatencyTest do
  use ExUnit.Case, async: true
  import ExUnit.CaptureIO
  import Tame.Test.{Refused, Schema}

  alias Mix.Tasks.Tame.Latency
  alias Tame.Test.CLibrary

  @quick ~w(--only beam_call,nif_normal --iterations 100 --bytes 16)

  setup do
    folder = CLibrary.tmp_dir!()
    %{folder: folder}
  end

  test "measures the methods asked for and prints them fastest first" do
    text = capture_io(fn -> Latency.run(@quick) end)
    assert text =~ ~r/^command +mix tame.latency --only beam_call,nif_normal --iterations 100/m
    assert text =~ ~r/^beam_call .*\n?nif_normal|^nif_normal .*\n?beam_call/m
    refute text =~ "driver_call"
  end

  test "writes JSON with the fields of the format", %{folder: folder} do
    path = Path.join(folder, "out.json")
    capture_io(fn -> Latency.run(@quick ++ ["--json", path]) end)

    json = assert_schema(path)
    assert %{"payload_bytes" => 16, "iterations" => 100, "methods" => [_, method]} = json
    assert %{"id" => "nif_normal", "status" => "ok", "reason" => :null, "count" => 100} = method
    assert is_number(method["p50_us"]) and is_number(method["max_us"])
  end

  test "writes a percentile distribution for each method", %{folder: folder} do
    capture_io(fn -> Latency.run(@quick ++ ["--hgrm", Path.join(folder, "new")]) end)
    assert File.ls!(Path.join(folder, "new")) |> Enum.sort() == ~w(beam_call.hgrm nif_normal.hgrm)
    assert File.read!(Path.join(folder, "new/nif_normal.hgrm")) =~ "Total count    =          100]"
  end

  test "makes the folder of --hgrm, as README writes it, with those above it", %{folder: folder} do
    for path <- ["percentiles/", "not/there/percentiles/"] do
      there = Path.join(folder, path)
      capture_io(fn -> Latency.run(@quick ++ ["--hgrm", there <> "/"]) end)
      assert Enum.sort(File.ls!(there)) == ~w(beam_call.hgrm nif_normal.hgrm)
    end
  end

  test_refused(Latency, [
    {~w(--only nif_normal,nope), ~s(unknown method "nope", expected some of: beam_call, )},
    {~w(--iteration 5), "unknown switch --iteration, expected one of: --bytes, "},
    {~w(--iterations 0), "--iterations 0: expected a whole number of 1 or more"},
    {~w(--iterations -5), "--iterations -5: expected a whole number of 1 or more"},
    {~w(--rounds ten), "--rounds ten: expected a whole number of 1 or more"},
    {~w(--bytes 99999999999999), "--bytes 99999999999999: does not fit in memory"},
    {["--term", "{:a"], "--term \"{:a\": expected an Elixir expression"},
    {~w(--term 1 --bytes 1), "--bytes and --term are two payloads"},
    {~w(--json /proc/none/x.json), ~s(cannot write "/proc/none/x.json")},
    {~w(--hgrm /proc/none), ~s(cannot write "/proc/none": )},
    {~w(--hgrm /proc/none/of/these/), ~s(cannot write "/proc/none/of/these/": )},
    {~w(--hgrm mix.exs/percentiles/), ~s(cannot write "mix.exs/percentiles/": not a directory)},
    {~w(--json nowhere --hgrm ./nowhere), ~s(cannot write "./nowhere": another output, "nowhere")},
    {~w(--json nowhere/nif_normal.hgrm --hgrm ./nowhere),
     ~s(another output, "nowhere/nif_normal.hgrm")},
    {~w(more), ~s(unexpected word "more")}
  ])

  test "a method that fails midway gives exit status 1 and the others' rows" do
    Application.put_env(:tame_labs, :latency_methods, [Tame.FakeMethods.Raising])
    on_exit(fn -> Application.delete_env(:tame_labs, :latency_methods) end)

    text =
      capture_io(fn ->
        assert catch_exit(Latency.run(~w(--only raising,beam_call --iterations 1000))) ==
                 {:shutdown, 1}
      end)

    assert text =~ ~r/^raising  failed: the other side is gone$/m
    assert text =~ ~r/^beam_call +–/m
  end
end
