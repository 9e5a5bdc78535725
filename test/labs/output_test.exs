defmodule Tame.OutputTest do
  use ExUnit.Case, async: true
  import ExUnit.CaptureIO

  alias Tame.Output

  @moduletag :tmp_dir

  describe "a file" do
    test "is written whole, and nothing is left beside it", %{tmp_dir: folder} do
      path = Path.join(folder, "file.json")
      assert Output.check(path) == :ok
      assert File.ls!(folder) == []
      assert Output.write(path, ["a", ?b]) == :ok
      assert File.read!(path) == "ab"
      assert File.ls!(folder) == ["file.json"]
    end

    test "without a path is not made", %{tmp_dir: folder} do
      assert Output.check(nil) == :ok
      assert Output.write(nil, fn -> flunk("the data is made") end) == :ok
      assert File.ls!(folder) == []
    end

    test "that is written early is replaced later; what cannot be replaced is written once", %{
      tmp_dir: folder
    } do
      path = Path.join(folder, "file")
      assert Output.write_early(nil, "half") == :ok
      assert Output.write_early(path, "half") == :ok
      assert File.read!(path) == "half"
      assert Output.write(path, "whole") == :ok
      assert File.read!(path) == "whole"

      out =
        capture_io(fn ->
          for path <- ["-", "/dev/full"], do: assert(Output.write_early(path, "half") == :ok)
        end)

      assert out == ""
    end

    test "takes the place of an older one, with its permissions", %{tmp_dir: folder} do
      path = Path.join(folder, "file")
      File.write!(path, "old")
      File.chmod!(path, 0o640)
      inode = File.stat!(path).inode
      assert Output.write(path, fn -> "new" end) == :ok
      assert File.read!(path) == "new"
      assert %{mode: mode, inode: other} = File.stat!(path)
      assert Bitwise.band(mode, 0o7777) == 0o640
      # Not written over: who reads the old one meanwhile reads it to its end.
      assert other != inode
    end

    test "that a link leads to is replaced, and the link stays", %{tmp_dir: folder} do
      File.mkdir_p!(Path.join(folder, "sub/deep"))
      there = Path.join(folder, "sub/deep/file")
      File.write!(there, "old")
      File.ln_s!("deep/file", Path.join(folder, "sub/second"))
      link = Path.join(folder, "first")
      File.ln_s!("sub/second", link)

      assert Output.check(link) == :ok
      assert Output.write(link, "new") == :ok
      assert File.read_link!(link) == "sub/second"
      assert File.read_link!(Path.join(folder, "sub/second")) == "deep/file"
      assert File.read!(there) == "new"
      assert File.ls!(Path.join(folder, "sub/deep")) == ["file"]
    end

    test "that a link leads to and that is not there yet is made there", %{tmp_dir: folder} do
      File.ln_s!("target", Path.join(folder, "link"))
      assert Output.write(Path.join(folder, "link"), "new") == :ok
      assert File.read_link!(Path.join(folder, "link")) == "target"
      assert File.read!(Path.join(folder, "target")) == "new"
    end
  end

  describe "two outputs" do
    test "that are one file are refused, whatever they are called", %{tmp_dir: folder} do
      path = Path.join(folder, "x")
      File.mkdir!(Path.join(folder, "sub"))
      File.ln_s!(folder, Path.join(folder, "here"))
      File.ln_s!("x", Path.join(folder, "link"))

      for other <- ["x", "./x", "x/", "sub/../x", "here/x", "link", "here/link"],
          there? <- [false, true] do
        if there?, do: File.write!(path, "")
        other = folder <> "/" <> other

        assert Output.apart([path, nil, "-", other]) ==
                 {:error,
                  "cannot write #{inspect(other)}: another output, #{inspect(path)}, is the same file"}

        assert Output.replaces?(other, path)
        File.rm(path)
      end
    end

    test "may be of one name in two folders, nothing, or one device", %{tmp_dir: folder} do
      File.mkdir!(Path.join(folder, "sub"))
      assert Output.apart([Path.join(folder, "x"), Path.join(folder, "sub/x"), nil, nil]) == :ok
      assert Output.apart(["/dev/null", "/dev/null"]) == :ok
      refute Output.replaces?(Path.join(folder, "x"), Path.join(folder, "sub/x"))
    end
  end

  describe "what is no regular file" do
    test "is written to as it is: a FIFO", %{tmp_dir: folder} do
      path = Path.join(folder, "fifo")
      {_, 0} = System.cmd("mkfifo", [path])
      assert Output.check(path) == :ok
      reader = Task.async(fn -> System.cmd("cat", [path]) end)
      assert Output.write(path, "through") == :ok
      assert Task.await(reader, 600_000) == {"through", 0}
      assert File.stat!(path).type == :other
      assert File.ls!(folder) == ["fifo"]
    end

    test "is written to as it is: a device", %{tmp_dir: folder} do
      link = Path.join(folder, "null")
      File.ln_s!("/dev/null", link)

      for path <- ["/dev/null", link] do
        assert Output.check(path) == :ok
        assert Output.write(path, "away") == :ok
      end

      assert File.stat!("/dev/null").type == :device
      assert Path.wildcard("/dev/.null*", match_dot: true) == []
      assert File.read_link!(link) == "/dev/null"
    end

    test "an open file of a process is added to", %{tmp_dir: folder} do
      path = Path.join(folder, "open")
      {:ok, file} = :file.open(path, [:write, :raw])
      :ok = :file.write(file, "before ")

      number =
        for(
          entry <- File.ls!("/proc/self/fd"),
          File.read_link("/proc/self/fd/#{entry}") == {:ok, Path.expand(path)},
          do: entry
        )
        |> hd()

      assert Output.check("/proc/self/fd/#{number}") == :ok
      assert Output.write("/proc/self/fd/#{number}", "after") == :ok
      :ok = :file.close(file)
      assert File.read!(path) == "before after"
      assert File.ls!(folder) == ["open"]
    end

    test "a full one is one line" do
      assert Output.check("/dev/full") == :ok

      assert Output.write("/dev/full", "x") ==
               {:error, ~s(cannot write "/dev/full": no space left on device)}

      assert File.stat!("/dev/full").type == :device
    end
  end

  describe "what cannot be written" do
    test "a file whose folder is missing: nothing is made", %{tmp_dir: folder} do
      path = Path.join(folder, "no/such/file")
      expected = {:error, "cannot write #{inspect(path)}: there is no folder #{folder}/no/such"}
      assert Output.check(path) == expected
      assert Output.write(path, "x") == expected
      assert File.ls!(folder) == []
    end

    test "a folder, before and at the writing", %{tmp_dir: folder} do
      for result <- [Output.check(folder), Output.write(folder, "x")] do
        assert {:error, message} = result
        assert message =~ "cannot write #{inspect(folder)}: illegal operation on a directory"
      end

      assert File.ls!(folder) == []
    end

    test "a file in a folder's place, a link that leads to itself", %{tmp_dir: folder} do
      File.write!(Path.join(folder, "file"), "old")
      path = Path.join(folder, "file/sub.json")
      assert {:error, message} = Output.check(path)
      assert message == "cannot write #{inspect(path)}: not a directory"
      assert File.read!(Path.join(folder, "file")) == "old"

      loop = Path.join(folder, "loop")
      File.ln_s!("loop", loop)
      assert {:error, message} = Output.write(loop, "x")
      assert message =~ "cannot write #{inspect(loop)}: too many levels of symbolic links"
    end

    test "what /proc does not have, also where a link leads there, before anything is measured", %{
      tmp_dir: folder
    } do
      link = Path.join(folder, "link")
      File.ln_s!("/proc/none", link)

      for path <- ["/proc/none", "/proc/self/fd/4000", "/dev/fd/4000", link],
          result <- [Output.check(path), Output.write(path, "x")] do
        assert result == {:error, "cannot write #{inspect(path)}: no such file or directory"}
      end
    end

    test "on a full disk the old file stays as it was", %{tmp_dir: folder} do
      code = """
      path = Path.join(#{inspect(folder)}, "file")
      IO.inspect(Tame.Output.check(path))
      {:error, message} = Tame.Output.write(path, String.duplicate("x", 1_000_000))
      IO.puts(message)
      """

      File.write!(Path.join(folder, "file"), "old")

      # To mount a small file system takes rights; a limit of the size of files takes none.
      assert {out, 0} =
               System.cmd(
                 "sh",
                 ["-c", "ulimit -f 128; trap '' XFSZ; exec elixir \"$@\"", "sh"] ++
                   ["-pa", Path.dirname(:code.which(Output)), "-e", code],
                 stderr_to_stdout: true
               )

      file = Path.join(folder, "file")
      assert out == ":ok\ncannot write #{inspect(file)}: file too large\n"
      assert File.read!(Path.join(folder, "file")) == "old"
      assert File.ls!(folder) == ["file"]
    end
  end

  describe "a folder of files" do
    test "is made, with those above it", %{tmp_dir: folder} do
      path = Path.join(folder, "new")
      assert Output.check_folder(nil) == :ok
      assert Output.check_folder(path) == :ok
      assert File.ls!(folder) == []
      assert Output.make_folder(path) == :ok
      assert Output.check_folder(path) == :ok
      assert Output.make_folder(path) == :ok
      assert File.ls!(path) == []

      deeper = Path.join(folder, "no/such/")
      assert Output.check_folder(deeper <> "/") == :ok
      refute File.exists?(Path.join(folder, "no"))
      assert Output.make_folder(deeper <> "/") == :ok
      assert File.dir?(deeper)
      assert File.ls!(deeper) == []

      File.write!(Path.join(deeper, "any"), "")
      assert Output.check_folder(deeper) == :ok
    end

    test "is no file and no standard output", %{tmp_dir: folder} do
      File.write!(Path.join(folder, "file"), "old")

      for path <- [Path.join(folder, "file"), "-", "/dev/null"] do
        assert Output.check_folder(path) ==
                 {:error, "cannot write #{inspect(path)}: not a directory"}
      end
    end
  end

  describe "standard output" do
    test "has the file alone, byte for byte; what is printed besides goes to standard error" do
      for name <- ["-", "/dev/stdout", "/dev/fd/1"] do
        parent = self()

        err =
          capture_io(:stderr, fn ->
            out =
              capture_io(fn ->
                Output.around(fn ->
                  assert Output.check(name) == :ok
                  IO.puts("a table")
                  assert Output.write(name, ["µ", 0, "\n"]) == :ok
                end)

                IO.puts("later")
              end)

            send(parent, {:out, out})
          end)

        assert_received {:out, "µ\0\nlater\n"}
        assert err == "a table\n"
      end
    end

    test "is for one file" do
      capture_io(fn ->
        Output.around(fn ->
          assert Output.check("-") == :ok

          assert Output.check("/dev/stdout") ==
                   {:error,
                    ~s(cannot write "/dev/stdout": another output is standard output already)}
        end)

        Output.around(fn -> assert Output.check("-") == :ok end)
      end)
    end
  end

  test "a file that somebody has begun is removed when the VM is about to halt", %{tmp_dir: folder} do
    # In the middle of a write nobody can be held; this one only says that it has begun.
    path = Path.join(folder, "part")
    File.write!(path, "half")

    pid =
      spawn_link(fn ->
        Process.put({Output, :unfinished}, path)
        Process.sleep(:infinity)
      end)

    assert Tame.Await.until(fn -> Process.info(pid, :dictionary) |> inspect() =~ "unfinished" end)
    assert Output.abandon(pid) == :ok
    assert File.ls!(folder) == []
    assert Output.abandon(self()) == :ok
  end
end
