%% Binds the hand-written references for exor (c_src/natives/exor/exor_classic_nif.c); nothing else.
%%
%% They show what tame's own exor is measured against, not how to write a NIF: exor_loop/2 and
%% memcpy/1 hold their scheduler from start to end, exor_classic/2 for several milliseconds at
%% first. Each raises badarg when an argument is not a binary or the two differ in size, and enomem.
-module(tame_exor_classic).

-export([exor_classic/2]).
-export([exor_loop/2]).
-export([memcpy/1]).

-nifs([exor_classic/2, exor_loop/2, memcpy/1]).

-on_load(load/0).

load() ->
    erlang:load_nif(filename:rootname(tame_labs_native:path("tame_exor_classic.so")), 0).

%% The exclusive or of two binaries, in slices by the classic form: a byte loop, 4 MiB at first,
%% then as many bytes as took a millisecond.
-spec exor_classic(binary(), binary()) -> binary().
exor_classic(_A, _B) ->
    erlang:nif_error(nif_not_loaded).

%% The exclusive or of two binaries in one uncut loop on the caller's scheduler.
-spec exor_loop(binary(), binary()) -> binary().
exor_loop(_A, _B) ->
    erlang:nif_error(nif_not_loaded).

%% A copy of a binary by one memcpy: what a result of that size costs at least.
-spec memcpy(binary()) -> binary().
memcpy(_A) ->
    erlang:nif_error(nif_not_loaded).
