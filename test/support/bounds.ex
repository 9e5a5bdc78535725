defmodule Tame.Test.Bounds do
  @moduledoc false
  # Builds natives/bounds_nif.cpp with its module, which is on the code path afterwards.

  alias Tame.Test.CLibrary

  @source Path.expand("natives/bounds_nif.cpp", __DIR__)

  def build!(module) do
    CLibrary.module!(module, @source, erlang(module))
  end

  defp erlang(module) do
    """
    -module(#{module}).
    -export([take/2, must_take/2, spin/1, open_files/2, threads/2, where/0, crash/0, lie/1]).
    -on_load(start/0).
    start() -> erlang:load_nif(filename:rootname(code:which(?MODULE)), 0).
    take(_, _) -> erlang:nif_error(not_loaded).
    must_take(_, _) -> erlang:nif_error(not_loaded).
    spin(_) -> erlang:nif_error(not_loaded).
    open_files(_, _) -> erlang:nif_error(not_loaded).
    threads(_, _) -> erlang:nif_error(not_loaded).
    where() -> erlang:nif_error(not_loaded).
    crash() -> erlang:nif_error(not_loaded).
    lie(_) -> erlang:nif_error(not_loaded).
    """
  end
end
