defmodule Tame.Test.Places do
  @moduledoc false
  # Builds natives/places_nif.c with its module, which is on the code path afterwards. `loads: :later` makes one
  # whose library is loaded by a function that its application calls, and not by -on_load; `loads: :given` one whose
  # application also says what the library is given. `stripped: true` leaves it no debug_info.

  alias Tame.Test.CLibrary

  @source Path.expand("natives/places_nif.c", __DIR__)

  def build!(module, options \\ []) do
    loads = Keyword.get(options, :loads, :on_load)
    folder = CLibrary.module!(module, @source, erlang(module, loads))
    beam = Path.join(folder, "#{module}.beam")

    if options[:stripped] do
      {:ok, {^module, stripped}} = :beam_lib.strip(File.read!(beam))
      File.write!(beam, stripped)
    end

    folder
  end

  defp erlang(module, loads) do
    """
    -module(#{module}).
    -export([new_cell/1, sum/1, meet/1, arrive/1, tell/2, pause_ms/1, atom/1, given/1, loader/1, paused/1, stay/1, leave/2]).
    #{loading(loads)}
    new_cell(_) -> erlang:nif_error(not_loaded).
    sum(_) -> erlang:nif_error(not_loaded).
    meet(_) -> erlang:nif_error(not_loaded).
    arrive(_) -> erlang:nif_error(not_loaded).
    tell(_, _) -> erlang:nif_error(not_loaded).
    pause_ms(_) -> erlang:nif_error(not_loaded).
    leave(_, _) -> erlang:nif_error(not_loaded).
    atom(_) -> erlang:nif_error(not_loaded).
    given(_) -> erlang:nif_error(not_loaded).
    loader(_) -> erlang:nif_error(not_loaded).
    %% This module stays on the caller's stack.
    paused(Ms) -> [pause_ms(Ms)].
    stay(Fun) -> [receive go -> Fun() end].
    """
  end

  defp loading(:on_load) do
    """
    -on_load(start/0).
    -export([start/0, load/2]).
    load(Path, Info) -> erlang:load_nif(Path, Info).
    start() -> load(filename:rootname(code:which(?MODULE)), 0).
    """
  end

  defp loading(:later) do
    """
    -export([start/0]).
    start() -> erlang:load_nif(filename:rootname(code:which(?MODULE)), 0).
    """
  end

  defp loading(:given) do
    """
    -export([start/1]).
    start(Info) -> erlang:load_nif(filename:rootname(code:which(?MODULE)), Info).
    """
  end
end
