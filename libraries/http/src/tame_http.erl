%% An HTTP/1.1 and HTTP/2 server: the protocol is native, handlers are Erlang.
%%
%%     1> Hello = fun(_Req) -> {200, #{}, <<"hello">>} end.
%%     2> {ok, S} = tame_http:start(#{port => 8080, handler => Hello}).
%%
%% A handler gets a request and returns its answer. One that fails is answered 500. README.md has
%% the options.
-module(tame_http).

-export([start/1]).
-export([start_link/1]).
-export([child_spec/1]).
-export([stop/1]).
-export([drain/2]).
-export([port/1]).
-export([info/1]).
-export([static/2]).
-export([header/2, header/3]).
-export([read_body/1, read_body/2]).
-export([reply/2]).
-export([start_reply/3]).
-export([send/2]).
-export([finish/1, finish/2]).
-export([is_alive/1]).
-export([watch/1]).
%% Internal.
-export([format_error/2]).

-export_type([server/0, options/0, handler/0, request/0, answer/0, response/0]).
-export_type([headers/0, piece/0, send/0, begun/0]).

%% The pid of a server's supervisor, or the name that it was given.
-type server() :: pid() | atom().

%% Names of headers are in lower case as binaries, in requests; in answers as the handler writes
%% them.
-type headers() :: #{iodata() => iodata()} | [{iodata(), iodata()}].

-type request() :: #{
    ref := tame_http_nif:ref(),
    method := binary(),
    %% As the client sent it, percent signs and all.
    path := binary(),
    %% Without the question mark.
    query := binary(),
    %% Those of HTTP/2 have host too.
    headers := [{binary(), binary()}],
    peer := {inet:ip_address(), inet:port_number()},
    version := 'HTTP/1.0' | 'HTTP/1.1' | 'HTTP/2',
    scheme := http | https,
    %% stream: to be read by read_body/2.
    body := binary() | stream,
    trailers := [{binary(), binary()}]
}.

%% A piece of a request's body: more comes, it was the last one, or there is none.
-type piece() ::
    {more, binary()}
    | {done, binary(), Trailers :: [{binary(), binary()}]}
    | {error, closed | body_limit | timeout}.

%% Sends a piece of an answer. Waits while the client takes too little; closed when it has left.
-type send() :: fun((iodata()) -> ok | {error, closed}).

%% An answer that start_reply/3 has begun.
-type begun() :: tame_http_answer:begun().

-type response() ::
    {
        Status :: 200..599,
        headers(),
        Body ::
            iodata()
            %% Trailers, if it returns {trailers, Headers}. Over HTTP/1.1 only those that the header
            %% trailer of the answer names.
            | {stream, fun((send()) -> term() | {trailers, headers()})}
            | {file, file:name_all()}
    }.

%% later: somebody calls reply/2.
-type answer() :: response() | later.

-type handler() :: fun((request()) -> answer()).

-type options() :: #{
    handler := handler(),
    name => atom(),
    ip => inet:ip_address(),
    port => inet:port_number(),
    tls => #{certfile := file:name_all(), keyfile := file:name_all()},
    h2c => boolean(),
    io_threads => pos_integer(),
    run => process | acceptor,
    acceptors => pos_integer(),
    credit => pos_integer(),
    max_in_flight => pos_integer(),
    max_waiting => pos_integer(),
    max_connections => pos_integer(),
    max_streams => pos_integer(),
    body => whole | stream,
    body_limit => pos_integer(),
    body_memory => pos_integer(),
    header_timeout_ms => pos_integer(),
    request_timeout_ms => pos_integer(),
    idle_timeout_ms => pos_integer(),
    wait_timeout_ms => pos_integer(),
    shutdown_ms => non_neg_integer(),
    static => #{binary() => {200..599, headers(), iodata()}}
}.

%% How long an I/O thread may take to say that it knows: an isolated one may have ended.
-define(UNREAD_MS, 5000).

%% While a body does not come: how often to look whether the I/O thread is still there.
-define(LOOK_MS, 1000).

%% Of a request whose host has ended: no other has so great a number.
-define(NO_ID, (1 bsl 64)).

%% In the function that is called: its name is what the shell shows.
-define(BADARG(Arguments), erlang:error(badarg, Arguments, [{error_info, #{}}])).

%% A server that belongs to nobody: it ends by stop/1, or with the application tame_http, which
%% this starts if need be.
-spec start(options()) -> {ok, pid()} | {error, term()}.
start(Options) when is_map(Options) ->
    case {tame_http_options:check(Options), application:ensure_all_started(tame_http)} of
        {{ok, Checked}, {ok, _}} -> reason(tame_http_sup:start_server(Checked));
        {{error, Reason}, _} -> {error, Reason};
        {_, {error, Reason}} -> {error, Reason}
    end;
start(Options) ->
    ?BADARG([Options]).

%% A server that is linked to the caller, for a supervisor. The application tame_http has to run.
-spec start_link(options()) -> {ok, pid()} | {error, term()}.
start_link(Options) when is_map(Options) ->
    case {tame_http_options:check(Options), whereis(tame_http_sup)} of
        {{error, Reason}, _} -> {error, Reason};
        {_, undefined} -> {error, {not_started, tame_http}};
        {{ok, Checked}, _} -> reason(tame_http_server_sup:start_link(Checked))
    end;
start_link(Options) ->
    ?BADARG([Options]).

%% What a supervisor says of a child that did not start is said in its own words.
reason({error, {shutdown, {failed_to_start_child, server, Reason}}}) -> {error, Reason};
reason({error, {{shutdown, {failed_to_start_child, server, Reason}}, _Child}}) -> {error, Reason};
reason(Result) -> Result.

-spec child_spec(options()) -> supervisor:child_spec().
child_spec(Options) when is_map(Options) ->
    Id = maps:get(name, Options, ?MODULE),
    #{id => Id, start => {?MODULE, start_link, [Options]}, type => supervisor};
child_spec(Options) ->
    ?BADARG([Options]).

%% Stops listening, lets requests finish for the option shutdown_ms at most, and ends. One that a
%% supervisor of yours has is to be ended there.
-spec stop(server()) -> ok.
stop(Server) ->
    case tame_http_servers:find(Server) of
        {ok, #{sup := Sup}} -> ended(Sup);
        error -> ?BADARG([Server])
    end.

%% Somebody else may be at it, here and there, or kill it.
closed(Owner, Ms) ->
    try
        tame_http_server:close(Owner, Ms)
    catch
        exit:{Reason, _} when Reason =/= timeout -> ok
    end.

ended(Sup) ->
    try
        gen_server:stop(Sup, normal, infinity)
    catch
        %% It has ended all the same.
        exit:_ -> ok
    end.

%% The same, with another time to finish, in ms.
-spec drain(server(), non_neg_integer()) -> ok.
drain(Server, Ms) ->
    case {tame_http_options:is_ms(Ms), tame_http_servers:find(Server)} of
        {true, {ok, #{sup := Sup, owner := Owner}}} ->
            ok = closed(Owner, Ms),
            ended(Sup);
        _ ->
            ?BADARG([Server, Ms])
    end.

%% The port on which it listens.
-spec port(server()) -> inet:port_number().
port(Server) ->
    case tame_http_servers:find(Server) of
        {ok, #{port := Port}} -> Port;
        error -> ?BADARG([Server])
    end.

%% What the server has counted since it began: requests = answered + refused + failed + gone +
%% open_requests. in_flight are requests that Erlang has, answered or not; waiting those for which
%% no acceptor has credit.
-spec info(server()) -> #{atom() => non_neg_integer()}.
info(Server) ->
    case tame_http_servers:find(Server) of
        {ok, #{handle := Handle}} -> maps:from_list(tame_http_nif:info(Handle));
        error -> ?BADARG([Server])
    end.

%% From now on these paths are answered by the native half, to GET and HEAD; those before no longer.
-spec static(server(), #{binary() => {200..599, headers(), iodata()}}) -> ok.
static(Server, Static) when is_map(Static) ->
    case {tame_http_servers:find(Server), tame_http_options:is_static(Static)} of
        {{ok, #{handle := Handle}}, true} ->
            tame_http_nif:set_static(Handle, tame_http_options:static(Static));
        _ ->
            ?BADARG([Server, Static])
    end;
static(Server, Static) ->
    ?BADARG([Server, Static]).

%% The first value of a header, by its name in lower case.
-spec header(binary(), request()) -> binary() | undefined.
header(Name, Req) -> header(Name, Req, undefined).

-spec header(binary(), request(), Default) -> binary() | Default.
header(Name, #{headers := Headers}, Default) ->
    case lists:keyfind(Name, 1, Headers) of
        {_, Value} -> Value;
        false -> Default
    end.

%% Under body => stream: the next 64 KB of the body, or what is left of it. The client sends on only
%% as far as this reads.
-spec read_body(request()) -> piece().
read_body(Req) -> read_body(Req, #{}).

%% bytes: how many at least, up to 16 MiB, if the body has as many. timeout: in ms; what comes then
%% is the next call's, of whatever process. One process at a time.
-spec read_body(request(), #{bytes => pos_integer(), timeout => timeout()}) -> piece().
read_body(#{body := Body, trailers := Trailers}, _) when is_binary(Body) ->
    {done, Body, Trailers};
read_body(#{ref := Ref}, Options) ->
    Bytes = maps:get(bytes, Options, 65536),
    case tame_http_answer:unless_gone(Ref, fun() -> tame_http_nif:read(Ref, Bytes) end) of
        {error, closed} -> {error, closed};
        Id -> body(Ref, Id, maps:get(timeout, Options, 30000))
    end.

%% Looks now and then whether there is still somebody of whom it comes.
body(Ref, Id, Timeout) when Timeout =:= infinity; is_integer(Timeout), Timeout > ?LOOK_MS ->
    receive
        {tame_http, body, Id, Result} -> Result
    after ?LOOK_MS ->
        case tame_http_answer:is_there(Ref) of
            true when is_integer(Timeout) -> body(Ref, Id, Timeout - ?LOOK_MS);
            true -> body(Ref, Id, infinity);
            false -> {error, closed}
        end
    end;
body(Ref, Id, Timeout) ->
    receive
        {tame_http, body, Id, Result} -> Result
    after Timeout ->
        unread(Ref, Id)
    end.

%% What comes from now on is kept for the next one that reads. What was on its way is here.
unread(Ref, Id) ->
    case tame_http_answer:unless_gone(Ref, fun() -> tame_http_nif:unread(Ref) end) of
        Id ->
            receive
                {tame_http, unread, Id} -> ok
            after ?UNREAD_MS -> ok
            end;
        {error, closed} ->
            ok
    end,
    receive
        {tame_http, body, Id, Result} -> Result
    after 0 ->
        {error, timeout}
    end.

%% Answers a request whose handler returned later. The first answer counts.
-spec reply(request(), response()) -> ok | {error, closed}.
reply(#{ref := _} = Req, Response) ->
    case tame_http_answer:is_response(Response) of
        true -> sent(Req, Response);
        false -> ?BADARG([Req, Response])
    end;
reply(Req, Response) ->
    ?BADARG([Req, Response]).

sent(Req, {_, Headers, _} = Response) ->
    Send = fun() -> tame_http_answer:send(Req, Response) end,
    with_headers(Send, Headers, {reply, [Req, Response]}).

%% Begins an answer in pieces, which send/2 and finish/1 go on with, in any process, one at a time:
%% where a fun for {stream, Fun} would keep a process, as in a gen_server. The handler returned
%% later. It is cut off when nobody refers to it any more and it is not finished.
-spec start_reply(request(), Status :: 200..599, headers()) -> {ok, begun()} | {error, closed}.
start_reply(#{ref := _} = Req, Status, Headers) ->
    case tame_http_answer:is_response({Status, Headers, <<>>}) of
        true ->
            Start = fun() -> tame_http_answer:start(Req, Status, Headers) end,
            with_headers(Start, Headers, {start_reply, [Req, Status, Headers]});
        false ->
            ?BADARG([Req, Status, Headers])
    end;
start_reply(Req, Status, Headers) ->
    ?BADARG([Req, Status, Headers]).

%% Waits while the client takes too little. What has no body, an answer to HEAD say, takes nothing.
-spec send(begun(), iodata()) -> ok | {error, closed}.
send(Begun, Data) -> tame_http_answer:piece(Begun, iolist_to_binary(Data)).

-spec finish(begun()) -> ok | {error, closed}.
finish(Begun) -> finish(Begun, []).

%% With trailers; over HTTP/1.1 only those that the header trailer of the answer names.
-spec finish(begun(), Trailers :: headers()) -> ok | {error, closed}.
finish(Begun, Trailers) -> tame_http_answer:finish(Begun, Trailers).

%% The native half looks at headers. Where it refuses some, nothing of the answer has begun. ?BADARG
%% is for the function that is called.
with_headers(Fun, Headers, {Function, Args}) ->
    try
        Fun()
    catch
        error:badarg:Stack ->
            case tame_http_options:are_headers(Headers) of
                true ->
                    erlang:raise(error, badarg, Stack);
                false ->
                    Frame = {?MODULE, Function, Args, [{error_info, #{}}]},
                    erlang:raise(error, badarg, [Frame])
            end
    end.

%% Whether somebody waits for the answer.
-spec is_alive(request()) -> boolean().
is_alive(#{ref := Ref}) ->
    tame_http_answer:unless_gone(Ref, fun() -> tame_http_nif:is_alive(Ref) end) =:= true.

%% The caller gets {tame_http, gone, Id} if the client leaves before its answer is complete, or has
%% waited for request_timeout_ms. One caller for a request.
-spec watch(request()) -> Id :: non_neg_integer().
watch(#{ref := Ref}) ->
    case tame_http_answer:unless_gone(Ref, fun() -> tame_http_nif:watch(Ref) end) of
        {error, closed} ->
            Id = id(Ref),
            self() ! {tame_http, gone, Id},
            Id;
        Id ->
            Id
    end.

id(Ref) ->
    case tame_http_answer:unless_gone(Ref, fun() -> tame_http_nif:id(Ref) end) of
        {error, closed} -> ?NO_ID;
        Id -> Id
    end.

-spec format_error(term(), [tuple()]) -> #{pos_integer() => iodata()}.
format_error(badarg, [{?MODULE, Start, [_], _} | _]) when
    Start =:= start; Start =:= start_link; Start =:= child_spec
->
    #{1 => <<"must be a map of options">>};
format_error(badarg, [{?MODULE, reply, [#{ref := _}, Response], _} | _]) ->
    case tame_http_answer:is_response(Response) of
        true ->
            #{2 => <<"has a header that is none of HTTP, or that handlers do not set">>};
        false ->
            #{2 => <<"must be {Status, Headers, Body}: from 200 to 599, a map or a list, and "
                     "iodata, {stream, Fun} or {file, Path}">>}
    end;
format_error(badarg, [{?MODULE, start_reply, [#{ref := _}, Status, _], _} | _]) ->
    case tame_http_answer:is_status(Status) of
        true -> #{3 => <<"must be a map or a list of headers that handlers set">>};
        false -> #{2 => <<"must be a status from 200 to 599">>}
    end;
format_error(badarg, [{?MODULE, Reply, _, _} | _]) when Reply =:= reply; Reply =:= start_reply ->
    #{1 => <<"must be a request">>};
format_error(badarg, [{?MODULE, Function, [Server | _], _} | _]) ->
    case tame_http_servers:find(Server) of
        error -> #{1 => <<"must be a server that runs">>};
        {ok, _} when Function =:= drain -> #{2 => <<"must be a number of ms, from 0">>};
        {ok, _} -> #{2 => <<"must be #{Path => {Status, Headers, Body}}">>}
    end.
