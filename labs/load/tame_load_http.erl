%% tame_http (libraries/http): the protocol is native, and one process answers all requests, one
%% after the other. A server of the load lab, see Tame.Load.Server.
-module(tame_load_http).

-export([protocols/0]).
-export([start/2]).
-export([listen/2]).
%% The handler.
-export([answer/1]).

-spec protocols() -> [h1 | h2].
protocols() ->
    [h1, h2].

-spec start(inet:port_number(), h1 | h2) -> {ok, inet:port_number()} | {error, term()}.
start(Port, _Protocol) ->
    listen(Port, #{run => acceptor}).

%% Listens on the loopback interface; for all forms of tame_http.
-spec listen(inet:port_number(), map()) -> {ok, inet:port_number()} | {error, term()}.
listen(Port, Options) ->
    {ok, _} = application:ensure_all_started(tame_http),
    Common = #{ip => {127, 0, 0, 1}, port => Port, handler => fun ?MODULE:answer/1},
    case tame_http:start(maps:merge(Common, Options)) of
        {ok, Server} -> {ok, tame_http:port(Server)};
        {error, Reason} -> {error, Reason}
    end.

-spec answer(map()) -> {200..599, [{binary(), binary()}], binary()}.
answer(#{path := Path}) ->
    {Status, Body} = tame_load_work:answer(Path),
    {Status, [{<<"content-type">>, <<"text/plain">>}], Body}.
