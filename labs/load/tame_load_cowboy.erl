%% cowboy with a plain handler: a router, and a process for each request. HTTP/1.1 and HTTP/2, which
%% a client begins at once (prior knowledge). A server of the load lab, see Tame.Load.Server.
-module(tame_load_cowboy).

-export([protocols/0]).
-export([start/2]).
-export([listen/3]).

%% cowboy_handler.
-export([init/2]).

%% More than any run sends: cowboy would close the connection, or refuse the frames of a client that
%% is faster than a browser.
-define(MANY, 1_000_000_000).
-define(RATE, {?MANY, 10_000}).

-spec protocols() -> [h1 | h2].
protocols() ->
    [h1, h2].

-spec start(inet:port_number(), h1 | h2) -> {ok, inet:port_number()} | {error, term()}.
start(Port, _Protocol) ->
    Dispatch = cowboy_router:compile([{'_', [{'_', ?MODULE, []}]}]),
    listen(?MODULE, Port, #{env => #{dispatch => Dispatch}}).

%% Listens on the loopback interface; for both forms of cowboy.
-spec listen(atom(), inet:port_number(), map()) -> {ok, inet:port_number()} | {error, term()}.
listen(Name, Port, Options) ->
    {ok, _} = application:ensure_all_started(cowboy),
    Transport = #{
        socket_opts => [{ip, {127, 0, 0, 1}}, {port, Port}, {backlog, 1024}],
        max_connections => infinity
    },
    Limits = #{
        max_keepalive => ?MANY,
        max_received_frame_rate => ?RATE,
        idle_timeout => infinity,
        request_timeout => infinity
    },
    case cowboy:start_clear(Name, Transport, maps:merge(Limits, Options)) of
        {ok, _} -> {ok, ranch:get_port(Name)};
        {error, Reason} -> {error, Reason}
    end.

-spec init(map(), term()) -> {ok, map(), term()}.
init(#{path := Path} = Request, State) ->
    {Status, Body} = tame_load_work:answer(Path),
    Headers = #{<<"content-type">> => <<"text/plain">>},
    {ok, cowboy_req:reply(Status, Headers, Body, Request), State}.
