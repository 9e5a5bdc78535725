defmodule Mix.Tasks.Tame.Audit do
  use Mix.Task

  @shortdoc "Says of any NIF, without its source, what it can do and whether it blocks"

  @moduledoc """
  Says of any NIF, without its source, what it can do and whether it blocks.
  """

  alias Tame.{Audit, Options, Output, SystemInfo}
  alias Tame.Audit.{Diff, Format, Target}

  @switches [all: :flag, json: :string, diff: :string]

  @usage "nothing to audit: mix tame.audit MODULE | FILE.so | APPLICATION | FOLDER | --all | 'module:function/1' --input GENERATOR"

  @impl Mix.Task
  def run(argv) do
    Mix.Task.run("app.config")

    with {:ok, options, words} <- Options.parse_words(argv, @switches),
         :ok <- check(options[:json]),
         :ok <- Tame.Native.build(),
         {:ok, targets} <- targets(words, options),
         {:ok, old} <- old(options[:diff]),
         {:ok, result} <- Audit.static(targets, system(argv)) do
      finish(result, old, options)
    else
      {:error, message} -> Mix.raise(message)
    end
  end

  defp system(argv), do: SystemInfo.collect(Enum.join(["mix tame.audit" | argv], " "))

  defp targets([], options), do: if(options[:all], do: {:ok, [:all]}, else: {:error, @usage})

  defp targets(words, options) do
    if options[:all] do
      {:error, "--all #{hd(words)}: expected one of the two"}
    else
      Enum.reduce_while(words, {:ok, []}, fn word, {:ok, targets} ->
        case Target.parse(word) do
          {:ok, target} -> {:cont, {:ok, targets ++ [target]}}
          error -> {:halt, error}
        end
      end)
    end
  end

  defp finish(result, old, options) do
    result |> Format.text() |> IO.write()
    if old, do: result |> Format.diff(old) |> IO.write()
    keep(options[:json], Format.json(result))

    for failure <- result.failures, do: Mix.shell().error(failure)
    if result.failures != [], do: exit({:shutdown, 1})
    :ok
  end

  defp old(nil), do: {:ok, nil}
  defp old(path), do: Diff.read(path)

  defp check(nil), do: :ok
  defp check(path), do: Output.check(path)

  defp keep(nil, _json), do: :ok

  defp keep(path, json) do
    with {:error, message} <- Output.write(path, json), do: Mix.raise(message)
  end
end
