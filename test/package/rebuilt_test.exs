defmodule Tame.Package.RebuiltTest do
  # A library is built again when a header that it includes has changed: its own, and tame's, which come with a new
  # version of tame. What the compiler reads, the Makefile names.
  use ExUnit.Case, async: true

  @root Path.expand("../..", __DIR__)

  for {folder, target, source} <- [
        {"examples/dirty_driver", "priv/sd_drv.so", "c_src/sd_drv.c"},
        {"examples/http_app", "priv/primes.so", "c_src/primes.c"},
        {"examples/job_with_rebar3", "priv/utf8.so", "c_src/utf8.c"},
        {"examples/json_lines", "priv/json_lines.so", "c_src/json_lines.c"},
        {"examples/words", "priv/words.so", "c_src/words.cpp"},
        {"examples/zstd", "priv/zstd_nif.so", "c_src/zstd_nif.c"},
        {"libraries/nng", "priv/tame_nng_drv.so", "c_src/tame_nng_drv.c"},
        {"libraries/nng", "priv/tame_nng_nif.so", "c_src/tame_nng_nif.c"},
        {"libraries/sha3", "priv/tame_sha3.so", "c_src/tame_sha3.c"},
        {"libraries/tcp", "priv/tame_tcp_nif.so", "c_src/tame_tcp_nif.c"},
        {"libraries/tty", "priv/tame_tty.so", "c_src/tame_tty.c"}
      ] do
    test "#{folder}: #{target}" do
      folder = Path.join(@root, unquote(folder))
      read = read(folder, unquote(source))
      assert Enum.any?(read, &String.starts_with?(&1, Path.join(@root, "c_include/tame/")))
      assert read -- named(folder, unquote(target)) == []
    end
  end

  # Headers of the project and of tame; what is not installed here (zstd.h) is left out.
  defp read(folder, source) do
    include = Path.join(@root, "c_include")
    standard = if Path.extname(source) == ".cpp", do: "-std=c++17", else: "-std=gnu11"
    arguments = ["-MM", "-MG", standard, "-I", include, "-isystem", erts(), source]
    {rule, 0} = System.cmd("cc", arguments, cd: folder)
    [_, read] = String.split(rule, ": ", parts: 2)
    for path <- files(read, folder), String.starts_with?(path, [folder, include]), do: path
  end

  # make -p prints its rules, -n and -q make nothing.
  defp named(folder, target) do
    variables = [
      "TAME=#{@root}",
      "TAME_INCLUDE=#{@root}/c_include",
      "ERL_INCLUDE=#{erts()}"
    ]

    arguments = ["-rRpnq", target | variables]
    env = for name <- ~w(MAKEFLAGS MFLAGS MAKELEVEL), do: {name, nil}
    {rules, _} = System.cmd("make", arguments, cd: folder, env: env, stderr_to_stdout: true)
    [_, named] = Regex.run(~r/^#{Regex.escape(target)}: (.*)$/m, rules)
    files(named, folder)
  end

  defp files(text, folder) do
    words = String.split(text, [" ", "\\\n", "\n"], trim: true)
    words |> Enum.map(&Path.expand(&1, folder)) |> Enum.uniq()
  end

  defp erts do
    Path.join([:code.root_dir(), "erts-#{:erlang.system_info(:version)}", "include"])
  end
end
