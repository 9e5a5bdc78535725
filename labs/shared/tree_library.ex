defmodule Tame.TreeLibrary do
  @moduledoc """
  Where a package of tame's own tree is (`libraries/`), which the labs measure and do not depend on: among the project's
  dependencies, in the folder that an environment variable names (one with its `ebin` and `priv`), or built in its own
  folder of the tree.
  """

  @typedoc "An application, its folder in the tree, the native libraries in its `priv`, and what building it needs besides."
  @type t :: %{app: atom(), folder: String.t(), natives: [String.t()], needs: String.t()}

  @doc "Folders of code that a VM needs besides its own: none where the package is not, or where it is in the path."
  @spec code_path(t()) :: [Path.t()]
  def code_path(library) do
    with {:ok, folders} <- find(library), do: folders, else: (_ -> [])
  end

  @doc "The same, or a line that says how to have it."
  @spec find(t()) :: {:ok, [Path.t()]} | {:error, String.t()}
  def find(library) do
    if :code.where_is_file(~c"#{library.app}.beam") == :non_existing,
      do: found(System.get_env(variable(library)), library),
      else: {:ok, []}
  end

  @doc "Makes it callable in this VM, and starts its application."
  @spec start(t()) :: :ok | {:error, String.t()}
  def start(library) do
    with {:ok, folders} <- find(library) do
      Enum.each(folders, &Code.append_path/1)

      case Application.ensure_all_started(library.app) do
        {:ok, _} -> :ok
        {:error, {app, why}} -> {:error, "#{app} does not start: #{inspect(why)}"}
      end
    end
  end

  # Who names a folder means that one.
  defp found(nil, library) do
    case Enum.find(in_tree(library), &whole?(&1, library)) do
      nil -> {:error, missing(library)}
      folder -> {:ok, [Path.join(folder, "ebin")]}
    end
  end

  defp found(folder, library) do
    if whole?(folder, library),
      do: {:ok, [Path.join(Path.expand(folder), "ebin")]},
      else:
        {:error,
         "#{variable(library)}=#{folder}: expected a folder with #{Enum.join(files(library), " and ")}"}
  end

  defp whole?(folder, library),
    do: Enum.all?(files(library), &File.exists?(Path.join(folder, &1)))

  defp files(library), do: ["ebin/#{library.app}.beam" | for(n <- library.natives, do: "priv/#{n}")]

  defp variable(library), do: library.app |> to_string() |> String.upcase()

  defp in_tree(library) do
    built = "#{library.folder}/_build/mix/{prod,dev,test}/lib/#{library.app}"

    case :tame_labs_native.source_dir() do
      {:ok, labs} -> labs |> Path.dirname() |> Path.join(built) |> Path.wildcard()
      :unknown -> []
    end
  end

  defp missing(library) do
    "there is no #{library.app} here: run MIX_ENV=prod mix compile in #{library.folder} of tame's repository, which needs " <>
      "#{library.needs}, or set #{variable(library)} to the folder with its ebin and priv"
  end
end
