defmodule Tame.PackageTest do
  # Tame as others get it. In package/: what is built in their project, releases, the labs.
  use ExUnit.Case, async: true

  import Tame.Test.Package, only: [config: 1]

  test "what Mix has built starts in plain erl, without Elixir" do
    ebin = :tame |> :code.which() |> Path.dirname()

    code = """
    {ok, Started} = application:ensure_all_started(tame),
    non_existing = code:which('Elixir.Kernel'),
    io:format("~w ~w", [Started, tame:info()]), halt().
    """

    args = ["-noinput", "-pa", ebin, "-eval", code]
    env = [{"ERL_LIBS", nil}, {"ERL_FLAGS", nil}, {"ERL_AFLAGS", nil}, {"ERL_ZFLAGS", nil}]
    assert {out, 0} = System.cmd("erl", args, env: env, stderr_to_stdout: true)
    assert out == "[tame] \#{}"
  end

  test "the version of the labs is that of the runtime" do
    assert config("labs")[:version] == to_string(:tame.version())
  end

  test "the lines that the README says to copy are those of the examples" do
    [_, install] = String.split(File.read!("../README.md"), "## Install\n")
    [install, _] = String.split(install, "\n## ", parts: 2)

    lines =
      Regex.scan(~r/^```(?:elixir|erlang)\n(.*?)\n```$/ms, install, capture: :all_but_first)
      |> List.flatten()

    files =
      ~w(isolated_app/mix.exs isolated_app/config/config.exs) ++
        ~w(isolated_app_rebar3/rebar.config isolated_app_rebar3/config/sys.config)

    for {line, file} <- Enum.zip(lines, files) do
      text = File.read!(Path.join("../examples", file))

      assert String.contains?(String.replace(text, "../..", "../tame"), line),
             "#{line} is not in #{file}"
    end

    assert length(lines) == length(files)
  end
end
