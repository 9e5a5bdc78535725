defmodule Tame.CrossTest do
  # tools/cross, in a tree of its own, with a script in the compiler's place: it refuses what says "broken".
  use ExUnit.Case, async: true

  @moduletag :tmp_dir

  @compiler """
  #!/bin/sh
  for argument; do
      case $argument in
      *.c) if grep broken "$argument" >&2; then exit 1; fi ;;
      esac
  done
  """

  defp tree!(dir) do
    tool = File.read!(Path.join(:tame.source_dir(), "tools/cross"))
    [_, version] = Regex.run(~r/^version=(.*)$/m, tool)

    write!(dir, "tools/cross", tool)
    write!(dir, "cross/#{version}/ziglang/zig", @compiler)
    for target <- ~w(good bad), do: write!(dir, "cross/#{version}/#{target}.flags", "-D#{target}")
    write!(dir, "fine.c", "")
    write!(dir, "other.c", "broken\n")
  end

  defp write!(dir, name, text) do
    path = Path.join(dir, name)
    File.mkdir_p!(Path.dirname(path))
    File.write!(path, text)
    File.chmod!(path, 0o755)
  end

  defp cross(dir, args, env \\ []) do
    env = [{"TAME_CROSS_DIR", Path.join(dir, "cross")} | env]

    System.cmd(Path.join(dir, "tools/cross"), args, cd: dir, env: env, stderr_to_stdout: true)
  end

  test "a file that compiles makes what make asks for", %{tmp_dir: dir} do
    tree!(dir)
    assert {"", 0} = cross(dir, ~w(cc good -c -o fine.o fine.c))
    assert File.exists?(Path.join(dir, "fine.o"))
  end

  test "one that does not is named, with its system and the compiler's words", %{tmp_dir: dir} do
    tree!(dir)
    assert {out, 1} = cross(dir, ~w(cc good -c -o other.o other.c))
    assert out =~ ~r/^broken$/m
    assert out =~ "tools/cross: other.c for good: see above"
    refute File.exists?(Path.join(dir, "other.o"))
  end

  test "of 32 bits a file must begin with our own error", %{tmp_dir: dir} do
    tree!(dir)
    tool = Path.join(dir, "tools/cross")
    [_, sentence] = Regex.run(~r/^sentence='(.*)'$/m, File.read!(tool))
    File.write!(tool, File.read!(tool) |> String.replace(~r/^narrow=.*$/m, "narrow=bad"))

    for {text, status} <- [
          {"error: broken\nerror: #{sentence}", 1},
          {"broken error: #{sentence}\nerror: broken", 0},
          {"", 1}
        ] do
      write!(dir, "narrow.c", text)
      assert {_, ^status} = cross(dir, ~w(cc bad -c -o narrow.o narrow.c))
    end
  end

  test "where the compiler cannot be had, the check says so and fails nothing", %{tmp_dir: dir} do
    tree!(dir)

    env = [
      {"TAME_CROSS_DIR", Path.join(dir, "empty")},
      {"PIP_NO_INDEX", "1"},
      {"PIP_FIND_LINKS", ""}
    ]

    assert {out, 0} = cross(dir, [], env)
    assert out |> String.split("\n", trim: true) |> List.last() =~ ~r/^other systems: not run: /
  end
end
