defmodule Mix.Tasks.Compile.ZstdNif do
  use Mix.Task.Compiler

  @impl true
  def run(_argv) do
    erts = "erts-#{:erlang.system_info(:version)}"
    include = Path.join([:code.root_dir(), erts, "include"])
    tame = Path.expand(to_string(:tame.include_dir()))

    case System.cmd(
           "make",
           ["-s", "priv/zstd_nif.so", "ERL_INCLUDE=#{include}", "TAME_INCLUDE=#{tame}"],
           into: IO.stream(),
           stderr_to_stdout: true
         ) do
      {_, 0} ->
        Mix.Project.build_structure()
        :ok

      # The compiler has said what is wrong.
      {_, _} ->
        {:error, []}
    end
  end
end

defmodule Zstd.MixProject do
  use Mix.Project

  def project do
    [
      app: :zstd,
      version: "1.0.0",
      elixir: "~> 1.14",
      compilers: [:zstd_nif] ++ Mix.compilers(),
      # The labs measure; nothing in production needs them.
      deps: [{:tame, path: "../.."}, {:tame_labs, path: "../../labs", only: :dev}]
    ]
  end

  def application, do: [extra_applications: if(Mix.env() == :test, do: [:proper], else: [])]
end
