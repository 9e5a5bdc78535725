%% Binds the hand-written reference for a yielding spin (c_src/natives/spin/spin_classic_nif.c);
%% nothing else.
-module(tame_spin_classic).

-export([spin_classic/1]).

-nifs([spin_classic/1]).

-on_load(load/0).

load() ->
    erlang:load_nif(filename:rootname(tame_labs_native:path("tame_spin_classic.so")), 0).

%% As tame_spin:spin_yielding/1, in slices of 1 ms by the usual hand-written form. Raises badarg
%% unless the time is a non-negative integer, in microseconds.
-spec spin_classic(non_neg_integer()) -> ok.
spin_classic(_Us) ->
    erlang:nif_error(nif_not_loaded).
