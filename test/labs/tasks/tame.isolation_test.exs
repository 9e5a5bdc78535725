defmodule Mix.Tasks.Tame.IsolationTest do
  # Not async: a module is isolated once in a VM.
  use ExUnit.Case, async: false

  import ExUnit.CaptureIO
  import Tame.Test.{Refused, Schema}

  alias Mix.Tasks.Tame.Isolation

  @tag :tmp_dir
  test "measures all three and writes JSON", %{tmp_dir: folder} do
    path = Path.join(folder, "out.json")
    few = ~w(--sizes 16,70000 --iterations 50 --crashes 1 --calls 1000)
    text = capture_io(fn -> Isolation.run(few ++ ["--json", path]) end)
    json = assert_schema(path)

    assert for(row <- json["calls"], do: {row["bytes"], row["status"]}) |> Enum.uniq() ==
             [{16, "ok"}, {70_000, "ok"}]

    assert %{"status" => "ok", "crashes" => [%{"error" => "sigsegv"}]} = json["crashes"]
    assert %{"status" => "ok", "rows" => [_ | _]} = json["memory"]
    assert text =~ "isolated"
  end

  test_refused(Isolation, [
    {~w(--sizes 16,x), "--sizes x: expected whole numbers of 0 or more, in bytes"},
    {~w(--sizes -1), "--sizes -1: expected whole numbers of 0 or more, in bytes"},
    {~w(--sizes 16,999999999999999), "--sizes 999999999999999: does not fit in memory"},
    {~w(--iterations 0), "--iterations 0: expected a whole number of 1 or more"},
    {~w(--crashes none), "--crashes none: expected a whole number of 1 or more"},
    {~w(--json /proc/none/x.json), ~s(cannot write "/proc/none/x.json")},
    {~w(--bytes 16), "unknown switch --bytes, expected one of: --quick, --sizes"},
    {~w(more), ~s(unexpected word "more")}
  ])
end
