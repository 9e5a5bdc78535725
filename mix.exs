defmodule Mix.Tasks.Compile.TameNatives do
  @moduledoc false
  # Builds the native parts into this package's own priv. Of a dependency from Hex or git, which Mix compiles once for
  # each target and environment, all of these have the same sources: there into the priv of what is being built.
  use Mix.Task.Compiler

  @impl true
  def run(_args) do
    env = [
      {"ERLANG_ROOT_DIR", to_string(:code.root_dir())},
      {"ERLANG_ERTS_VER", to_string(:erlang.system_info(:version))}
    ]

    script = Path.expand("c_src/build.sh", __DIR__)

    arguments = [script, priv()]

    case System.cmd("sh", arguments, env: env, into: IO.stream(), stderr_to_stdout: true) do
      {_, 0} ->
        # priv may be new, and is not linked into _build then.
        Mix.Project.build_structure()
        :ok

      # What is missing has been said.
      {_, _} ->
        {:error, []}
    end
  end

  defp priv do
    own = Path.expand("priv", __DIR__)
    fetched? = Path.dirname(__DIR__) == Path.expand(Mix.Project.deps_path())
    if fetched? and not File.exists?(own), do: Path.join(Mix.Project.app_path(), "priv"), else: own
  end

  @impl true
  def clean do
    for made <- ["priv", "c_src/build"], do: File.rm_rf!(Path.expand(made, __DIR__))
  end
end

defmodule Tame.MixProject do
  use Mix.Project

  # Name, version, description and start are written once, in src/tame.app.src.
  {:ok, [{:application, :tame, app}]} =
    :file.consult(to_charlist(Path.expand("src/tame.app.src", __DIR__)))

  @app app
  @version to_string(app[:vsn])
  @description to_string(app[:description])

  # What Elixir's own macros call.
  # lib/tame/job.ex runs in the compiler, lib/tame.ex for those who have Elixir, lib/mix in Mix.
  @no_dependency [Access, Kernel, Kernel.Typespec, Kernel.LexicalTracker, Kernel.Utils, Module] ++
                   [:elixir_def, :elixir_module, :elixir_quote, :elixir_utils] ++
                   [ArgumentError, Enum, Enumerable, List, Macro, Map, Stream, String.Chars] ++
                   [File, IO, Inspect, Mix, Mix.Project, Mix.Task, Mix.Task.Compiler, Path, System]

  def project do
    [
      app: :tame,
      version: @version,
      description: @description,
      elixir: "~> 1.14",
      # rebar3 writes _build/<profile>/lib/tame too; the second would overwrite the first.
      build_path: "_build/mix",
      compilers: [:tame_natives] ++ Mix.compilers(),
      # tame needs no application elixir, and names none; lib/tame.ex is for those who have it.
      language: :erlang,
      erlc_options: [:debug_info, :warn_missing_spec, :warn_export_vars, :warn_shadow_vars],
      # The tests are a project of their own, which depends on this one: test/mix.exs.
      test_paths: [],
      deps: [],
      package: package()
    ] ++ calls_no_dependency()
  end

  # Elixir 1.20 warns of the older word, and Elixir 1.14 does not know the newer one for this.
  defp calls_no_dependency do
    if Version.match?(System.version(), ">= 1.20.0-dev"),
      do: [elixirc_options: [no_warn_undefined: @no_dependency]],
      else: [xref: [exclude: @no_dependency]]
  end

  def application do
    [mod: @app[:mod], registered: @app[:registered]]
  end

  defp package do
    [
      licenses: ["Apache-2.0"],
      links: %{},
      # c_src/build is built, and so is all of priv: a release holds what lies in priv.
      files:
        ~w(src lib c_include c_src/Makefile c_src/build.sh c_src/otp.mk c_src/host c_src/job c_src/os c_src/ring
                mix.exs rebar.config README.md CHANGELOG.md LICENSE .formatter.exs)
    ]
  end
end
