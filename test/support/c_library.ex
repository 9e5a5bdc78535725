defmodule Tame.Test.CLibrary do
  @moduledoc false
  # A stranger's NIF library: C and Erlang files in a folder, compiled there, run by an erl of its own. With
  # TAME_TEST_SANITIZED, as `make test-sanitized` sets it, the library has the sanitizers, and so has that erl: its
  # memory comes from malloc (+Mea min), where the address sanitizer sees it.

  @sanitizers ~w(-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)

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
        ["-isystem", erts_include(), "-I#{:tame.include_dir()}"] ++
        more ++
        if(sanitized?(), do: @sanitizers, else: []) ++ ["-o", Path.rootname(file) <> ".so", file]

    System.cmd(compiler, args, cd: dir, stderr_to_stdout: true)
  end

  # The path of the library that this source is, which may have functions that nobody calls.
  def nif!(dir, name, source) do
    File.write!(Path.join(dir, name <> ".c"), source)
    {"", 0} = compile(dir, name <> ".c", ["-Wno-unused-function", "-std=gnu11"])
    Path.join(dir, name <> ".so")
  end

  # A module of this Erlang source with a library of this C or C++ source, in which MODULE is its name; it is on the
  # code path afterwards. Returns their folder.
  def module!(module, source, erlang) do
    file = "#{module}#{Path.extname(source)}"

    folder =
      Path.join(
        System.tmp_dir!(),
        "tame_#{module}_#{System.pid()}_#{System.unique_integer([:positive])}"
      )

    File.mkdir_p!(folder)
    File.cp!(source, Path.join(folder, file))
    File.write!(Path.join(folder, "#{module}.erl"), erlang)
    {"", 0} = compile(folder, file, ["-D_GNU_SOURCE", "-DMODULE=#{module}"])

    {"", 0} =
      System.cmd("erlc", ["+debug_info", "#{module}.erl"], cd: folder, stderr_to_stdout: true)

    true = :code.add_patha(String.to_charlist(folder))
    folder
  end

  # {output, 0} or {output, 1}.
  def erlc(dir, file),
    do: System.cmd("erlc", ["-pa", ebin(), file], cd: dir, stderr_to_stdout: true)

  # What `expression` prints in a VM of its own that runs in dir, standard error included.
  def erl(dir, expression, more \\ []) do
    args = more ++ ["-noinput", "-pa", ebin(), "-eval", expression <> ", halt()."]
    System.cmd("erl", args, cd: dir, stderr_to_stdout: true, env: environment())
  end

  defp sanitized?, do: System.get_env("TAME_TEST_SANITIZED") != nil

  defp environment do
    if sanitized?() do
      libraries = Enum.map_join(~w(libasan.so libubsan.so), " ", &sanitizer_library/1)
      [{"LD_PRELOAD", libraries}, {"ASAN_OPTIONS", "detect_leaks=0"}, {"ERL_FLAGS", "+Mea min"}]
    else
      []
    end
  end

  defp sanitizer_library(name) do
    {path, 0} = System.cmd("gcc", ["-print-file-name=#{name}"])
    String.trim(path)
  end

  defp ebin, do: :tame |> :code.which() |> to_string() |> Path.dirname()

  defp erts_include do
    Path.join([:code.root_dir(), "erts-#{:erlang.system_info(:version)}", "include"])
  end
end
