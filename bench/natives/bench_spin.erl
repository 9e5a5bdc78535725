%% Binds the hand-written references for tame_spin (bench_spin_nif.c); nothing else.
-module(bench_spin).

-export([spin/1]).
-export([dirty/1]).

-nifs([spin/1, dirty/1]).

-on_load(load/0).

load() ->
    erlang:load_nif(filename:join(filename:dirname(code:which(?MODULE)), ?MODULE_STRING), 0).

%% As tame_spin:spin_yielding/1, in slices of 1 ms by the usual hand-written form. Raises badarg
%% unless the time is a non-negative integer, in microseconds.
-spec spin(non_neg_integer()) -> ok.
spin(_Us) ->
    erlang:nif_error(nif_not_loaded).

%% Spins on a dirty CPU scheduler until as many microseconds have passed by the clock. Raises badarg
%% unless the time is a non-negative integer.
-spec dirty(non_neg_integer()) -> ok.
dirty(_Us) ->
    erlang:nif_error(nif_not_loaded).
