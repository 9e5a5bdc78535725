%% Death by a thousand cuts: work as a row of short plain NIF calls that charge nothing
%% (c_src/natives/spin/thousand_cuts_nif.c). No call is slow, and the scheduler is held all the
%% same, because the VM counts a call as one reduction however long it takes.
%%
%%     1> timer:tc(tame_thousand_cuts, cuts, [10000]).
%%     {10087,ok}
-module(tame_thousand_cuts).

-export([cuts/1]).
-export([cut/1]).
-export([dirty_cpu_clock/0]).

-nifs([cut/1, dirty_cpu_clock/0]).

-on_load(load/0).

-define(CUT_US, 1000).

load() ->
    erlang:load_nif(filename:rootname(tame_labs_native:path("tame_thousand_cuts.so")), 0).

%% That much work in calls of 1 ms, the last one shorter.
-spec cuts(non_neg_integer()) -> ok.
cuts(Us) when Us > ?CUT_US ->
    ok = cut(?CUT_US),
    cuts(Us - ?CUT_US);
cuts(Us) ->
    cut(Us).

%% One call, of at most 10 ms. Raises badarg for anything else.
-spec cut(0..10000) -> ok.
cut(_Us) ->
    erlang:nif_error(nif_not_loaded).

%% Reads the clock on a dirty CPU scheduler, as erlang:monotonic_time(nanosecond) does: how much
%% later than before the call it is says how long the call waited for that scheduler.
-spec dirty_cpu_clock() -> integer().
dirty_cpu_clock() ->
    erlang:nif_error(nif_not_loaded).
