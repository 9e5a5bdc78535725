defmodule Tame.Package.LabsTest do
  # The labs as a dependency, by git.
  use ExUnit.Case, async: true

  import Tame.Test.CLibrary, only: [tmp_dir!: 0]
  import Tame.Test.Package

  # Code that is compiled with `deterministic` does not know where its sources are; this tree's own does, in all other tests.
  @tag skip: no_git()
  test "the labs are a dependency by git, below the runtime in the same repository, also in a reproducible build" do
    dir = tmp_dir!()
    package = tame!(dir)
    unpack!("labs", Path.join(package, "labs"))
    from = "git: \"#{git!(package)}\""

    deps =
      "{:tame, #{from}, override: true}, {:tame_labs, #{from}, subdir: \"labs\", only: [:dev, :test]}"

    app = app!(Path.join(dir, "app"), deps)

    assert {_, 0} = run(app, "mix", ~w(deps.get))
    lab = ~w(tame.latency --only nif_normal,isolated --iterations 100)
    assert {out, 0} = run(app, "mix", lab, [{"ERL_COMPILER_OPTIONS", "deterministic"}])
    refute out =~ "warning: :tame"
    assert out =~ ~r/^isolated +process/m

    assert {_, 0} = run(app, "mix", ~w(compile), [{"MIX_ENV", "prod"}])
    assert File.ls!(Path.join(app, "_build/prod/lib")) |> Enum.sort() == ~w(app tame)
  end
end
