%% Making sockets: listen, accept, connect. tame_tcp has checked what comes in.
-module(tame_tcp_connecting).

-export([listen/2]).
-export([accept/2]).
-export([connect/4]).

-type reason() :: atom().

%% Between two tries of a connection: 20 a second of each process, however long it waits.
-define(PAUSE_MAX_MS, 50).

-spec listen(inet:port_number(), tame_tcp_options:parsed()) ->
    {ok, tame_tcp_nif:socket()} | {error, reason()}.
listen(Port, #{family := Family, set := Set, backlog := Backlog, active := Active} = Parsed) ->
    open(Family, fun(Socket) ->
        Address = tame_tcp_address:local(Family, maps:get(address, Parsed, any), Port),
        steps([
            fun() -> tame_tcp_options:set(Socket, Set) end,
            fun() -> tame_tcp_nif:bind(Socket, Address) end,
            fun() -> tame_tcp_nif:listen(Socket, Backlog) end,
            fun() -> tame_tcp_active:set_accepted(Socket, Active) end
        ])
    end).

-spec accept(tame_tcp_nif:socket(), tame_tcp_wait:deadline()) ->
    {ok, tame_tcp_nif:socket()} | {error, reason()}.
accept(Listening, Deadline) ->
    Ref = make_ref(),
    case tame_tcp_nif:accept(Listening, Ref) of
        wait ->
            receive
                {tame_fd, Ref, ready} -> accept(Listening, Deadline);
                {tame_fd, Ref, closed} -> {error, closed}
            after tame_tcp_wait:left(Deadline) ->
                tame_tcp_wait:over(Listening, read, Ref)
            end;
        {ok, Socket, Code} ->
            ready(Socket, fun(New) -> activate(New, tame_tcp_active:of_accepted(Code)) end);
        Other ->
            Other
    end.

activate(_, false) -> ok;
activate(Socket, Active) -> tame_tcp_active:set(Socket, Active).

%% badarg: no such address can be.
-spec connect(term(), inet:port_number(), tame_tcp_options:parsed(), tame_tcp_wait:deadline()) ->
    {ok, tame_tcp_nif:socket()} | {error, reason()} | badarg.
connect(Address, Port, #{family := Said} = Parsed, Deadline) ->
    case tame_tcp_address:remote(Address, Port, Said, tame_tcp_wait:left(Deadline)) of
        {ok, Family, Addresses} -> connect_first(Addresses, Family, Parsed, Deadline, einval);
        Other -> Other
    end.

connect_first([], _, _, _, Reason) ->
    {error, Reason};
connect_first([Address | More], Family, Parsed, Deadline, _) ->
    case connect_one(Address, Family, Parsed, Deadline) of
        {error, Reason} when Reason =/= timeout ->
            connect_first(More, Family, Parsed, Deadline, Reason);
        Other ->
            Other
    end.

connect_one(Remote, Family, #{set := Set, port := From, active := Active} = Parsed, Deadline) ->
    open(Family, fun(Socket) ->
        steps([
            fun() -> tame_tcp_options:set(Socket, Set) end,
            fun() -> bind_first(Socket, Family, Parsed, From) end,
            fun() -> connect_wait(Socket, Remote, Deadline) end,
            fun() -> tame_tcp_active:set(Socket, Active) end
        ])
    end).

bind_first(Socket, Family, #{address := Address}, Port) ->
    tame_tcp_nif:bind(Socket, tame_tcp_address:local(Family, Address, Port));
bind_first(_, _, _, 0) ->
    ok;
bind_first(Socket, Family, _, Port) ->
    tame_tcp_nif:bind(Socket, tame_tcp_address:local(Family, any, Port)).

connect_wait(Socket, Remote, Deadline) ->
    connect_wait(Socket, Remote, Deadline, 1).

connect_wait(Socket, Remote, Deadline, PauseMs) ->
    Ref = make_ref(),
    case tame_tcp_nif:connect(Socket, Remote, Ref) of
        again -> connect_again(Socket, Remote, Deadline, PauseMs);
        Answer -> connect_answer(Answer, Socket, Ref, Deadline)
    end.

%% Nobody tells when the backlog of a Unix socket has room again.
connect_again(Socket, Remote, Deadline, PauseMs) ->
    case tame_tcp_wait:left(Deadline) of
        0 ->
            {error, timeout};
        Left ->
            receive after min(PauseMs, Left) -> ok end,
            connect_wait(Socket, Remote, Deadline, min(2 * PauseMs, ?PAUSE_MAX_MS))
    end.

connect_answer(wait, Socket, Ref, Deadline) ->
    receive
        {tame_fd, Ref, ready} ->
            connect_answer(tame_tcp_nif:connected(Socket, Ref), Socket, Ref, Deadline);
        {tame_fd, Ref, closed} ->
            {error, closed}
    after tame_tcp_wait:left(Deadline) ->
        tame_tcp_wait:over(Socket, write, Ref)
    end;
connect_answer(Other, _, _, _) ->
    Other.

open(Family, Prepare) ->
    case tame_tcp_nif:open(Family) of
        {ok, Socket} -> ready(Socket, Prepare);
        {error, _} = Error -> Error
    end.

%% A new socket that these steps have made ready, or closed again.
ready(Socket, Prepare) ->
    try Prepare(Socket) of
        ok ->
            {ok, Socket};
        {error, _} = Error ->
            ok = tame_tcp_wait:close(Socket),
            Error
    catch
        Class:Reason:Stack ->
            ok = tame_tcp_wait:close(Socket),
            erlang:raise(Class, Reason, Stack)
    end.

steps([]) ->
    ok;
steps([Step | More]) ->
    case Step() of
        ok -> steps(More);
        {error, _} = Error -> Error
    end.
