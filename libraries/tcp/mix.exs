defmodule Mix.Tasks.Compile.TameTcpNif do
  @moduledoc false
  use Mix.Task.Compiler

  @impl true
  def run(_args) do
    erts = "erts-#{:erlang.system_info(:version)}"
    include = Path.join([to_string(:code.root_dir()), erts, "include"])
    tame = Path.expand(to_string(:tame.include_dir()))
    make = ["-s", "priv/tame_tcp_nif.so", "ERL_INCLUDE=#{include}", "TAME_INCLUDE=#{tame}"]

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
      compilers: [:tame_tcp_nif] ++ Mix.compilers(),
      erlc_options: [:debug_info],
      deps: [{:tame, path: "../.."}, {:tame_labs, path: "../../labs", only: :dev}]
    ]
  end

  def application do
    [mod: {:tame_tcp_app, []}, registered: [:tame_tcp_sup]] ++
      if(Mix.env() == :test, do: [extra_applications: [:crypto, :proper]], else: [])
  end
end
