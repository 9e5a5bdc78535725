defmodule Tame.FunctionName do
  @moduledoc """
  Functions as people write them on a command line, in Erlang's way and in Elixir's.
  """

  @erlang ~r/^:?([a-z][\w@]*)[:.]([a-z_][\w@?!]*)\/(\d+)$/u
  @elixir ~r/^(?:Elixir\.)?([A-Z][\w.]*)[:.]([a-z_][\w?!]*)\/(\d+)$/u

  @doc """
  The function of a text; the error is one line that names it.

      iex> Enum.map(["jiffy:encode/1", "My.Nif.run/2"], &Tame.FunctionName.parse/1)
      [ok: {:jiffy, :encode, 1}, ok: {My.Nif, :run, 2}]

      iex> Tame.FunctionName.parse("jiffy")
      {:error, "jiffy: expected a function as module:function/arity"}

      iex> Tame.FunctionName.parse("jiffy:encode/256")
      {:error, "jiffy:encode/256: expected at most 255 arguments"}
  """
  @spec parse(String.t()) :: {:ok, mfa()} | {:error, String.t()}
  def parse(text) do
    case {Regex.run(@erlang, text), Regex.run(@elixir, text)} do
      {[_ | found], _} -> function(text, found)
      {nil, [_, module | found]} -> function(text, ["Elixir." <> module | found])
      {nil, nil} -> {:error, "#{text}: expected a function as module:function/arity"}
    end
  end

  @doc """
  The text of a function.

      iex> Enum.map([{:jiffy, :encode, 1}, {My.Nif, :run, 2}], &Tame.FunctionName.text/1)
      ["jiffy:encode/1", "My.Nif.run/2"]
  """
  @spec text(mfa()) :: String.t()
  def text({module, function, arity}) do
    case Atom.to_string(module) do
      "Elixir." <> name -> "#{name}.#{function}/#{arity}"
      name -> "#{name}:#{function}/#{arity}"
    end
  end

  defp function(text, [module, function, arity]) do
    case Integer.parse(arity) do
      {arity, ""} when arity <= 255 -> {:ok, {atom(module), atom(function), arity}}
      _ -> {:error, "#{text}: expected at most 255 arguments"}
    end
  end

  # An atom has at most 255 characters; no function has the empty name.
  defp atom(text) when byte_size(text) <= 255, do: String.to_atom(text)
  defp atom(_text), do: :""
end
