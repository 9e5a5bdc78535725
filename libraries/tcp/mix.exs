defmodule TameTcp.MixProject do
  use Mix.Project

  # Name, version and description are written once, in src/tame_tcp.app.src.
  {:ok, [{:application, :tame_tcp, app}]} =
    :file.consult(to_charlist(Path.expand("src/tame_tcp.app.src", __DIR__)))

  @version to_string(app[:vsn])
  @description to_string(app[:description])

  def project do
    [
      app: :tame_tcp,
      version: @version,
      description: @description,
      elixir: "~> 1.14",
      build_path: "_build/mix",
      compilers: [:tame_nif] ++ Mix.compilers(),
      tame_nif: "priv/tame_tcp_nif.so",
      # The VMs of the tests find what is in it by their code path.
      elixirc_paths: if(Mix.env() == :test, do: ["lib", "test/support"], else: ["lib"]),
      erlc_options: [:debug_info],
      deps: [{:tame, path: "../.."}, {:tame_labs, path: "../../labs", only: :dev}]
    ]
  end

  def application do
    [mod: {:tame_tcp_app, []}, registered: [:tame_tcp_sup]] ++
      if(Mix.env() == :test,
        do: [extra_applications: [:crypto, :proper, ssl: :optional]],
        else: []
      )
  end
end
