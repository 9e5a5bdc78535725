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
      erlc_options: [:debug_info, :warn_missing_spec, :warn_export_vars, :warn_shadow_vars],
      # The tests are a project of their own, which depends on this one: test/mix.exs.
      test_paths: [],
      deps: [],
      package: package()
    ]
  end

  def application do
    [mod: @app[:mod], registered: @app[:registered]]
  end

  defp package do
    [
      licenses: ["Apache-2.0"],
      links: %{},
      files: ~w(src lib c_src c_include priv/README.md mix.exs rebar.config
                README.md CHANGELOG.md LICENSE .formatter.exs)
    ]
  end
end
