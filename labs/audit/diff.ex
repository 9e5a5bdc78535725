defmodule Tame.Audit.Diff do
  @moduledoc """
  What changed between the libraries of a saved audit and those found now. Pure, but for reading the file.
  """

  alias Tame.Audit.Library

  @doc "The libraries of a file that `mix tame.audit --json` wrote; nil without a path."
  @spec read(nil | Path.t()) :: {:ok, nil | [map()]} | {:error, String.t()}
  def read(nil), do: {:ok, nil}

  def read(path) do
    with {:ok, text} <- file(path), {:ok, saved} <- decode(text, path) do
      case saved do
        %{"tool" => "tame.audit", "format" => 1, "libraries" => libraries} ->
          if is_list(libraries) and Enum.all?(libraries, &library?/1),
            do: {:ok, libraries},
            else: {:error, "#{path}: its libraries are not those that mix tame.audit --json writes"}

        %{"tool" => "tame.audit", "format" => format} ->
          {:error, "#{path}: format #{inspect(format)} is not known here, expected 1"}

        _ ->
          {:error, "#{path}: expected a file written by mix tame.audit --json"}
      end
    end
  end

  # What lines/2 reads of a library.
  defp library?(%{"module" => module, "nif_version" => version, "can" => can} = library)
       when is_binary(module) and is_map(can) do
    text?(version) and Enum.all?(Map.values(can), &(is_boolean(&1) or text?(&1))) and
      is_list(library["functions"]) and Enum.all?(library["functions"], &function?/1)
  end

  defp library?(_other), do: false

  defp function?(%{"name" => name, "arity" => arity, "kind" => kind}),
    do: is_binary(name) and is_integer(arity) and is_binary(kind)

  defp function?(_other), do: false

  defp text?(text), do: is_binary(text) or text == :null

  @doc """
  The changes, a line each; none when nothing changed.

      iex> old = [%{"module" => "m", "nif_version" => "2.16", "can" => %{"yields" => false},
      ...>   "functions" => [%{"name" => "a", "arity" => 1, "kind" => "normal"}]}]
      iex> new = %Tame.Audit.Library{module: "m", path: "m.so", nif_version: "2.16", can: [yields: true],
      ...>   functions: [%{name: "a", arity: 1, kind: :dirty_cpu}]}
      iex> Tame.Audit.Diff.lines(old, [new])
      ["m: a/1 was normal and is dirty_cpu", "m: yields was false and is true"]
  """
  @spec lines([map()], [Library.t()]) :: [String.t()]
  def lines(old, new) do
    old = Map.new(old, &{&1["module"], &1})
    new = Map.new(new, &{&1.module, saved(&1)})

    Enum.flat_map(Enum.sort(Enum.uniq(Map.keys(old) ++ Map.keys(new))), fn module ->
      case {old[module], new[module]} do
        {nil, _} -> ["#{module}: new"]
        {_, nil} -> ["#{module}: gone"]
        {old, new} -> Enum.map(library(old, new), &"#{module}: #{&1}")
      end
    end)
  end

  defp library(old, new) do
    functions(kinds(old), kinds(new)) ++
      was("NIF version", old["nif_version"], new["nif_version"]) ++
      Enum.flat_map(Enum.sort(Map.keys(new["can"])), fn key ->
        was(words(key), old["can"][key], new["can"][key])
      end)
  end

  defp functions(old, new) do
    Enum.flat_map(Enum.sort(Enum.uniq(Map.keys(old) ++ Map.keys(new))), fn name ->
      case {old[name], new[name]} do
        {nil, kind} -> ["#{name} is new, #{kind}"]
        {_, nil} -> ["#{name} is gone"]
        {old, new} -> was(name, old, new)
      end
    end)
  end

  defp was(_what, same, same), do: []
  defp was(what, old, new), do: ["#{what} was #{text(old)} and is #{text(new)}"]

  defp text(nil), do: "unknown"
  defp text(:null), do: "unknown"
  defp text(value), do: to_string(value)

  defp words(key), do: String.replace(key, "_", " ")

  defp kinds(library),
    do: Map.new(library["functions"], &{"#{&1["name"]}/#{&1["arity"]}", &1["kind"]})

  # As it would be when read from a file.
  defp saved(library) do
    %{
      "nif_version" => library.nif_version || :null,
      "can" =>
        Map.new(library.can, fn {key, value} ->
          {to_string(key), if(value == nil, do: :null, else: value)}
        end),
      "functions" =>
        for(
          f <- library.functions,
          do: %{"name" => f.name, "arity" => f.arity, "kind" => to_string(f.kind)}
        )
    }
  end

  defp file(path) do
    with {:error, reason} <- File.read(path),
         do: {:error, "cannot read #{path}: #{:file.format_error(reason)}"}
  end

  defp decode(text, path) do
    with {:error, byte} <- :tame_json.decode(text), do: {:error, "#{path}: no JSON at byte #{byte}"}
  end
end
