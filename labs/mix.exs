defmodule Mix.Tasks.Compile.TameLabsNatives do
  @moduledoc false
  # After Erlang, whose tame_labs_native builds them, and before Elixir, whose compiler loads modules that bind them.
  use Mix.Task.Compiler

  @impl true
  def run(_args) do
    # Where Mix has them; the code knows that too, but for code that was compiled with `deterministic`.
    sources = Enum.map([File.cwd!(), Mix.Project.deps_paths()[:tame]], &String.to_charlist/1)

    # Not by name: this file is compiled before that module.
    case apply(:tame_labs_native, :build, sources) do
      :ok ->
        :ok

      {:error, text} ->
        Mix.shell().error(text)
        {:error, []}
    end
  end
end

defmodule Tame.Labs.MixProject do
  use Mix.Project

  # That of the runtime, which is measured with these tools. Written here because a package of the labs stands alone;
  # a test compares them.
  @version "0.1.0"

  # One folder for each lab, and what they share: Elixir, and Erlang modules that are also sent into a watched VM.
  @folders ~w(latency reductions contention isolation load native_io collapse audit watch calibrate doctor digest report shared jobs tasks)

  def project do
    [
      app: :tame_labs,
      version: @version,
      description: "What native code does to everybody else on the BEAM: labs, audits, a watch",
      elixir: "~> 1.14",
      build_path: "../_build/mix",
      elixirc_paths: @folders,
      erlc_paths: @folders,
      compilers: [:erlang, :tame_labs_natives, :elixir, :app],
      erlc_options: [:debug_info, :warn_missing_spec, :warn_export_vars, :warn_shadow_vars],
      # The tests of both applications are one project: ../test/mix.exs.
      test_paths: [],
      # tame_sha3: what the digest lab measures; tame_tty: the watch's full screen. A project that has the labs has
      # them only when it names them; the labs ask when they run.
      deps: [
        {:tame, path: "..", env: Mix.env(), override: true},
        {:tame_sha3, path: "../libraries/sha3", optional: true, runtime: false},
        {:tame_tty, path: "../libraries/tty", optional: true, runtime: false}
      ],
      package: package()
    ]
  end

  # mix: the tasks raise through it. crypto: the digest lab's other side. ssl: cowboy's, in the load lab.
  def application do
    [extra_applications: [:mix, crypto: :optional, ssl: :optional]]
  end

  defp package do
    [
      licenses: ["Apache-2.0"],
      links: %{},
      files: @folders ++ ~w(c_src java priv/README.md priv/report mix.exs README.md)
    ]
  end
end
