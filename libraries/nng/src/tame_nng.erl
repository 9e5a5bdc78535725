%% Messaging by nng, from the VM to C programs and other VMs: requests, publications, pipelines,
%% surveys, pairs and buses over tcp, ipc and inproc.
%%
%%     {ok, Rep} = tame_nng:open(rep0),
%%     {ok, Listener} = tame_nng:listen(Rep, "tcp://127.0.0.1:0"),
%%     {ok, Url} = tame_nng:url(Listener),
%%     {ok, Req} = tame_nng:open(req0),
%%     {ok, _} = tame_nng:dial(Req, Url),
%%     ok = tame_nng:send(Req, "to be"),
%%     {ok, <<"to be">>} = tame_nng:recv(Rep, 1000),
%%     ok = tame_nng:send(Rep, ["or ", <<"not">>]),
%%     {ok, <<"or not">>} = tame_nng:recv(Req, 1000).
%%
%% {by, nif} (the default) and {by, driver} are two ways to the same library, with the same
%% functions and answers. Times are ms. A socket is its owner's, who is its opener at first, and is
%% closed when the owner dies; any process may use it.
-module(tame_nng).

-export([open/1, open/2, close/1]).
-export([listen/2, dial/2, dial/3, hang_up/1, url/1]).
-export([send/2, send/3, recv/1, recv/2]).
-export([request/2, request/3]).
-export([context/1]).
-export([setopts/2, getopts/2, getstat/1]).
-export([controlling_process/2, owner/1]).
%% Internal.
-export([format_error/2]).

-export_type([protocol/0, socket/0, context/0, end_point/0, option/0, reason/0, active/0]).

-type protocol() ::
    req0 | rep0 | pub0 | sub0 | push0 | pull0 | pair0 | pair1 | surveyor0 | respondent0 | bus0.
-opaque socket() :: reference() | {tame_nng_port, port()}.
-opaque context() :: {tame_nng_context, socket(), tame_nng_way:context()}.
-opaque end_point() :: {listener | dialer, socket(), pos_integer()}.

%% closed, timeout, enotsup (the protocol does not do that), estate (not now: a reply without a
%% request), einval, not_owner, or the system's, as inet:posix().
-type reason() :: atom().

-type active() :: boolean() | once | -32768..32767.

-type option() ::
    {by, nif | driver}
    | {active, active()}
    | {recv_buffer | send_buffer, non_neg_integer()}
    | {recv_max_size, non_neg_integer()}
    | {reconnect_min | reconnect_max | resend_time | survey_time, timeout()}
    | {ttl, pos_integer()}
    | {nodelay | keepalive | prefer_new, boolean()}
    | {subscribe | unsubscribe, iodata()}.

-define(CONTEXT, tame_nng_context).
-define(PORT, tame_nng_port).
-define(CLOSE_MS, 10000).
%% What `after' takes: more would raise there, when the wait has begun.
-define(TIMEOUT_MAX, 16#ffffffff).
%% nng's ids have 32 bits.
-define(IS_END_POINT(Kind, Id),
    (Kind =:= listener orelse Kind =:= dialer),
    is_integer(Id), Id > 0, Id =< 16#ffffffff
).
%% As much credit as a socket can have.
-define(IS_CREDIT(Active), is_integer(Active), Active >= -32768, Active =< 32767).
-define(NO_TIMEOUT, "must be infinity or ms, from 0 to 4294967295").

%% ---- sockets ------------------------------------------------------------------------------------

-spec open(protocol()) -> {ok, socket()} | {error, reason()}.
open(Protocol) ->
    open(Protocol, []).

%% A new socket, of the caller. `by' is said here alone; the others are those of setopts/2.
-spec open(protocol(), [option()]) -> {ok, socket()} | {error, reason()}.
open(Protocol, Options) ->
    Args = [Protocol, Options],
    _ = lists:member(Protocol, protocols()) orelse
        badarg(Args, 1, ["must be one of " | lists:join(", ", names())]),
    {By, Others} = by(Options, nif, [], Args),
    case By:open(Protocol) of
        {ok, Of} ->
            Socket = socket(By, Of),
            case setopts(Socket, Others) of
                ok ->
                    {ok, Socket};
                {error, _} = Error ->
                    _ = close(Socket),
                    Error
            end;
        {error, _} = Error ->
            Error
    end.

socket(tame_nng_by_nif, Handle) -> Handle;
socket(tame_nng_by_driver, Port) -> {?PORT, Port}.

names() ->
    lists:map(fun atom_to_list/1, protocols()).

protocols() ->
    [req0, rep0, pub0, sub0, push0, pull0, pair0, pair1, surveyor0, respondent0, bus0].

by([{by, nif} | More], _, Others, Args) -> by(More, nif, Others, Args);
by([{by, driver} | More], _, Others, Args) -> by(More, driver, Others, Args);
by([{Name, _} = Option | More], By, Others, Args) ->
    case Name =:= active orelse tame_nng_control:is_option(Name) of
        true -> by(More, By, [Option | Others], Args);
        false -> unknown(Option, Args)
    end;
by([], nif, Others, _) -> {tame_nng_by_nif, lists:reverse(Others)};
by([], driver, Others, _) -> {tame_nng_by_driver, lists:reverse(Others)};
by([Option | _], _, _, Args) -> unknown(Option, Args);
by(Other, _, _, Args) -> unknown(Other, Args).

-spec unknown(term(), [term()]) -> no_return().
unknown(Option, Args) ->
    badarg(Args, 2, io_lib:format("has an unknown option: ~0tp", [Option])).

%% Closes, and returns when it is closed, so that its addresses are free. Who waits in it gets
%% {error, closed}. What nng has not sent yet is lost. {error, timeout}: nng itself has not closed
%% it in 10 s; it is closed for us. A context is closed alone.
-spec close(socket() | context()) -> ok | {error, timeout}.
close({?CONTEXT, Socket, Context}) ->
    with(Socket, [Context], fun(Way, Of) -> Way:context_close(Of, Context) end);
close(Socket) ->
    with(Socket, [], fun(Way, Of) -> Way:close(Of, tame_nng_way:deadline(?CLOSE_MS)) end).

%% ---- addresses ----------------------------------------------------------------------------------

%% Listens at an address: "tcp://127.0.0.1:5555" (port 0: any), "ipc:///path", "inproc://name".
%% Any number of them.
-spec listen(socket(), iodata()) -> {ok, end_point()} | {error, reason()}.
listen(Socket, Url) ->
    end_point(listener, Socket, tame_nng_control:listen(address(Url, [Socket, Url])), [Url]).

%% Connects to an address, and again whenever the connection ends; returns at once.
-spec dial(socket(), iodata()) -> {ok, end_point()} | {error, reason()}.
dial(Socket, Url) ->
    dial(Socket, Url, []).

%% With `wait' it returns when the first try has ended, with its error and without a dialer if it
%% failed; how long that takes, the system says, and closing the socket ends it.
-spec dial(socket(), iodata(), [wait]) -> {ok, end_point()} | {error, reason()}.
dial(Socket, Url, Options) when Options =:= []; Options =:= [wait] ->
    Request = tame_nng_control:dial(address(Url, [Socket, Url, Options]), Options =:= [wait]),
    end_point(dialer, Socket, Request, [Url, Options]);
dial(Socket, Url, Options) ->
    badarg([Socket, Url, Options], 3, "must be [] or [wait]").

end_point(Kind, Socket, Request, Args) ->
    case control(Socket, Request, Args) of
        {ok, Id} -> {ok, {Kind, Socket, Id}};
        {error, _} = Error -> Error
    end.

%% nng refuses what is longer than 127 bytes, and does not know what is no text.
address(Url, Args) ->
    try iolist_to_binary(Url)
    catch error:badarg -> badarg(Args, 2, "must be an address, such as tcp://127.0.0.1:5555")
    end.

%% Ends a listener or a dialer, with its connections.
-spec hang_up(end_point()) -> ok | {error, reason()}.
hang_up({Kind, Socket, Id}) when ?IS_END_POINT(Kind, Id) ->
    control(Socket, tame_nng_control:hang_up({Kind, Id}), []);
hang_up(Other) ->
    badarg([Other], 1, "must be what listen/2 or dial/2 returned").

%% The address of a listener or a dialer, with the port that the system chose.
-spec url(end_point()) -> {ok, binary()} | {error, reason()}.
url({Kind, Socket, Id}) when ?IS_END_POINT(Kind, Id) ->
    control(Socket, tame_nng_control:url({Kind, Id}), []);
url(Other) ->
    badarg([Other], 1, "must be what listen/2 or dial/2 returned").

%% ---- messages -----------------------------------------------------------------------------------

-spec send(socket() | context(), iodata()) -> ok | {error, reason()}.
send(Socket, Message) ->
    send(Socket, Message, infinity).

%% Sends a message: ok says that nng has it. Waits while nng takes no more, because nobody is
%% connected or the peer is slow; but for pub0, which drops for a subscriber that is slow,
%% surveyor0 and bus0.
-spec send(socket() | context(), iodata(), timeout()) -> ok | {error, reason()}.
send(Socket, Message, Timeout) ->
    Args = [Message, Timeout],
    _ = is_timeout(Timeout) orelse badarg([Socket | Args], 3, ?NO_TIMEOUT),
    Parts =
        try erlang:iolist_to_iovec(Message)
        catch error:badarg -> badarg([Socket | Args], 2, "must be iodata")
        end,
    case Socket of
        {?CONTEXT, Parent, Context} ->
            with(Parent, Args, fun(Way, Of) ->
                Way:context_send(Of, Context, Parts, tame_nng_way:deadline(Timeout))
            end);
        _ ->
            with(Socket, Args, fun(Way, Of) ->
                Way:send(Of, Parts, tame_nng_way:deadline(Timeout))
            end)
    end.

-spec recv(socket() | context()) -> {ok, binary()} | {error, reason()}.
recv(Socket) ->
    recv(Socket, infinity).

%% Receives a message. A surveyor gets {error, timeout} at the end of its survey as well.
-spec recv(socket() | context(), timeout()) -> {ok, binary()} | {error, reason()}.
recv(Socket, Timeout) ->
    _ = is_timeout(Timeout) orelse
        badarg([Socket, Timeout], 2, ?NO_TIMEOUT),
    case Socket of
        {?CONTEXT, Parent, Context} ->
            with(Parent, [Timeout], fun(Way, Of) ->
                Way:context_recv(Of, Context, tame_nng_way:deadline(Timeout))
            end);
        _ ->
            with(Socket, [Timeout], fun(Way, Of) ->
                Way:recv(Of, tame_nng_way:deadline(Timeout))
            end)
    end.

is_timeout(infinity) -> true;
is_timeout(Ms) -> is_integer(Ms) andalso Ms >= 0 andalso Ms =< ?TIMEOUT_MAX.

%% ---- contexts -----------------------------------------------------------------------------------

%% A conversation of its own on a socket of req0, rep0, sub0, surveyor0 or respondent0, for send,
%% recv and close: many requests may be out at once, each in its context. It is the caller's, and
%% is closed when the caller dies. One process uses it at a time ({error, ebusy}).
-spec context(socket()) -> {ok, context()} | {error, reason()}.
context(Socket) ->
    case with(Socket, [], fun(Way, Of) -> Way:context_open(Of) end) of
        {ok, Context} -> {ok, {?CONTEXT, Socket, Context}};
        {error, _} = Error -> Error
    end.

-spec request(socket(), iodata()) -> {ok, binary()} | {error, reason()}.
request(Socket, Message) ->
    request(Socket, Message, infinity).

%% Sends a request in a context of its own and waits for the reply: any number of processes may, on
%% one socket of req0. The time is for both.
-spec request(socket(), iodata(), timeout()) -> {ok, binary()} | {error, reason()}.
request(Socket, Message, Timeout) ->
    _ = is_timeout(Timeout) orelse
        badarg([Socket, Message, Timeout], 3, ?NO_TIMEOUT),
    Deadline = tame_nng_way:deadline(Timeout),
    case context(Socket) of
        {ok, Context} ->
            try send(Context, Message, Timeout) of
                ok -> recv(Context, tame_nng_way:left(Deadline));
                {error, _} = Error -> Error
            after
                close(Context)
            end;
        {error, _} = Error ->
            Error
    end.

%% ---- options and statistics ---------------------------------------------------------------------

%% {active, true | once | N}: any number of messages {nng, Socket, Bytes} to the owner, one, or N
%% more and then {nng_passive, Socket}. {active, false}: none any more, and recv has the rest.
%% As long as there is credit, recv answers {error, einval}; one that waits already answers so when
%% a message comes by nif, and has that message by driver.
%% What is said of addresses (nodelay, keepalive, recv_max_size, reconnect_min, reconnect_max)
%% holds for those that come after. A context has subscribe, unsubscribe, prefer_new, recv_buffer,
%% resend_time and survey_time of its own, as its protocol has them, and begins with its socket's,
%% but with no topic.
-spec setopts(socket() | context(), [option()]) -> ok | {error, reason()}.
setopts(_, []) ->
    ok;
setopts(Socket, [{active, Active} | More]) ->
    case set_active(Socket, Active) of
        ok -> setopts(Socket, More);
        {error, _} = Error -> Error
    end;
setopts(Socket, [{Name, Value} | More]) ->
    case tame_nng_control:set(Name, Value) of
        unknown ->
            {error, einval};
        Request ->
            case set(Socket, Request, [[{Name, Value}]]) of
                ok -> setopts(Socket, More);
                {error, _} = Error -> Error
            end
    end;
setopts(_, _) ->
    {error, einval}.

set({?CONTEXT, Socket, Context}, {_, Bytes}, Args) ->
    with(Socket, Args, fun(Way, Of) ->
        tame_nng_control:reply(Way:context_set(Of, Context, Bytes))
    end);
set(Socket, Request, Args) ->
    control(Socket, Request, Args).

set_active(Socket, Active) when is_boolean(Active); Active =:= once; ?IS_CREDIT(Active) ->
    case with(Socket, [Active], fun(Way, Of) -> Way:set_active(Of, Active) end) of
        {error, not_started} ->
            badarg([Socket, Active], 2, "needs the application tame_nng, which does not run");
        Other ->
            Other
    end;
set_active(_, _) ->
    {error, einval}.

%% Those that the protocol does not have, and topics, are {error, enotsup} or {error, einval}.
-spec getopts(socket(), [atom()]) -> {ok, [{atom(), term()}]} | {error, reason()}.
getopts(Socket, Names) ->
    getopts(Socket, Names, []).

getopts(_, [], Found) ->
    {ok, lists:reverse(Found)};
getopts(Socket, [Name | More], Found) ->
    case getopt(Socket, Name) of
        {ok, Value} -> getopts(Socket, More, [{Name, Value} | Found]);
        {error, _} = Error -> Error
    end;
getopts(_, _, _) ->
    {error, einval}.

getopt(Socket, active) ->
    case with(Socket, [active], fun(Way, Of) -> Way:active(Of) end) of
        {error, _} = Error -> Error;
        Active -> {ok, Active}
    end;
getopt(Socket, Name) ->
    case tame_nng_control:get(Name) of
        unknown ->
            {error, einval};
        Request ->
            case control(Socket, Request, [[Name]]) of
                {ok, Number} -> {ok, tame_nng_control:value(Name, Number)};
                {error, _} = Error -> Error
            end
    end.

%% What is counted of a socket: messages that nng took and that were received, and their bytes,
%% but not those of contexts (sent, received, sent_bytes, received_bytes); its connections, and
%% those that nng refused, because the peer speaks another protocol (connections, refused). What a
%% slow subscriber has lost is what its publisher has sent less what it has received.
-spec getstat(socket()) -> {ok, #{atom() => non_neg_integer()}} | {error, reason()}.
getstat(Socket) ->
    case control(Socket, tame_nng_control:statistics(), []) of
        {ok, Bytes} -> {ok, tame_nng_control:value(statistics, Bytes)};
        {error, _} = Error -> Error
    end.

%% ---- the owner ----------------------------------------------------------------------------------

%% Another process owns the socket, and what messages of it the caller has. Only its owner may
%% say so.
-spec controlling_process(socket(), pid()) -> ok | {error, closed | not_owner | badarg}.
controlling_process(Socket, Pid) ->
    Self = self(),
    case owner(Socket) of
        {ok, Self} when Pid =:= Self -> ok;
        {ok, Self} when is_pid(Pid), node(Pid) =:= node() -> give(Socket, Pid);
        {ok, Self} -> {error, badarg};
        {ok, _} -> {error, not_owner};
        {error, _} = Error -> Error
    end.

%% Passive meanwhile, so that the messages keep their order.
give(Socket, Pid) ->
    with(Socket, [Pid], fun(Way, Of) ->
        Active = Way:active(Of),
        %% Also without credit: the message that took the last of it may be on its way.
        _ = Way:set_active(Of, false),
        Result = Way:give(Of, Pid),
        _ = Result =:= ok andalso forward(Socket, Pid),
        _ = Active =/= false andalso Way:set_active(Of, Active),
        Result
    end).

forward(Socket, Pid) ->
    receive
        {nng, Socket, _} = Message ->
            Pid ! Message,
            forward(Socket, Pid);
        {nng_passive, Socket} = Message ->
            Pid ! Message,
            forward(Socket, Pid)
    after 0 -> ok
    end.

-spec owner(socket()) -> {ok, pid()} | {error, closed}.
owner(Socket) ->
    with(Socket, [], fun(Way, Of) -> Way:owner(Of) end).

%% ---- what all use -------------------------------------------------------------------------------

control(Socket, {Code, Bytes}, Args) ->
    with(Socket, Args, fun(Way, Of) ->
        tame_nng_control:reply(Way:control(Of, Code, Bytes))
    end).

%% The way to a socket, and how it is known there; what is none raises badarg, here or there.
with(Socket, Args, Fun) ->
    try
        {Way, Of} = way(Socket),
        Fun(Way, Of)
    catch
        error:badarg -> badarg([Socket | Args], 1, "is no socket of tame_nng, or none of this VM")
    end.

%% A port is known by a name as well: what others would do with our commands nobody knows.
way(Socket) when is_reference(Socket) -> {tame_nng_by_nif, Socket};
way({?PORT, Port}) when is_port(Port) -> {tame_nng_by_driver, Port};
way(_) -> error(badarg).

-spec badarg([term()], pos_integer(), iodata()) -> no_return().
badarg(Args, Number, Sentence) ->
    erlang:error(badarg, Args, info(Number, Sentence)).

info(Number, Sentence) ->
    [{error_info, #{module => ?MODULE, cause => #{Number => iolist_to_binary(Sentence)}}}].

-spec format_error(term(), list()) -> map().
format_error(_, [{_, _, _, Info} | _]) ->
    maps:get(cause, proplists:get_value(error_info, Info, #{}), #{}).
