%% tame_http with a static route, which its native half answers without Erlang: hello alone. A
%% server of the load lab, see Tame.Load.Server.
-module(tame_load_http_static).

-export([protocols/0]).
-export([start/2]).

-spec protocols() -> [h1 | h2].
protocols() ->
    [h1, h2].

-spec start(inet:port_number(), h1 | h2) -> {ok, inet:port_number()} | {error, term()}.
start(Port, _Protocol) ->
    Hello = {200, [{<<"content-type">>, <<"text/plain">>}], <<"Hello world">>},
    tame_load_http:listen(Port, #{static => #{<<"/hello">> => Hello}}).
