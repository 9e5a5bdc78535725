defmodule Tame.Audit.Input do
  @moduledoc """
  The arguments of an audited function, as a command line names them; `tame_audit_input` makes them.

      iex> Tame.Audit.Input.parse("=sha256,binary")
      {:ok, {"=sha256,binary", [{:literal, :sha256}, :binary]}}

      iex> Tame.Audit.Input.parse("jsn")
      {:error, ~s(--input jsn: unknown generator "jsn", expected some of: binary, json, utf8, list, map, integer, iolist, term; or =TERM)}
  """

  @names ~w(binary json utf8 list map integer iolist term)a

  @type t :: {about :: String.t(), [atom() | {:literal, term()}] | {:file, Path.t()}}

  @doc "The generators there are."
  @spec names() :: [atom()]
  def names, do: @names

  @doc "Generators with commas between them, one for each argument or one for all; `=TERM` is that Erlang term."
  @spec parse(String.t()) :: {:ok, t()} | {:error, String.t()}
  def parse(text) do
    text
    |> words()
    |> Enum.reduce_while({:ok, []}, fn word, {:ok, all} ->
      case generator(word) do
        {:ok, one} -> {:cont, {:ok, all ++ [one]}}
        {:error, why} -> {:halt, {:error, "--input #{text}: #{why}"}}
      end
    end)
    |> case do
      {:ok, []} -> {:error, "--input #{text}: expected at least one generator"}
      {:ok, all} -> {:ok, {text, all}}
      error -> error
    end
  end

  @doc "A file whose value is `fn size -> arguments end`."
  @spec file(Path.t()) :: {:ok, t()} | {:error, String.t()}
  def file(path) do
    with :ok <- regular(path, "--input-file"),
         do: {:ok, {Path.basename(path), {:file, Path.expand(path)}}}
  end

  @doc "Whether what `switch` names is a file."
  @spec regular(Path.t(), String.t()) :: :ok | {:error, String.t()}
  def regular(path, switch) do
    cond do
      File.regular?(path) -> :ok
      File.dir?(path) -> {:error, "#{switch} #{path}: a folder, expected a file"}
      true -> {:error, "#{switch} #{path}: there is no such file"}
    end
  end

  @doc "The largest size of an input, in bytes."
  @spec most(t()) :: pos_integer()
  def most({_about, {:file, _}}), do: :tame_audit_input.most(:file)
  def most({_about, generators}), do: :tame_audit_input.most(generators)

  @doc """
  Whether an input can be as large as `up_to`; `word` is what it is for.

      iex> {:ok, input} = Tame.Audit.Input.parse("integer")
      iex> Tame.Audit.Input.reaches(input, "erlang:abs/1", 300_000)
      {:error, "erlang:abs/1: up to 300000 bytes: expected at most 262144, the largest integer that is made"}
  """
  @spec reaches(t(), String.t(), nil | pos_integer()) :: :ok | {:error, String.t()}
  def reaches({about, _} = input, word, up_to) do
    most = most(input)

    if up_to == nil or up_to <= most,
      do: :ok,
      else:
        {:error,
         "#{word}: up to #{up_to} bytes: expected at most #{most}, the largest #{about} that is made"}
  end

  # A comma within brackets belongs to the term: pieces are joined until they are one.
  defp words(text), do: text |> String.split(",") |> join()

  defp join(["=" <> _ = word, next | rest]) do
    if match?({:ok, _}, term(word)),
      do: [word | join([next | rest])],
      else: join([word <> "," <> next | rest])
  end

  defp join([word | rest]), do: [word | join(rest)]
  defp join([]), do: []

  defp generator("=" <> _ = word) do
    with {:ok, term} <- term(word), do: {:ok, {:literal, term}}
  end

  defp generator(word) do
    case Enum.find(@names, &(Atom.to_string(&1) == word)) do
      nil ->
        {:error,
         "unknown generator #{inspect(word)}, expected some of: #{Enum.join(@names, ", ")}; or =TERM"}

      name ->
        {:ok, name}
    end
  end

  defp term("=" <> text) do
    with {:ok, tokens, _} <- :erl_scan.string(String.to_charlist(text <> ".")),
         {:ok, term} <- :erl_parse.parse_term(tokens) do
      {:ok, term}
    else
      _ -> {:error, "=#{text} is no Erlang term"}
    end
  end
end
