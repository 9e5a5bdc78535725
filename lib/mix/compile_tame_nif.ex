defmodule Mix.Tasks.Compile.TameNif do
  @moduledoc """
  Builds a project's native library with make.

      def project do
        [
          compilers: [:tame_nif] ++ Mix.compilers(),
          tame_nif: "priv/my_nif.so",
          ...

  `tame_nif` is the target that make is asked for, in the folder of `mix.exs`, or a list of targets. The Makefile gets two variables:

    * `ERL_INCLUDE` - the folder that holds `erl_nif.h`
    * `TAME_INCLUDE` - the folder that holds `tame.h`

  What make prints is shown. A target that cannot be made ends the compilation with exit status 1. `mix clean` removes what was made.
  """

  use Mix.Task.Compiler

  # In an umbrella: in each app, and not in the root.
  @recursive true

  # A make that runs Mix gives its jobs to the makes below it, and this is not one: Mix stands between.
  @own [{"MAKEFLAGS", nil}, {"MFLAGS", nil}, {"MAKELEVEL", nil}]

  @impl true
  def run(_args) do
    targets = targets(Mix.Project.config()[:tame_nif])
    make = System.find_executable("make") || Mix.raise("make is not installed: tame_nif needs it")
    arguments = ["-s" | targets ++ variables()]
    options = [into: IO.stream(), stderr_to_stdout: true, env: @own]

    case System.cmd(make, arguments, options) do
      {_, 0} ->
        # priv may be new, and is not linked into _build then.
        Mix.Project.build_structure()
        :ok

      # make has said what is wrong.
      {_, _} ->
        {:error, []}
    end
  end

  @impl true
  def clean do
    for target <- List.wrap(Mix.Project.config()[:tame_nif]),
        is_binary(target) and File.regular?(target),
        do: File.rm!(target)

    :ok
  end

  defp variables do
    erts = "erts-#{:erlang.system_info(:version)}"

    [
      "ERL_INCLUDE=#{Path.join([:code.root_dir(), erts, "include"])}",
      "TAME_INCLUDE=#{Path.expand(tame_include())}"
    ]
  end

  # Where Mix has tame; the code knows that too, but for code that was compiled with `deterministic`.
  defp tame_include do
    case Mix.Project.deps_paths() do
      %{tame: folder} -> Path.join(folder, "c_include")
      _ -> to_string(:tame.include_dir())
    end
  end

  defp targets(wanted) do
    targets = List.wrap(wanted)

    if targets == [] or not Enum.all?(targets, &(is_binary(&1) and &1 != "")) do
      Mix.raise(
        "tame_nif in mix.exs is #{inspect(wanted)}: expected make's target, such as \"priv/my_nif.so\", or a list of them"
      )
    end

    targets
  end
end
