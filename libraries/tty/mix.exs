defmodule Mix.Tasks.Compile.TameTtyNif do
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
      compilers: [:tame_tty_nif] ++ Mix.compilers(),
      erlc_options: [:debug_info, :warnings_as_errors],
      deps: [{:tame, path: "../.."}]
    ]
  end

  def application,
    do: [extra_applications: if(Mix.env() == :test, do: [:proper], else: [])]
end
