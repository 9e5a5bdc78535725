defmodule Mix.Tasks.Compile.TameNngNative do
  @moduledoc false
  use Mix.Task.Compiler

  @impl true
  def run(_args) do
    erts = "erts-#{:erlang.system_info(:version)}"
    include = Path.join([to_string(:code.root_dir()), erts, "include"])
    tame = Path.expand(to_string(:tame.include_dir()))
    make = ["-s", "library", "ERL_INCLUDE=#{include}", "TAME_INCLUDE=#{tame}"]

    case System.cmd("make", make, into: IO.stream(), stderr_to_stdout: true, cd: __DIR__) do
      {_, 0} ->
        Mix.Project.build_structure()
        :ok

      # The compiler has said what is wrong.
      {_, _} ->
        {:error, []}
    end
  end
end

defmodule TameNng.MixProject do
  use Mix.Project

  # Name, version and description are written once, in src/tame_nng.app.src.
  {:ok, [{:application, :tame_nng, app}]} =
    :file.consult(to_charlist(Path.expand("src/tame_nng.app.src", __DIR__)))

  @version to_string(app[:vsn])
  @description to_string(app[:description])

  def project do
    [
      app: :tame_nng,
      version: @version,
      description: @description,
      elixir: "~> 1.14",
      build_path: "_build/mix",
      compilers: [:tame_nng_native] ++ Mix.compilers(),
      erlc_options: [:debug_info],
      deps: [{:tame, path: "../.."}, {:tame_labs, path: "../../labs", only: :dev}]
    ]
  end

  def application do
    [mod: {:tame_nng_app, []}, registered: [:tame_nng_sup]] ++
      if(Mix.env() == :test, do: [extra_applications: [:crypto]], else: [])
  end
end
