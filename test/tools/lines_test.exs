defmodule Tame.LinesTest do
  # tools/lines: each line of Erlang over 100 columns is named with its length in characters.
  use ExUnit.Case, async: true

  @moduletag :tmp_dir

  defp check(folder),
    do: System.cmd(Path.join(:tame.source_dir(), "tools/lines"), [folder], stderr_to_stdout: true)

  test "100 columns pass, of any character, and other files are not read", %{tmp_dir: folder} do
    lines = for character <- ["x", "é", "─", "😀"], do: String.duplicate(character, 100) <> "\n"
    File.write!(Path.join(folder, "a.erl"), lines)
    File.write!(Path.join(folder, "a.ex"), String.duplicate("x", 101))
    assert check(folder) == {"", 0}
  end

  test "a longer line is named, in every folder below", %{tmp_dir: folder} do
    File.mkdir_p!(Path.join(folder, "b"))
    File.write!(Path.join(folder, "a.erl"), "-module(a).\n" <> String.duplicate("─", 101) <> "\n")
    File.write!(Path.join(folder, "b/c.erl"), String.duplicate("x", 120))
    assert {"#{folder}/a.erl:2: 101\n#{folder}/b/c.erl:1: 120\n", 1} == check(folder)
  end

  test "a folder that is not there" do
    assert check("nowhere") == {"tools/lines: nowhere is no folder\n", 2}
  end
end
