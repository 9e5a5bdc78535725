%% Binds the clock of bench/limit.exs (bench_clock_nif.c); nothing else.
-module(bench_clock).

-export([ticks/2]).

-nifs([ticks/2]).

-on_load(load/0).

load() ->
    erlang:load_nif(filename:join(filename:dirname(code:which(?MODULE)), ?MODULE_STRING), 0).

%% Sends the caller that many messages `tick', one every PeriodNs.
-spec ticks(pos_integer(), non_neg_integer()) -> ok.
ticks(_PeriodNs, _Ticks) ->
    erlang:nif_error(nif_not_loaded).
