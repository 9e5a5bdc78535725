%% cowboy with a stream handler: neither a router nor a process for a request; what a request needs
%% is done by its connection's process, one after the other. A server of the load lab, see
%% Tame.Load.Server.
-module(tame_load_cowboy_stream).

-export([protocols/0]).
-export([start/2]).

%% cowboy_stream.
-export([init/3]).
-export([data/4]).
-export([info/3]).
-export([terminate/3]).
-export([early_error/5]).

-spec protocols() -> [h1 | h2].
protocols() ->
    [h1, h2].

-spec start(inet:port_number(), h1 | h2) -> {ok, inet:port_number()} | {error, term()}.
start(Port, _Protocol) ->
    tame_load_cowboy:listen(?MODULE, Port, #{stream_handlers => [?MODULE]}).

-spec init(term(), map(), term()) -> {[term()], none}.
init(_Stream, #{path := Path}, _Options) ->
    {Status, Body} = tame_load_work:answer(Path),
    Headers = #{
        <<"content-type">> => <<"text/plain">>,
        <<"content-length">> => integer_to_binary(byte_size(Body))
    },
    {[{response, Status, Headers, Body}, stop], none}.

-spec data(term(), term(), binary(), none) -> {[], none}.
data(_Stream, _Final, _Data, State) ->
    {[], State}.

-spec info(term(), term(), none) -> {[], none}.
info(_Stream, _Message, State) ->
    {[], State}.

-spec terminate(term(), term(), none) -> ok.
terminate(_Stream, _Reason, _State) ->
    ok.

-spec early_error(term(), term(), map(), Response, term()) -> Response.
early_error(_Stream, _Reason, _Request, Response, _Options) ->
    Response.
