defmodule Mix.Tasks.Compile.HttpAppNif do
  @moduledoc false
  use Mix.Task.Compiler

  @impl true
  def run(_argv) do
    erts = "erts-#{:erlang.system_info(:version)}"
    include = Path.join([to_string(:code.root_dir()), erts, "include"])
    tame = Path.expand(to_string(:tame.include_dir()))
    make = ["-s", "priv/primes.so", "ERL_INCLUDE=#{include}", "TAME_INCLUDE=#{tame}"]

    case System.cmd("make", make, into: IO.stream(), stderr_to_stdout: true) do
      {_, 0} ->
        Mix.Project.build_structure()
        :ok

      # The compiler has said what is wrong.
      {_, _} ->
        {:error, []}
    end
  end
end

defmodule HttpApp.MixProject do
  use Mix.Project

  def project do
    [
      app: :http_app,
      version: "1.0.0",
      elixir: "~> 1.14",
      compilers: [:http_app_nif] ++ Mix.compilers(),
      deps: [
        {:tame, path: "../.."},
        {:tame_http, path: "../../libraries/http"},
        {:tame_sha3, path: "../../libraries/sha3"}
      ]
    ]
  end

  def application, do: [mod: {HttpApp, []}]
end
