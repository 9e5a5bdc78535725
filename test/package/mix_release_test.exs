defmodule Tame.Package.MixReleaseTest do
  # A Mix release of a project that depends on the package by path.
  use ExUnit.Case, async: true

  import Tame.Test.CLibrary, only: [tmp_dir!: 0]
  import Tame.Test.Package

  @tag needs: :jiffy
  @tag skip: skip(roots?(), "chroot and mount are not allowed here")
  test "a Mix release from the package isolates jiffy, and holds our natives and our modules, also alone in a root" do
    dir = tmp_dir!()
    tame!(dir)
    app = example!("isolated_app", Path.join(dir, "app"), [{"mix.exs", "../..", "../tame"}])

    assert {_, 0} = run(app, "mix", ~w(deps.get), [{"MIX_ENV", "prod"}])
    assert {out, 0} = run(app, "mix", ~w(release), [{"MIX_ENV", "prod"}])
    refute out =~ "warning"

    release = Path.join(app, "_build/prod/rel/isolated_app")
    {names, bytes} = tame_of(release)
    assert names == names(["Elixir.Mix.Tasks.Compile.TameNif", "Elixir.Tame", "Elixir.Tame.Job"])
    assert bytes < 1_000_000

    root = root!(Path.join(dir, "root"), release)
    # The release's own start, with an expression after it.
    env = "export RELEASE_DISTRIBUTION=none RELEASE_BOOT_SCRIPT_CLEAN=start LC_ALL=C.UTF-8"

    assert {out, 0} =
             in_root(root, "#{env}; /app/bin/isolated_app eval 'IO.inspect(IsolatedApp.demo())'")

    assert out =~ ~s(before: {:ok, %{"a" => 1}})
    assert out =~ ~s(later: {:ok, %{"a" => 1}})
    assert out =~ "same_process: false"
  end
end
