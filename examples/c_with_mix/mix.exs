defmodule Mix.Tasks.Compile.Copycat do
  use Mix.Task.Compiler

  @impl true
  def run(_argv) do
    File.mkdir_p!("priv")
    Mix.Project.build_structure()

    include = Path.join([:code.root_dir(), "erts-#{:erlang.system_info(:version)}", "include"])

    args =
      ~w(-O2 -Wall -Wextra -Werror -fPIC -shared -I#{include} -o priv/copycat.so c_src/copycat.c)

    case System.cmd("cc", args, stderr_to_stdout: true) do
      {_, 0} -> :ok
      {output, _} -> Mix.raise(output)
    end
  end
end

defmodule Copycat.MixProject do
  use Mix.Project

  def project do
    [
      app: :copycat,
      version: "1.0.0",
      elixir: "~> 1.14",
      compilers: [:copycat] ++ Mix.compilers(),
      elixirc_paths: elixirc_paths(Mix.env()),
      deps: [{:tame_labs, path: "../../labs", only: [:dev, :test]}]
    ]
  end

  # What knows of the labs stays out of production, as they do.
  defp elixirc_paths(:prod), do: ["lib"]
  defp elixirc_paths(_), do: ["lib", "measure"]

  def application, do: []
end
