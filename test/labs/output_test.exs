defmodule Tame.OutputTest do
  use ExUnit.Case, async: true

  alias Tame.Output

  setup do
    folder = Path.join(System.tmp_dir!(), "tame_output_#{System.unique_integer([:positive])}")
    File.mkdir_p!(folder)
    on_exit(fn -> File.rm_rf!(folder) end)
    %{folder: folder}
  end

  test "writes the whole file and leaves nothing beside it", %{folder: folder} do
    path = Path.join(folder, "new/sub/file.json")
    assert Output.check(path) == :ok
    refute File.exists?(path)
    assert Output.write(path, ["a", ?b]) == :ok
    assert File.read!(path) == "ab"
    assert File.ls!(Path.dirname(path)) == ["file.json"]
  end

  test "replaces an older file in one step", %{folder: folder} do
    path = Path.join(folder, "file")
    File.write!(path, "old")
    assert Output.write(path, "new") == :ok
    assert File.read!(path) == "new"
  end

  test "a folder in the file's place is refused, before and at the writing", %{folder: folder} do
    for result <- [Output.check(folder), Output.write(folder, "x")] do
      assert {:error, message} = result
      assert message =~ "cannot write #{inspect(folder)}: illegal operation on a directory"
    end

    assert File.ls!(folder) == []
  end

  test "a file in a folder's place is refused", %{folder: folder} do
    File.write!(Path.join(folder, "file"), "")
    path = Path.join(folder, "file/sub.json")
    assert {:error, message} = Output.check(path)
    assert message =~ inspect(path)
  end
end
