defmodule TameHttp.MixProject do
  use Mix.Project

  # Name, version and description are written once, in src/tame_http.app.src.
  {:ok, [{:application, :tame_http, app}]} =
    :file.consult(to_charlist(Path.expand("src/tame_http.app.src", __DIR__)))

  @version to_string(app[:vsn])
  @description to_string(app[:description])
  @callback_module app[:mod]
  @registered app[:registered]

  def project do
    [
      app: :tame_http,
      version: @version,
      description: @description,
      elixir: "~> 1.14",
      build_path: "_build/mix",
      compilers: [:tame_nif] ++ Mix.compilers(),
      tame_nif: "priv/tame_http.so",
      erlc_options: [:debug_info],
      # sha3 for the example, the labs for the figures.
      deps: [
        {:tame, path: "../.."},
        {:tame_sha3, path: "../sha3", only: :dev},
        {:tame_labs, path: "../../labs", only: :dev}
      ]
    ]
  end

  def application do
    [
      mod: @callback_module,
      registered: @registered,
      extra_applications: if(Mix.env() == :test, do: [:inets, :ssl], else: [])
    ]
  end
end
