defmodule Tame.Load.TameHTTP do
  @moduledoc """
  Where tame_http is, the HTTP server in a NIF: among the project's dependencies, in the folder that the environment variable
  `TAME_HTTP` names (one with its `ebin` and `priv`), or built in tame's own tree (`libraries/http`). The labs need nothing of it
  before that.
  """

  @doc "Folders of code that a VM needs besides its own for tame_http: none where there is no tame_http, or where it is in the path."
  @spec code_path() :: [Path.t()]
  def code_path do
    with {:ok, folders} <- find(), do: folders, else: (_ -> [])
  end

  @doc "The same, or a line that says how to have it."
  @spec find() :: {:ok, [Path.t()]} | {:error, String.t()}
  def find do
    if :code.where_is_file(~c"tame_http.beam") == :non_existing,
      do: found(System.get_env("TAME_HTTP")),
      else: {:ok, []}
  end

  # Who names a folder means that one.
  defp found(nil) do
    case Enum.find(Path.wildcard(in_tree()), &whole?/1) do
      nil -> {:error, missing()}
      folder -> {:ok, [Path.join(folder, "ebin")]}
    end
  end

  defp found(folder) do
    if whole?(folder),
      do: {:ok, [Path.join(Path.expand(folder), "ebin")]},
      else: {:error, "TAME_HTTP=#{folder}: expected a folder with ebin/tame_http.beam and priv/tame_http.so"}
  end

  defp whole?(folder) do
    File.exists?(Path.join(folder, "ebin/tame_http.beam")) and
      File.exists?(Path.join(folder, "priv/tame_http.so"))
  end

  defp in_tree do
    tree = Path.dirname(to_string(:tame_labs_native.source_dir()))
    Path.join(tree, "libraries/http/_build/mix/{prod,dev,test}/lib/tame_http")
  end

  defp missing do
    "there is no tame_http here: run MIX_ENV=prod mix compile in libraries/http of tame's repository, which needs cargo, or set " <>
      "TAME_HTTP to the folder with its ebin and priv"
  end
end
