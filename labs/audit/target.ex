defmodule Tame.Audit.Target do
  @moduledoc """
  What an audit is asked to look at, from the words of a command line.

      iex> Tame.Audit.Target.parse("jiffy:encode/1")
      {:ok, {:function, {:jiffy, :encode, 1}}}

      iex> Tame.Audit.Target.parse("priv/my_nif.so")
      {:ok, {:file, "priv/my_nif.so"}}

  A word is a function, a `.so`, a folder (of a release), an application, or a module, tried in that order.
  """

  alias Tame.FunctionName

  @type t ::
          {:function, mfa()}
          | {:file, Path.t()}
          | {:folder, Path.t()}
          | {:application, atom()}
          | {:module, module()}
          | :all

  @doc "What a word means here. The error is one line that names it."
  @spec parse(String.t()) :: {:ok, t()} | {:error, String.t()}
  def parse(word) do
    cond do
      function?(word) ->
        function(word)

      String.ends_with?(word, ".so") ->
        {:ok, {:file, word}}

      String.contains?(word, "/") and not File.exists?(word) ->
        {:error, "there is no folder #{word}"}

      String.contains?(word, "/") and not File.dir?(word) ->
        {:error, no_target(word)}

      String.contains?(word, "/") ->
        {:ok, {:folder, word}}

      true ->
        name(word)
    end
  end

  defp no_target(file) do
    "#{file} is a file and no .so, expected module:function/arity, a .so, a folder, an application or a module"
  end

  defp function?(word), do: word =~ ~r/^[^\/]+[:.][^\/]+\/[^\/]+$/ and not File.exists?(word)

  defp function(word) do
    with {:ok, function} <- FunctionName.parse(word), do: {:ok, {:function, function}}
  end

  # A name is looked for before it becomes an atom of anything that does not exist.
  defp name(":" <> word), do: name(word)

  defp name(word) do
    plain = String.replace_prefix(word, "Elixir.", "")
    module = atom(if plain =~ ~r/^[A-Z]/, do: "Elixir." <> plain, else: word)

    cond do
      byte_size(word) > 200 -> {:error, "#{String.slice(word, 0, 40)}…: too long for a name"}
      is_list(:code.lib_dir(module)) -> {:ok, {:application, module}}
      :code.which(module) != :non_existing -> {:ok, {:module, module}}
      File.dir?(word) -> {:ok, {:folder, word}}
      true -> {:error, "#{word}: no application, module or folder of that name is here"}
    end
  end

  defp atom(text) when byte_size(text) <= 255, do: String.to_atom(text)
  defp atom(_text), do: :""
end
