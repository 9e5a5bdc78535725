defmodule Copycat do
  @moduledoc "Copies a binary in C."

  @on_load :load

  def load, do: :erlang.load_nif(:filename.join(:code.priv_dir(:copycat), ~c"copycat"), 0)

  @doc "A fresh copy of `binary`."
  @spec copy(binary()) :: binary()
  def copy(_binary), do: :erlang.nif_error(:nif_not_loaded)
end
