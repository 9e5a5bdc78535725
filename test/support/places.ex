defmodule Tame.Test.Places do
  @moduledoc false
  # Builds natives/places_nif.c with its module, which is on the code path afterwards. `loads: :later` makes one
  # whose library is loaded by a function that its application calls, and not by -on_load.

  alias Tame.Test.CLibrary

  @source Path.expand("natives/places_nif.c", __DIR__)

  def build!(module, options \\ []) do
    CLibrary.module!(module, @source, erlang(module, Keyword.get(options, :loads, :on_load)))
  end

  defp erlang(module, loads) do
    """
    -module(#{module}).
    -export([new_cell/1, sum/1, meet/1, tell/2, pause_ms/1, atom/1, paused/1, start/0, stay/1]).
    #{if loads == :on_load, do: "-on_load(start/0). -export([load/2]).", else: ""}
    start() -> erlang:load_nif(filename:rootname(code:which(?MODULE)), 0).
    #{if loads == :on_load, do: "load(Path, Info) -> erlang:load_nif(Path, Info).", else: ""}
    new_cell(_) -> erlang:nif_error(not_loaded).
    sum(_) -> erlang:nif_error(not_loaded).
    meet(_) -> erlang:nif_error(not_loaded).
    tell(_, _) -> erlang:nif_error(not_loaded).
    pause_ms(_) -> erlang:nif_error(not_loaded).
    atom(_) -> erlang:nif_error(not_loaded).
    %% This module stays on the caller's stack.
    paused(Ms) -> [pause_ms(Ms)].
    stay(Fun) -> [receive go -> Fun() end].
    """
  end
end
