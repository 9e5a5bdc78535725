%% tame_http with a process for each request. A server of the load lab, see Tame.Load.Server.
-module(tame_load_http_process).

-export([protocols/0]).
-export([start/2]).

-spec protocols() -> [h1 | h2].
protocols() ->
    [h1, h2].

-spec start(inet:port_number(), h1 | h2) -> {ok, inet:port_number()} | {error, term()}.
start(Port, _Protocol) ->
    tame_load_http:listen(Port, #{run => process}).
