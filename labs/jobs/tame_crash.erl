%% A NIF library with a fault in it (c_src/natives/crash/crash_nif.c), for the isolation lab, which
%% runs it in a host.
-module(tame_crash).

-export([echo/1]).
-export([crash/0]).

-nifs([echo/1, crash/0]).

-on_load(load/0).

load() ->
    erlang:load_nif(filename:rootname(tame_labs_native:path("tame_crash.so")), 0).

%% Returns its argument.
-spec echo(Term) -> Term.
echo(_Term) ->
    erlang:nif_error(nif_not_loaded).

%% Reads from address 0. Isolated it raises {tame, {crashed, _}}; of its own it ends the VM.
-spec crash() -> no_return().
crash() ->
    erlang:nif_error(nif_not_loaded).
