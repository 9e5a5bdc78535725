%% Keeps a CPU busy for a time in plain Erlang: the control beside tame_spin. The VM preempts it as
%% it does any process, so nobody has to suffer.
%%
%% The time is done as work, by a rate that the first call measures (about 5 ms) and the node
%% remembers, as tame_spin does.
%%
%%     1> timer:tc(tame_loop, loop, [10000]).
%%     {10213,ok}
-module(tame_loop).

-export([loop/1]).

-define(TRIES, 20).
-define(TRY_ROUNDS, 100000).

-spec loop(Us :: non_neg_integer()) -> ok.
loop(Us) ->
    rounds(Us * rounds_per_ms() div 1000).

rounds(0) -> ok;
rounds(Left) -> rounds(Left - 1).

%% The fastest try, because whatever disturbs one makes it slower.
rounds_per_ms() ->
    case persistent_term:get(?MODULE, unknown) of
        unknown ->
            FastestNs = lists:min([try_ns() || _ <- lists:seq(1, ?TRIES)]),
            Rounds = ?TRY_ROUNDS * 1_000_000 div max(FastestNs, 1),
            ok = persistent_term:put(?MODULE, Rounds),
            Rounds;
        Known ->
            Known
    end.

try_ns() ->
    Started = erlang:monotonic_time(nanosecond),
    ok = rounds(?TRY_ROUNDS),
    erlang:monotonic_time(nanosecond) - Started.
