defmodule Mix.Tasks.Tame.CollapseTest do
  use ExUnit.Case, async: true
  import Tame.Test.{Refused, Schema}

  alias Mix.Tasks.Tame.Collapse

  @tag :tmp_dir
  test "measures with and without the flag that wakes schedulers, and writes JSON", %{
    tmp_dir: folder
  } do
    path = Path.join(folder, "out.json")
    assert {:ok, rows} = Tame.Collapse.measure([], 1)
    system = Tame.SystemInfo.collect("mix tame.collapse")
    :ok = Tame.Output.write(path, Tame.Collapse.json(rows, system))

    assert [%{"flags" => [], "status" => "ok"}, %{"flags" => ["+sfwi", "100"]}] =
             assert_schema(path)["collapse"]
  end

  test_refused(Collapse, [
    {["--erl", "+S x"], ~s(the peer node does not start with "+S x": bad amount of schedulers x)},
    {["--erl", ~s(+S "2)], "--erl +S \"2: expected words as a shell reads them: "},
    {~w(--json /proc/none/x.json), ~s(cannot write "/proc/none/x.json")},
    {~w(--quick), "unknown switch --quick, expected one of: --erl, --json"},
    {~w(more), ~s(unexpected word "more")}
  ])
end
