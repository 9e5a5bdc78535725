defmodule Mix.Tasks.Tame.CalibrateTest do
  # Not async: the project's own jobs are set by configuration.
  use ExUnit.Case, async: false
  import ExUnit.CaptureIO
  import Tame.Test.{Refused, Schema}

  alias Mix.Tasks.Tame.Calibrate

  test "prints what placements cost and the rates of tame's jobs, and writes JSON" do
    path = Path.join(System.tmp_dir!(), "tame_calibrate_#{System.unique_integer([:positive])}")
    on_exit(fn -> File.rm(path) end)
    text = capture_io(fn -> Calibrate.run(["--json", path]) end)

    assert text =~ ~r/^hop +[\d.]+ +[\d.]+ +-$/m
    for way <- ~w(dirty_hop pool thread), do: assert(text =~ ~r/^#{way} +[\d.]+ +[\d.]+ +\d+$/m)
    assert text =~ ~r{^tame_exor:exor_nif/2 +\d+ +[\d.]+ +[\d,]+ +[\d,]+ +[\d,]+$}m
    assert text =~ ~r{^tame_spin:spin_nif/1 }m

    json = assert_schema(path)
    assert %{"arity" => 2} = Enum.find(json["jobs"], &(&1["nif"] == "exor_nif"))
  end

  test "a project's job is called; one that fails is one line" do
    Application.put_env(:tame_labs, :calibrate, [{:tame_exor, :exor, [1, 2]}])
    on_exit(fn -> Application.delete_env(:tame_labs, :calibrate) end)
    error = assert_raise Mix.Error, fn -> Calibrate.run([]) end
    assert error.message =~ "config :tame_labs, calibrate: {:tame_exor, :exor, 2} failed"
    refute error.message =~ "\n"
  end

  test_refused(Calibrate, [
    {~w(--jason x), "unknown switch --jason, expected one of: --json"},
    {~w(--json /proc/none/x.json), ~s(cannot write "/proc/none/x.json")},
    {~w(more), ~s(unexpected word "more")}
  ])
end
