%% SIGINT for tasks: trapped, it is passed on as SIGTERM, which Erlang can handle; Erlang itself
%% cannot handle SIGINT, whose default is the emulator's break menu. A second SIGINT ends the VM at
%% once with exit status 130.
-module(tame_sigint).

-export([trap/0]).
-export([restore/0]).
-export([came/0]).

-on_load(load/0).
-nifs([trap/0, restore/0, came/0]).

load() ->
    erlang:load_nif(filename:rootname(tame_labs_native:path("tame_sigint.so")), 0).

%% From now on, until restore/0 has been called as often as trap/0.
-spec trap() -> ok.
trap() ->
    erlang:nif_error(nif_not_loaded).

-spec restore() -> ok.
restore() ->
    erlang:nif_error(nif_not_loaded).

%% Whether a SIGINT came while it was trapped.
-spec came() -> boolean().
came() ->
    erlang:nif_error(nif_not_loaded).
