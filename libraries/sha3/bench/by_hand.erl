%% Binds the NIF by hand of the bench (by_hand_nif.c); nothing else.
-module(by_hand).

-export([sha3_256/1]).

-nifs([sha3_256/1]).

-on_load(load/0).

load() ->
    erlang:load_nif("build/bench/by_hand", 0).

%% At most 64 KiB.
-spec sha3_256(iodata()) -> binary().
sha3_256(_Data) ->
    erlang:nif_error(nif_not_loaded).
