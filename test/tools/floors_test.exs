defmodule Tame.FloorsTest do
  # tools/floors: each wrong arrow is named with its file and line.
  use ExUnit.Case, async: true

  @moduletag :tmp_dir

  defp check(folder, files) do
    for {name, text} <- files do
      path = Path.join(folder, name)
      File.mkdir_p!(Path.dirname(path))
      File.write!(path, text)
    end

    tool = Path.join(:tame.source_dir(), "tools/floors")
    System.cmd(tool, [folder], stderr_to_stdout: true)
  end

  @floors {"FLOORS", "# from the ground up\nlow low/\nhigh high/ up_*()\n"}

  test "downward arrows pass, and the floors are printed from the roof down", %{tmp_dir: folder} do
    {text, status} =
      check(folder, [
        @floors,
        {"low/a.h", "/* up_comment() */\n"},
        {"low/a.c", "#include \"low/a.h\"\nconst char *name = \"up_text\";\n"},
        {"high/b.c", "#include \"low/a.h\"\nint b(void) { return up_first(); }\n"}
      ])

    assert text == "#{folder}\n  high     high/b\n  low      low/a\n"
    assert status == 0
  end

  test "an include that goes up", %{tmp_dir: folder} do
    {text, 1} =
      check(folder, [@floors, {"low/a.c", "\n#include \"../high/b.h\"\n"}, {"high/b.h", ""}])

    assert text =~ "#{folder}/low/a.c:2: low/a.c -> high/b.h goes up, from low to high\n"
  end

  test "a function of a floor above, wherever it is declared", %{tmp_dir: folder} do
    {text, 1} =
      check(folder, [
        @floors,
        {"low/a.c", "/* one\n */\nint a(struct up_tag *x) { return up_first(); }\n"},
        {"high/b.h", ""}
      ])

    assert text =~ "#{folder}/low/a.c:3: low/a.c -> up_first() goes up, from low to high\n"
    refute text =~ "up_tag"
  end

  test "a declaration where no header is", %{tmp_dir: folder} do
    {text, 1} = check(folder, [{"a.c", "extern int b;\n"}])
    assert text =~ "#{folder}/a.c:1: declares what is not its own (extern): include the header\n"
  end

  test "a circle, within a floor or without floors", %{tmp_dir: folder} do
    {text, 1} =
      check(folder, [{"a.c", "#include \"b.h\"\n"}, {"a.h", ""}, {"b.h", "\n#include \"a.h\"\n"}])

    assert text =~ ~r"^a circle: \S+/[ab]\.\w:\d: -> \S+/[ab]\.\w:\d: -> #{folder}/[ab]$"m
    assert text =~ "a.c:1"
    assert text =~ "b.h:2"
  end

  test "a file on no floor, an entry that nothing stands for", %{tmp_dir: folder} do
    {text, 1} = check(folder, [{"FLOORS", "low low/\n"}, {"a.c", ""}])
    assert text =~ "#{folder}/a.c:1: stands on 0 floors of #{folder}/FLOORS\n"
    assert text =~ "#{folder}/FLOORS:1: there is no low/\n"
  end

  test "a folder that is not there" do
    tool = Path.join(:tame.source_dir(), "tools/floors")

    assert {"tools/floors: nowhere is no folder\n", 2} =
             System.cmd(tool, ["nowhere"], stderr_to_stdout: true)
  end
end
