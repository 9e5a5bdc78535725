%% Binds the least that a call to another core costs (bench_bare_nif.c); nothing else.
-module(bench_bare).

-export([start/0]).
-export([stop/0]).
-export([echo/1, echo/2]).
-export([echo_1us/1]).

-nifs([start/0, stop/0, echo/2]).

-on_load(load/0).

load() ->
    erlang:load_nif(filename:join(filename:dirname(code:which(?MODULE)), ?MODULE_STRING), 0).

%% From here on a thread spins, until stop/0.
-spec start() -> ok.
start() ->
    erlang:nif_error(nif_not_loaded).

-spec stop() -> ok.
stop() ->
    erlang:nif_error(nif_not_loaded).

-spec echo(binary()) -> binary().
echo(Bytes) ->
    echo(Bytes, 0).

-spec echo_1us(binary()) -> binary().
echo_1us(Bytes) ->
    echo(Bytes, 1000).

%% The thread keeps its core for that many ns before it answers.
-spec echo(binary(), non_neg_integer()) -> binary().
echo(_Bytes, _Ns) ->
    erlang:nif_error(nif_not_loaded).
