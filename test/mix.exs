defmodule Tame.Test.MixProject do
  use Mix.Project

  # What is isolated in the tests, where the system has it.
  @no_dependency [:jiffy, :fast_yaml, :fxml, :fxml_stream, :stringprep, :iconv, :mqtree, :fast_tls] ++
                   [:bitcask, :bitcask_nifs, :ets_cache, :cl] ++
                   [:places, :places_app, :places_later, :places_turns, :places_given, :bounds] ++
                   [:no_functions]

  # The tests of both applications: their first user, who depends on them as anybody does.
  def project do
    [
      app: :tame_test,
      version: "0.0.0",
      elixir: "~> 1.14",
      build_path: "../_build/mix",
      elixirc_paths: ["support"],
      test_paths: ["."],
      deps: [
        {:tame, path: "..", env: Mix.env(), override: true},
        {:tame_labs, path: "../labs", env: Mix.env()},
        {:tame_sha3, path: "../libraries/sha3", runtime: false},
        {:tame_tty, path: "../libraries/tty", runtime: false}
      ],
      # Newer Elixir tells each .exs file that is no test.
      test_ignore_filters: [~r"^mix.exs$", ~r"^c/"]
    ] ++ calls_no_dependency()
  end

  # mix run, as mix test, has the natives of the tests. Elixir 1.20 warns of the older words, and Elixir 1.14
  # does not know the newer ones.
  if Version.match?(System.version(), ">= 1.20.0-dev") do
    def cli, do: [preferred_envs: [run: :test]]
    defp calls_no_dependency, do: [elixirc_options: [no_warn_undefined: @no_dependency]]
  else
    defp calls_no_dependency,
      do: [preferred_cli_env: [run: :test], xref: [exclude: @no_dependency]]
  end

  # proper: property tests, from the system's packages. ssl: cowboy's, in the load lab.
  def application do
    [extra_applications: [:mix, :ex_unit, :proper, :crypto, :asn1, :xmerl, ssl: :optional]]
  end
end
