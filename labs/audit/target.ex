defmodule Tame.Audit.Target do
  @moduledoc """
  What an audit is asked to look at, from the words of a command line.

      iex> Tame.Audit.Target.parse("jiffy:encode/1")
      {:ok, {:function, {:jiffy, :encode, 1}}}

      iex> Tame.Audit.Target.parse("priv/my_nif.so")
      {:ok, {:file, "priv/my_nif.so"}}

  A word is a function, a `.so`, a folder (of a release), an application, or a module, tried in that order.
  """

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
      function?(word) -> function(word)
      String.ends_with?(word, ".so") -> {:ok, {:file, word}}
      String.contains?(word, "/") and not File.dir?(word) -> {:error, "there is no folder #{word}"}
      String.contains?(word, "/") -> {:ok, {:folder, word}}
      true -> name(word)
    end
  end

  @doc """
  A function as people write it.

      iex> Enum.map([{:jiffy, :encode, 1}, {My.Nif, :run, 2}], &Tame.Audit.Target.function_text/1)
      ["jiffy:encode/1", "My.Nif.run/2"]
  """
  @spec function_text(mfa()) :: String.t()
  def function_text({module, function, arity}) do
    case Atom.to_string(module) do
      "Elixir." <> name -> "#{name}.#{function}/#{arity}"
      name -> "#{name}:#{function}/#{arity}"
    end
  end

  @erlang ~r/^:?([a-z][\w@]*)[:.]([a-z_][\w@?!]*)\/(\d+)$/u
  @elixir ~r/^(?:Elixir\.)?([A-Z][\w.]*)[:.]([a-z_][\w?!]*)\/(\d+)$/u

  defp function?(word), do: word =~ ~r/^[^\/]+[:.][^\/]+\/[^\/]+$/ and not File.exists?(word)

  defp function(word) do
    case {Regex.run(@erlang, word), Regex.run(@elixir, word)} do
      {[_, module, function, arity], _} ->
        {:ok, {:function, {atom(module), atom(function), String.to_integer(arity)}}}

      {nil, [_, module, function, arity]} ->
        {:ok, {:function, {atom("Elixir." <> module), atom(function), String.to_integer(arity)}}}

      {nil, nil} ->
        {:error, "#{word}: expected a function as module:function/arity"}
    end
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
