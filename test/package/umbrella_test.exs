defmodule Tame.Package.UmbrellaTest do
  # The Mix compiler for NIFs in the apps of an umbrella, and where no code knows the path of its source.
  use ExUnit.Case, async: true

  import Tame.Test.CLibrary, only: [tmp_dir!: 0]
  import Tame.Test.Package

  @makefile """
  priv/it.so:
  \tmkdir -p priv && test -f $(ERL_INCLUDE)/erl_nif.h && test -f $(TAME_INCLUDE)/tame.h && echo built > $@
  """

  defp nif!(apps, name) do
    folder = Path.join(apps, name)
    File.mkdir_p!(folder)
    File.write!(Path.join(folder, "Makefile"), @makefile)

    File.write!(Path.join(folder, "mix.exs"), """
    defmodule #{String.capitalize(name)}.MixProject do
      use Mix.Project
      def project, do: [app: :#{name}, version: "1.0.0", build_path: "../../_build", deps_path: "../../deps",
        lockfile: "../../mix.lock", compilers: [:tame_nif] ++ Mix.compilers(), tame_nif: "priv/it.so",
        deps: [{:tame, path: "../../../tame"}]]
      def application, do: []
    end
    """)

    Path.join(folder, "priv/it.so")
  end

  test "each app of an umbrella gets its NIF, also in a reproducible build, and loses it when it is cleaned" do
    dir = tmp_dir!()
    tame!(dir)
    umbrella = Path.join(dir, "umbrella")
    built = for name <- ~w(one two), do: nif!(Path.join(umbrella, "apps"), name)

    File.write!(Path.join(umbrella, "mix.exs"), """
    defmodule Umbrella.MixProject do
      use Mix.Project
      def project, do: [apps_path: "apps", version: "1.0.0", deps: []]
    end
    """)

    env = [{"ERL_COMPILER_OPTIONS", "deterministic"}, {"CFLAGS", "-O0"}]
    assert {out, 0} = run(umbrella, "mix", ~w(compile), env)
    for file <- built, do: assert(File.read(file) == {:ok, "built\n"}, out)

    assert {out, 0} = run(umbrella, "mix", ~w(clean), env)
    for file <- built, do: refute(File.exists?(file), out)
  end
end
