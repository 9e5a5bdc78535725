defmodule Tame.MixProject do
  use Mix.Project

  # Name, version, description and start are written once, in src/tame.app.src.
  {:ok, [{:application, :tame, app}]} =
    :file.consult(to_charlist(Path.expand("src/tame.app.src", __DIR__)))

  @app app
  @version to_string(app[:vsn])
  @description to_string(app[:description])

  def project do
    [
      app: :tame,
      version: @version,
      description: @description,
      elixir: "~> 1.14",
      # rebar3 writes _build/<profile>/lib/tame too; the second would overwrite the first.
      build_path: "_build/mix",
      elixirc_paths: elixirc_paths(Mix.env()),
      erlc_options: [:debug_info, :warn_missing_spec, :warn_export_vars, :warn_shadow_vars],
      test_paths: ["test"],
      deps: [],
      # What is isolated in the tests, where the system has it; nothing of it is a dependency.
      xref: [
        exclude:
          [:jiffy, :fast_yaml, :fxml, :fxml_stream, :stringprep, :iconv, :mqtree] ++
            [:places, :places_app, :places_later]
      ],
      package: package()
    ]
  end

  def application do
    [
      mod: @app[:mod],
      registered: @app[:registered],
      extra_applications: extra_applications(Mix.env())
    ]
  end

  # mix: the tasks raise through it; proper: property tests, from the system's packages.
  defp extra_applications(:test), do: [:mix, :ex_unit, :proper, :crypto, :asn1, :xmerl]
  defp extra_applications(_), do: []

  defp elixirc_paths(:test), do: ["lib", "test/support"]
  defp elixirc_paths(_), do: ["lib"]

  defp package do
    [
      licenses: ["Apache-2.0"],
      links: %{},
      files:
        ~w(src lib c_src c_include java priv/README.md priv/report Makefile mix.exs rebar.config
                README.md CHANGELOG.md LICENSE .formatter.exs)
    ]
  end
end
