defmodule TameTty.MixProject do
  use Mix.Project

  # Name, version and description are written once, in src/tame_tty.app.src.
  {:ok, [{:application, :tame_tty, app}]} =
    :file.consult(to_charlist(Path.expand("src/tame_tty.app.src", __DIR__)))

  @version to_string(app[:vsn])
  @description to_string(app[:description])

  def project do
    [
      app: :tame_tty,
      version: @version,
      description: @description,
      elixir: "~> 1.14",
      build_path: "_build/mix",
      compilers: [:tame_nif] ++ Mix.compilers(),
      tame_nif: "library",
      # The VMs of the tests find what is in it by their code path.
      elixirc_paths: if(Mix.env() == :test, do: ["lib", "test/support"], else: ["lib"]),
      erlc_paths: if(Mix.env() == :test, do: ["src", "test/support"], else: ["src"]),
      erlc_options: [:debug_info, :warnings_as_errors],
      deps: [{:tame, path: "../.."}]
    ]
  end

  def application,
    do: [extra_applications: if(Mix.env() == :test, do: [:proper], else: [])]
end
