defmodule Mix.Tasks.Compile.JsonLinesNif do
  use Mix.Task.Compiler

  @impl true
  def run(_argv) do
    erts = "erts-#{:erlang.system_info(:version)}"
    include = Path.join([:code.root_dir(), erts, "include"])
    tame = Path.expand(to_string(:tame.include_dir()))

    case System.cmd(
           "make",
           ["-s", "priv/json_lines.so", "ERL_INCLUDE=#{include}", "TAME_INCLUDE=#{tame}"],
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

defmodule JsonLines.MixProject do
  use Mix.Project

  def project do
    [
      app: :json_lines,
      version: "1.0.0",
      elixir: "~> 1.14",
      compilers: [:json_lines_nif] ++ Mix.compilers(),
      elixirc_paths: if(Mix.env() == :test, do: ["test/support"], else: []),
      # The labs measure; nothing in production needs them.
      deps: [{:tame, path: "../.."}, {:tame_labs, path: "../../labs", only: :dev}]
    ]
  end

  # Debian's jiffy, to compare with.
  def application, do: [extra_applications: applications(Mix.env())]

  defp applications(:test), do: [:proper, :jiffy]
  defp applications(:dev), do: [:jiffy]
  defp applications(:prod), do: []
end
