defmodule Tame.Audit.Conform.Samples do
  @moduledoc """
  Arguments that a user knows a function to take: the file of `--inputs`.

      [
        {"fxml_stream:parse_element/1", ["<a>text</a>"]},
        {"fast_yaml:decode/2", ["a: 1", [:plain_as_atom]]}
      ]

  Each entry is a function and a list of its arguments; a function may have several. They are called as they are and
  changed.
  """

  alias Tame.Audit.Policy
  alias Tame.FunctionName

  @type t :: [{mfa(), [term()]}]

  @doc "Reads the file; none without a path. The error is one line that names the file and the entry."
  @spec read(nil | Path.t()) :: {:ok, t()} | {:error, String.t()}
  def read(nil), do: {:ok, []}

  def read(path) do
    with {:ok, entries} <- Policy.list(path, "--inputs", "functions with their arguments"),
         do: Policy.each(entries, &entry/1, "#{path}: ")
  end

  defp entry({text, args}) when is_binary(text) and is_list(args) do
    with {:ok, {_, _, arity} = function} <- FunctionName.parse(text) do
      if length(args) == arity,
        do: {:ok, {function, args}},
        else: {:error, "#{text}: expected a list of #{arity} arguments, got #{length(args)}"}
    end
  end

  defp entry(other),
    do:
      {:error, "expected {\"module:function/arity\", [argument]}, got: #{inspect(other, limit: 5)}"}
end
