defmodule Tame.Load.TameHTTP do
  @moduledoc "Where tame_http is, the HTTP server in a NIF; see `Tame.TreeLibrary`. The labs need nothing of it before that."

  alias Tame.TreeLibrary

  @library %{
    app: :tame_http,
    folder: "libraries/http",
    natives: ["tame_http.so"],
    needs: "cargo"
  }

  @doc "Folders of code that a VM needs besides its own for tame_http: none where there is no tame_http, or where it is in the path."
  @spec code_path() :: [Path.t()]
  def code_path, do: TreeLibrary.code_path(@library)

  @doc "The same, or a line that says how to have it."
  @spec find() :: {:ok, [Path.t()]} | {:error, String.t()}
  def find, do: TreeLibrary.find(@library)
end
