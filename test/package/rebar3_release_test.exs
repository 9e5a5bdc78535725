defmodule Tame.Package.Rebar3ReleaseTest do
  # A rebar3 release of a project that depends on the package by git.
  use ExUnit.Case, async: true

  import Tame.Test.CLibrary, only: [tmp_dir!: 0]
  import Tame.Test.Package

  @tag needs: :jiffy
  @tag skip: no_git() || skip(System.find_executable("rebar3") != nil, "there is no rebar3")
  test "a rebar3 release with tame from git isolates jiffy, and holds our natives and our modules" do
    dir = tmp_dir!()
    git = git!(tame!(dir))
    dep = "{tame, {git, \"file://#{git}\", {branch, \"main\"}}}"

    app =
      example!("isolated_app_rebar3", Path.join(dir, "app"), [
        {"rebar.config", "[tame]", "[#{dep}]"}
      ])

    assert {_, 0} = run(app, "rebar3", ~w(release))
    {names, bytes} = tame_of(Path.join(app, "_build/default/rel/isolated_app"))
    assert names == names()
    assert bytes < 1_000_000
    assert {out, 0} = run(app, "sh", ["test.sh"])
    assert out =~ "{same_process, false}"
    assert running(app) == []
  end

  # The programs of this folder that run.
  defp running(folder) do
    for exe <- Path.wildcard("/proc/[0-9]*/exe"),
        {:ok, program} <- [File.read_link(exe)],
        String.starts_with?(program, folder),
        do: program
  end
end
