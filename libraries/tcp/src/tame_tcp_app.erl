%% Starts the readers. One that dies closes the sockets that wait with it, and no others.
-module(tame_tcp_app).
-behaviour(application).

-export([start/2, stop/1]).

-spec start(application:start_type(), term()) -> {ok, pid()} | {error, term()}.
start(_, _) ->
    tame_fd_readers:start_link(tame_tcp_sup, tame_tcp_nif).

-spec stop(term()) -> ok.
stop(_) ->
    ok.
