%% Binds what bench/limit.exs calls (bench_limit_nif.c); nothing else.
-module(bench_limit).

-export([echo/1]).
-export([echo_dirty/1]).
-export([spin/1]).

-nifs([echo/1, echo_dirty/1, spin/1]).

-on_load(load/0).

load() ->
    erlang:load_nif(filename:join(filename:dirname(code:which(?MODULE)), ?MODULE_STRING), 0).

-spec echo(Term) -> Term.
echo(_Term) ->
    erlang:nif_error(nif_not_loaded).

%% The same on a dirty CPU scheduler.
-spec echo_dirty(Term) -> Term.
echo_dirty(_Term) ->
    erlang:nif_error(nif_not_loaded).

%% Keeps its thread for that many ns, 10^9 at most.
-spec spin(non_neg_integer()) -> ok.
spin(_Ns) ->
    erlang:nif_error(nif_not_loaded).
