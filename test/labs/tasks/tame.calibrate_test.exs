defmodule Mix.Tasks.Tame.CalibrateTest do
  # Not async: the project's own jobs are set by configuration.
  use ExUnit.Case, async: false
  import ExUnit.CaptureIO

  alias Mix.Tasks.Tame.Calibrate

  test "prints what placements cost and the rates of tame's jobs, and writes JSON" do
    path = Path.join(System.tmp_dir!(), "tame_calibrate_#{System.unique_integer([:positive])}")
    on_exit(fn -> File.rm(path) end)
    text = capture_io(fn -> Calibrate.run(["--json", path]) end)

    assert text =~ ~r/^hop +[\d.]+ +[\d.]+ +-$/m
    for way <- ~w(dirty_hop pool thread), do: assert(text =~ ~r/^#{way} +[\d.]+ +[\d.]+ +\d+$/m)
    assert text =~ ~r{^tame_exor:exor_nif/2 +\d+ +[\d.]+ +[\d,]+ +[\d,]+ +[\d,]+$}m
    assert text =~ ~r{^tame_spin:spin_nif/1 }m

    script = """
    const r = JSON.parse(require("fs").readFileSync(#{inspect(path)}, "utf8"));
    const j = r.jobs.find(j => j.nif === "exor_nif");
    console.log([r.tool, r.format, typeof r.system.otp, typeof r.costs_ns.pool, typeof r.break_even_us.thread,
      j.nif, j.arity, typeof j.units_per_ms, typeof j.slice_units, j.units_per_ms_spread.length, Array.isArray(r.warnings)].join(" "));
    """

    assert {"tame.calibrate 1 string number number exor_nif 2 number number 2 true\n", 0} =
             System.cmd("node", ["-e", script])
  end

  test "a project's job is called; one that fails is one line" do
    Application.put_env(:tame_labs, :calibrate, [{:tame_exor, :exor, [1, 2]}])
    on_exit(fn -> Application.delete_env(:tame_labs, :calibrate) end)
    error = assert_raise Mix.Error, fn -> Calibrate.run([]) end
    assert error.message =~ "config :tame_labs, calibrate: {:tame_exor, :exor, 2} failed"
    refute error.message =~ "\n"
  end

  for {argv, expected} <- [
        {~w(--jason x), "unknown switch --jason, expected one of: --json"},
        {~w(--json /proc/none/x.json), ~s(cannot write "/proc/none/x.json")},
        {~w(more), ~s(unexpected word "more")}
      ] do
    test "a wrong command line is one line: #{Enum.join(argv, " ")}" do
      error = assert_raise Mix.Error, fn -> Calibrate.run(unquote(argv)) end
      assert error.message =~ unquote(expected)
      refute error.message =~ "\n"
    end
  end
end
