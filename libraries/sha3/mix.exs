defmodule TameSha3.MixProject do
  use Mix.Project

  # Name, version and description are written once, in src/tame_sha3.app.src.
  {:ok, [{:application, :tame_sha3, app}]} =
    :file.consult(to_charlist(Path.expand("src/tame_sha3.app.src", __DIR__)))

  @version to_string(app[:vsn])
  @description to_string(app[:description])

  def project do
    [
      app: :tame_sha3,
      version: @version,
      description: @description,
      elixir: "~> 1.14",
      build_path: "_build/mix",
      compilers: [:tame_nif] ++ Mix.compilers(),
      tame_nif: "priv/tame_sha3.so",
      # The VMs of the tests find what is in it by their code path.
      elixirc_paths: if(Mix.env() == :test, do: ["lib", "test/support"], else: ["lib"]),
      erlc_options: [:debug_info],
      deps: [{:tame, path: "../.."}, {:tame_labs, path: "../../labs", only: :dev}]
    ]
  end

  def application,
    do: [extra_applications: if(Mix.env() == :test, do: [:crypto, :proper], else: [])]
end
