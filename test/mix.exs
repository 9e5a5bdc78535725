defmodule Tame.Test.MixProject do
  use Mix.Project

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
        {:tame, path: "..", env: Mix.env()},
        {:tame_labs, path: "../labs", env: Mix.env()}
      ],
      preferred_cli_env: [run: :test],
      # What is isolated in the tests, where the system has it; nothing of it is a dependency.
      xref: [
        exclude:
          [:jiffy, :fast_yaml, :fxml, :fxml_stream, :stringprep, :iconv, :mqtree] ++
            [:places, :places_app, :places_later]
      ]
    ]
  end

  # proper: property tests, from the system's packages.
  def application do
    [extra_applications: [:mix, :ex_unit, :proper, :crypto, :asn1, :xmerl]]
  end
end
