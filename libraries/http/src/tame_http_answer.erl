%% A request's way through its handler: the map that the handler gets, and what becomes of its
%% answer.
-module(tame_http_answer).

-include_lib("kernel/include/file.hrl").

-export([handle/3]).
-export([handle_here/3]).
-export([send/2]).
-export([start/3]).
-export([piece/2]).
-export([finish/2]).
-export([unless_gone/2]).
-export([is_there/1]).
-export([is_response/1]).
-export([is_status/1]).
-export([headers/1]).

-export_type([begun/0]).

%% An answer whose head is on its way, and whether it has a body.
-opaque begun() :: {tame_http_nif:ref(), boolean()}.

-define(FILE_BYTES, 65536).

%% Who waits for the native half looks now and then whether it is there: see tame_http_server.
-define(LOOK_MS, 1000).

%% In a process of its own. Events: whether somebody is to be told.
-spec handle(tame_http_nif:acceptor(), tame_http:handler(), Events :: boolean()) -> ok.
handle(Acceptor, Handler, Events) ->
    _ = taken(take(Acceptor), Handler, Events, fun(Fun) -> Fun() end),
    ok.

%% In an acceptor: what takes time to send has a process of its own.
-spec handle_here(tame_http_nif:acceptor(), tame_http:handler(), Events :: boolean()) -> ok.
handle_here(Acceptor, Handler, Events) ->
    Elsewhere = fun(Fun) -> spawn_link(whole(Fun)) end,
    _ = taken(take(Acceptor), Handler, Events, Elsewhere),
    ok.

%% The acceptor may be the last that refers to an answer that was cut off. It hears of that.
whole(Fun) ->
    fun() -> Fun() =:= failed andalso exit(failed) end.

%% What waited in a native half that has ended is gone with it.
take(Acceptor) ->
    case unless_gone(Acceptor, fun() -> tame_http_nif:take(Acceptor) end) of
        {error, closed} -> none;
        Taken -> Taken
    end.

taken(none, _Handler, _Events, _Elsewhere) ->
    ok;
taken(Request, Handler, false, Elsewhere) ->
    answered(request(Request), Handler, untold, Elsewhere);
taken(Request, Handler, true, Elsewhere) ->
    answered(request(Request), Handler, erlang:monotonic_time(), Elsewhere).

request({Ref, Method, Path, Query, Headers, Peer, Version, Scheme, Body, Trailers}) ->
    #{
        ref => Ref, method => Method, path => Path, query => Query, headers => Headers,
        peer => Peer, version => Version, scheme => Scheme, body => Body, trailers => Trailers
    }.

%% Began is untold where no event is to tell of it.
answered(#{ref := Ref} = Req, Handler, Began, Elsewhere) ->
    try Handler(Req) of
        {_, _, Body} = Answer when is_tuple(Body) ->
            Elsewhere(fun() -> protected(Req, Began, fun() -> told(Req, Began, Answer) end) end);
        Answer ->
            protected(Req, Began, fun() -> told(Req, Began, Answer) end)
    catch
        Class:Reason:Stack -> failed(Req, Began, Ref, {Class, Reason, Stack})
    end.

protected(#{ref := Ref} = Req, Began, Fun) ->
    try
        Fun()
    catch
        Class:Reason:Stack -> failed(Req, Began, Ref, {Class, Reason, Stack})
    end.

told(_Req, _Began, later) ->
    ok;
told(Req, Began, {Status, _, _} = Answer) ->
    Result = send(Req, Answer),
    event(Req, Began, Status, Result);
told(_Req, _Began, Answer) ->
    error({bad_answer, Answer}).

failed(#{method := Method, path := Path} = Req, Began, Ref, {Class, Reason, Stack}) ->
    logger:error("tame_http: ~ts ~ts: ~0tP", [Method, Path, {Class, Reason, Stack}, 60]),
    %% Its head may be out already: then it is cut off when nobody refers to it any more.
    Result = native_reply(Ref, 500, [], <<>>),
    ok = event(Req, Began, 500, Result),
    failed.

event(_Req, untold, _Status, _Result) ->
    ok;
event(#{method := Method, path := Path, version := Version}, Began, Status, Result) ->
    Measurements = #{duration => erlang:monotonic_time() - Began},
    Request = #{method => Method, path => Path, version => Version},
    Metadata = Request#{status => Status, sent => Result =:= ok},
    %% Who listens is not the request's business.
    try
        tame_telemetry:execute([tame, http, request], Measurements, Metadata)
    catch
        _:_ -> ok
    end.

%% As far as a look shows it.
-spec is_response(term()) -> boolean().
is_response({Status, Headers, Body}) ->
    is_status(Status) andalso (is_map(Headers) orelse is_list(Headers)) andalso is_body(Body);
is_response(_) ->
    false.

-spec is_status(term()) -> boolean().
is_status(Status) -> is_integer(Status) andalso Status >= 200 andalso Status =< 599.

is_body({stream, Fun}) -> is_function(Fun, 1);
is_body({file, _}) -> true;
is_body(Body) -> is_binary(Body) orelse is_list(Body).

%% Answers, once. Returns when all of it is on its way.
-spec send(tame_http:request(), tame_http:response()) -> ok | {error, closed | term()}.
send(#{ref := Ref, method := Method}, {Status, Headers, {Kind, _} = Body}) when
    Kind =:= stream; Kind =:= file
->
    streamed(Ref, Status, headers(Headers), has_body(Method, Status), Body);
send(#{ref := Ref}, {Status, Headers, Body}) ->
    native_reply(Ref, Status, headers(Headers), iolist_to_binary(Body)).

%% The same in pieces, by several calls.
-spec start(tame_http:request(), 200..599, tame_http:headers()) ->
    {ok, begun()} | {error, closed}.
start(#{ref := Ref, method := Method}, Status, Headers) ->
    HasBody = has_body(Method, Status),
    Start = if HasBody -> fun native_start/3; true -> fun without_body/3 end,
    case Start(Ref, Status, headers(Headers)) of
        ok -> {ok, {Ref, HasBody}};
        {error, closed} -> {error, closed}
    end.

-spec piece(begun(), binary()) -> ok | {error, closed}.
piece({Ref, true}, Data) -> chunk(Ref, Data);
piece({_, false}, _) -> ok.

-spec finish(begun(), tame_http:headers()) -> ok | {error, closed}.
finish({Ref, true}, Trailers) -> native_finish(Ref, headers(Trailers));
finish({_, false}, _) -> ok.

native_reply(Ref, Status, Headers, Body) ->
    unless_gone(Ref, fun() -> tame_http_nif:reply(Ref, Status, Headers, Body) end).

native_start(Ref, Status, Headers) ->
    unless_gone(Ref, fun() -> tame_http_nif:start(Ref, Status, Headers) end).

native_finish(Ref, Trailers) ->
    unless_gone(Ref, fun() -> tame_http_nif:finish(Ref, Trailers) end).

%% What the native half says. An isolated one may end alone, and the request with it: that is
%% closed.
-spec unless_gone(tame_http_nif:ref() | tame_http_nif:acceptor(), fun(() -> Result)) ->
    Result | {error, closed}.
unless_gone(Ref, Fun) ->
    try
        Fun()
    catch
        error:Reason:Stack ->
            case has_ended(Reason) orelse (Reason =:= badarg andalso not is_there(Ref)) of
                true -> {error, closed};
                false -> erlang:raise(error, Reason, Stack)
            end
    end.

-spec is_there(term()) -> boolean().
is_there(Ref) ->
    try tame_http_nif:id(Ref) of
        _ -> true
    catch
        error:badarg -> not is_reference(Ref);
        error:Reason -> not has_ended(Reason)
    end.

%% What a call raises whose host ends while it has the call, or that finds none. busy and deadline
%% pass.
-spec has_ended(Reason :: term()) -> boolean().
has_ended({tame, {Why, _}}) ->
    lists:member(Why, [crashed, limit, bad_reply, no_host, failed, restored, not_started]);
has_ended(_) ->
    false.

%% HEAD, and statuses that have none.
has_body(<<"HEAD">>, _) -> false;
has_body(_, Status) -> not lists:member(Status, [204, 205, 304]).

streamed(Ref, Status, Headers, true, {stream, Fun}) when is_function(Fun, 1) ->
    case native_start(Ref, Status, Headers) of
        ok ->
            case Fun(fun(Data) -> chunk(Ref, iolist_to_binary(Data)) end) of
                {trailers, Trailers} -> native_finish(Ref, headers(Trailers));
                _ -> native_finish(Ref, [])
            end;
        {error, closed} ->
            {error, closed}
    end;
streamed(Ref, Status, Headers, true, {file, Path}) ->
    %% To open a pipe waits for who writes into it.
    {ok, #file_info{type = regular}} = file:read_file_info(Path),
    {ok, File} = file:open(Path, [read, raw, binary]),
    try
        {ok, Size} = file:position(File, eof),
        {ok, 0} = file:position(File, bof),
        case native_start(Ref, Status, with_length(Size, Headers)) of
            ok -> file(Ref, File, Size);
            {error, closed} -> {error, closed}
        end
    after
        ok = file:close(File)
    end;
streamed(Ref, Status, Headers, false, {file, Path}) ->
    {ok, #file_info{type = regular, size = Size}} = file:read_file_info(Path),
    without_body(Ref, Status, with_length(Size, Headers));
streamed(Ref, Status, Headers, false, {stream, Fun}) when is_function(Fun, 1) ->
    without_body(Ref, Status, Headers).

%% Whatever length the handler gives.
with_length(Size, Headers) ->
    Others = [Header || {Name, _} = Header <- Headers, not is_length(Name)],
    [{<<"content-length">>, integer_to_binary(Size)} | Others].

is_length(Name) -> string:lowercase(iolist_to_binary(Name)) =:= <<"content-length">>.

%% Its client has all of it when it has the head, and may leave before it is finished.
without_body(Ref, Status, Headers) ->
    case native_start(Ref, Status, Headers) of
        ok ->
            _ = native_finish(Ref, []),
            ok;
        {error, closed} ->
            {error, closed}
    end.

file(Ref, _File, 0) ->
    native_finish(Ref, []);
file(Ref, File, Left) ->
    %% One that became shorter fails here, and the client sees an answer that is cut off.
    {ok, Data} = file:read(File, min(Left, ?FILE_BYTES)),
    case chunk(Ref, Data) of
        ok -> file(Ref, File, Left - byte_size(Data));
        {error, closed} -> {error, closed}
    end.

%% Waits while the client takes too little. The I/O thread tells us when there is room, and when
%% nobody takes it any more; it ends a connection that takes nothing for idle_timeout_ms.
chunk(Ref, Data) ->
    case unless_gone(Ref, fun() -> tame_http_nif:chunk(Ref, Data) end) of
        wait -> unless_gone(Ref, fun() -> room(Ref, tame_http_nif:id(Ref)) end);
        Result -> Result
    end.

room(Ref, Id) ->
    receive
        {tame_http, room, Id} -> ok
    after ?LOOK_MS ->
        case is_there(Ref) of
            true -> room(Ref, Id);
            false -> {error, closed}
        end
    end.

%% A map or a list of pairs.
-spec headers(tame_http:headers()) -> tame_http_nif:headers().
headers(Headers) when is_map(Headers) -> maps:to_list(Headers);
headers(Headers) when is_list(Headers) -> Headers.
