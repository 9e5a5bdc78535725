defmodule Tame.Native do
  @moduledoc """
  Builds tame's own natives where its sources are at hand.

  The labs need them; a project that only depends on tame does not, so they are built when a lab
  first asks and not when the dependency is compiled.
  """

  @doc """
  Brings the natives up to date with their sources; quick when they are.

  The error is the compiler's own last words. Without sources (in a release) it is `:ok`: what was
  built before is used as it is.
  """
  @spec build() :: :ok | {:error, String.t()}
  def build do
    folder = Path.join(:tame_labs_native.source_dir(), "c_src")

    cond do
      not File.regular?(Path.join(folder, "Makefile")) -> :ok
      System.find_executable("make") == nil -> {:error, "no make on PATH: install make and gcc"}
      true -> make(folder)
    end
  end

  # make looks OTP up through the erl on PATH; it must be the one that runs us.
  defp make(folder) do
    erl = Path.join([:code.root_dir(), "bin", "erl"])
    out = "OUT=#{:tame_labs_native.dir()}"
    args = ["-s", "-C", folder, out, "TAME=#{:tame.source_dir()}", "ERL=#{erl}"]

    case System.cmd("make", args, stderr_to_stdout: true) do
      {_, 0} -> :ok
      {output, _} -> {:error, "the natives do not build:\n" <> last_lines(output, 15)}
    end
  end

  defp last_lines(text, count) do
    text |> String.split("\n", trim: true) |> Enum.take(-count) |> Enum.join("\n")
  end
end
