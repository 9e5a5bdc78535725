defmodule Mix.Tasks.Tame.DoctorTest do
  use ExUnit.Case, async: true
  import ExUnit.CaptureIO
  import Tame.Test.{Refused, Schema}

  alias Mix.Tasks.Tame.Doctor

  @tag :tmp_dir
  test "says what is here, and writes JSON", %{tmp_dir: folder} do
    path = Path.join(folder, "out.json")
    text = capture_io(fn -> Doctor.run(["--json", path]) end)
    otp = :erlang.system_info(:otp_release)
    assert text =~ ~r"^ok +natives +built for Erlang/OTP #{otp} \(ERTS "m
    assert text =~ ~r/^ok +application +tame starts$/m
    assert text =~ ~r/^ok +flags +\d+ schedulers, .*busy wait: sbwt /m
    json = assert_schema(path)
    assert "natives" in Enum.map(json["findings"], & &1["id"])
  end

  test_refused(Doctor, [
    {~w(--jason x), "unknown switch --jason, expected one of: --json"},
    {~w(--json /proc/none/x.json), ~s(cannot write "/proc/none/x.json")},
    {~w(more), ~s(unexpected word "more")}
  ])
end
