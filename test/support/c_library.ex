defmodule Tame.Test.CLibrary do
  @moduledoc false
  # A stranger's NIF library: C and Erlang files in a folder, compiled there, run by an erl of its own.

  # A folder of its own for the calling test, removed at its end.
  def tmp_dir! do
    dir =
      Path.join(System.tmp_dir!(), "tame_c_#{System.unique_integer([:positive])}_#{System.pid()}")

    File.mkdir_p!(dir)
    ExUnit.Callbacks.on_exit(fn -> File.rm_rf!(dir) end)
    dir
  end

  # Compiles dir/name.c or dir/name.cpp to dir/name.so, with warnings as errors. {output, status}.
  def compile(dir, file, more \\ []) do
    {compiler, standard} =
      if Path.extname(file) == ".cpp", do: {"c++", "-std=c++17"}, else: {"cc", "-std=c11"}

    args =
      [standard, "-O3", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared"] ++
        ["-I#{erts_include()}", "-I#{:tame.include_dir()}"] ++
        more ++ ["-o", Path.rootname(file) <> ".so", file]

    System.cmd(compiler, args, cd: dir, stderr_to_stdout: true)
  end

  # The path of the library that this source is, which may have functions that nobody calls.
  def nif!(dir, name, source) do
    File.write!(Path.join(dir, name <> ".c"), source)
    {"", 0} = compile(dir, name <> ".c", ["-Wno-unused-function", "-std=gnu11"])
    Path.join(dir, name <> ".so")
  end

  # {output, 0} or {output, 1}.
  def erlc(dir, file), do: System.cmd("erlc", [file], cd: dir, stderr_to_stdout: true)

  # What `expression` prints in a VM of its own that runs in dir, standard error included.
  def erl(dir, expression, more \\ []) do
    args = more ++ ["-noinput", "-pa", ebin(), "-eval", expression <> ", halt()."]
    System.cmd("erl", args, cd: dir, stderr_to_stdout: true)
  end

  defp ebin, do: :tame |> :code.which() |> to_string() |> Path.dirname()

  defp erts_include do
    Path.join([:code.root_dir(), "erts-#{:erlang.system_info(:version)}", "include"])
  end
end
