%% Binds the least that a call to another core costs (bench_bare_nif.c); nothing else.
-module(bench_bare).

-export([start/1]).
-export([stop/0]).
-export([echo/1, echo/2]).
-export([echo_1us/1]).

-nifs([start/1, stop/0, echo/2]).

-on_load(load/0).

load() ->
    erlang:load_nif(filename:join(filename:dirname(code:which(?MODULE)), ?MODULE_STRING), 0).

%% Until stop/0 a thread waits for calls. It spins, or sleeps after 0.1 ms without one.
-spec start(spins | sleeps) -> ok.
start(_How) ->
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
