%% TCP and Unix sockets as a NIF on tame/fd.h, with gen_tcp's functions, options and errors.
%%
%%     {ok, Listening} = tame_tcp:listen(0, [{ip, loopback}, {active, false}]),
%%     {ok, {_, Port}} = tame_tcp:sockname(Listening),
%%     {ok, Client} = tame_tcp:connect({127, 0, 0, 1}, Port, [{active, false}]),
%%     {ok, Socket} = tame_tcp:accept(Listening),
%%     ok = tame_tcp:send(Client, ["to ", <<"be">>]),
%%     {ok, <<"to be">>} = tame_tcp:recv(Socket, 5).
%%
%% A socket is a reference. Data is binaries, without packets: {packet, raw} is the only one.
%% Times are ms. A socket is its owner's, as a port is, and is closed when the owner dies; any
%% process may use it.
-module(tame_tcp).

-export([listen/2]).
-export([accept/1, accept/2]).
-export([connect/3, connect/4]).
-export([send/2]).
-export([recv/2, recv/3]).
-export([sendfile/2, sendfile/4]).
-export([shutdown/2]).
-export([close/1]).
-export([controlling_process/2]).
-export([sockname/1, peername/1]).
-export([setopts/2, getopts/2, getstat/2]).
-export([owner/1]).
%% Internal.
-export([format_error/2]).

-export_type([socket/0, address/0, peer/0, reason/0, option/0]).

-opaque socket() :: tame_tcp_nif:socket().
-type address() :: {inet:ip_address(), inet:port_number()} | {local, binary()}.
-type peer() :: inet:ip_address() | loopback | inet:hostname() | {local, iodata()}.

%% closed, timeout, not_owner, or the system's, as inet:posix(). A connection that was reset is
%% closed.
-type reason() :: atom().

-type option() ::
    binary | {mode, binary} | {packet, raw | 0}
    | inet | inet6 | local
    | {ip | ifaddr, any | loopback | inet:ip_address() | {local, iodata()}}
    | {port, inet:port_number()}
    | {backlog, non_neg_integer()}
    | {active, boolean() | once | -32768..32767}
    | {nodelay | keepalive | reuseaddr | reuseport | dontroute | ipv6_v6only, boolean()}
    | {sndbuf | recbuf | buffer | priority | tos | ttl | tclass, non_neg_integer()}
    | {linger, {boolean(), 0}}
    | {raw, Level :: integer(), Option :: integer(), Value :: binary()}
    | {send_timeout, non_neg_integer() | infinity}
    | {send_timeout_close, boolean()}.

%% In the function itself: the error names the one that raises it.
-define(BADARG(Args, Number, Sentence),
    erlang:error(badarg, Args, [
        {error_info, #{module => ?MODULE, cause => #{Number => iolist_to_binary(Sentence)}}}
    ])
).
%% A binary goes to the system as it is; a longer one through iolist_to_iovec/1, which aligns its bits
%% once and not for each slice.
-define(SMALL, 8192).
-define(IS_PORT(Port), is_integer(Port), Port >= 0, Port =< 65535).
%% What `after' takes: more would raise there, when the wait has begun.
-define(TIMEOUT_MAX, 16#ffffffff).
-define(IS_TIMEOUT(Ms),
    (Ms =:= infinity orelse (is_integer(Ms) andalso Ms >= 0 andalso Ms =< ?TIMEOUT_MAX))
).
-define(NO_PORT, "must be a port from 0 to 65535").
-define(NO_TIMEOUT, "must be infinity or ms, from 0 to 4294967295").
-define(NO_OPTION(Option), io_lib:format("has an unknown option: ~0tp", [Option])).
-define(NO_SOCKET, "is no socket of tame_tcp, or none of this VM").
-define(NOT_STARTED, "needs the application tame_tcp, which does not run").
%% All but the socket is checked: what is none raises badarg there.
-define(WITH_SOCKET(Args, Call),
    try Call
    catch
        error:badarg -> ?BADARG(Args, 1, ?NO_SOCKET)
    end
).
%% More than a receive ever gives.
-define(LENGTH_MAX, 16#ffffffffffffffff).
%% What sendfile(2) takes.
-define(OFFSET_MAX, 16#7fffffffffffffff).

%% ---- listen, accept, connect ------------------------------------------------------------------

%% Listens on a port, or on {ip, {local, Path}} with port 0. What is said here of `active',
%% `buffer' and the system's options is also said of the sockets that are accepted.
-spec listen(inet:port_number(), [option()]) -> {ok, socket()} | {error, reason()}.
listen(Port, Options) when ?IS_PORT(Port) ->
    case tame_tcp_options:parse(Options) of
        {ok, Parsed} -> tame_tcp_connecting:listen(Port, Parsed);
        {error, Option} -> ?BADARG([Port, Options], 2, ?NO_OPTION(Option))
    end;
listen(Port, Options) ->
    ?BADARG([Port, Options], 1, ?NO_PORT).

%% Waits for a connection, and returns it. The caller owns it.
-spec accept(socket()) -> {ok, socket()} | {error, reason()}.
accept(Listening) ->
    accept(Listening, infinity).

-spec accept(socket(), timeout()) -> {ok, socket()} | {error, reason()}.
accept(Listening, Timeout) when ?IS_TIMEOUT(Timeout) ->
    Args = [Listening, Timeout],
    Deadline = tame_tcp_wait:deadline(Timeout),
    case ?WITH_SOCKET(Args, tame_tcp_connecting:accept(Listening, Deadline)) of
        {error, not_started} -> ?BADARG(Args, 1, ["has credit to give, which " | ?NOT_STARTED]);
        Answer -> Answer
    end;
accept(Listening, Timeout) ->
    ?BADARG([Listening, Timeout], 2, ?NO_TIMEOUT).

%% Connects to an IP address, a name (its addresses are tried in their order), or {local, Path} with
%% port 0. The time is for all of it.
-spec connect(peer(), inet:port_number(), [option()]) -> {ok, socket()} | {error, reason()}.
connect(Address, Port, Options) ->
    connect(Address, Port, Options, infinity).

-spec connect(peer(), inet:port_number(), [option()], timeout()) ->
    {ok, socket()} | {error, reason()}.
connect(Address, Port, Options, Timeout) when ?IS_PORT(Port), ?IS_TIMEOUT(Timeout) ->
    Args = [Address, Port, Options, Timeout],
    Deadline = tame_tcp_wait:deadline(Timeout),
    case tame_tcp_options:parse(Options) of
        {ok, Parsed} ->
            case tame_tcp_connecting:connect(Address, Port, Parsed, Deadline) of
                badarg -> ?BADARG(Args, 1, "must be an IP address, a host name or {local, Path}");
                {error, not_started} -> ?BADARG(Args, 3, ["has credit, which " | ?NOT_STARTED]);
                Answer -> Answer
            end;
        {error, Option} ->
            ?BADARG(Args, 3, ?NO_OPTION(Option))
    end;
connect(Address, Port, Options, Timeout) when ?IS_PORT(Port) ->
    ?BADARG([Address, Port, Options, Timeout], 4, ?NO_TIMEOUT);
connect(Address, Port, Options, Timeout) ->
    ?BADARG([Address, Port, Options, Timeout], 2, ?NO_PORT).

%% ---- send and receive ---------------------------------------------------------------------------

%% Sends all of the data: ok says that the system has it. Binaries of more than 64 bytes are not
%% copied before that. Waits while the peer does not read; the option send_timeout bounds the
%% time, and what part was sent is not known then. When a sender is killed, what it has sent is a
%% part.
-spec send(socket(), iodata()) -> ok | {error, reason()}.
send(Socket, Data) when is_binary(Data), byte_size(Data) =< ?SMALL ->
    ?WITH_SOCKET([Socket, Data], tame_tcp_sending:send(Socket, [Data]));
send(Socket, Data) ->
    try erlang:iolist_to_iovec(Data) of
        Parts -> ?WITH_SOCKET([Socket, Data], tame_tcp_sending:send(Socket, Parts))
    catch
        error:badarg -> {error, einval}
    end.

%% Receives exactly Length bytes, or with 0 what is there, at most as many as the option `buffer'
%% says. What has come when the time is over is kept for the next call. The peer's end is {error,
%% closed}.
-spec recv(socket(), non_neg_integer()) -> {ok, binary()} | {error, reason()}.
recv(Socket, Length) ->
    recv(Socket, Length, infinity).

-spec recv(socket(), non_neg_integer(), timeout()) -> {ok, binary()} | {error, reason()}.
recv(Socket, Length, Timeout) when is_integer(Length), Length >= 0, ?IS_TIMEOUT(Timeout) ->
    ?WITH_SOCKET(
        [Socket, Length, Timeout],
        recv_until(Socket, min(Length, ?LENGTH_MAX), tame_tcp_wait:deadline(Timeout))
    );
recv(Socket, Length, Timeout) when ?IS_TIMEOUT(Timeout) ->
    ?BADARG([Socket, Length, Timeout], 2, "must be a number of bytes, 0 or more");
recv(Socket, Length, Timeout) ->
    ?BADARG([Socket, Length, Timeout], 3, ?NO_TIMEOUT).

recv_until(Socket, Length, Deadline) ->
    Ref = make_ref(),
    case tame_tcp_nif:recv(Socket, Length, Ref) of
        wait ->
            receive
                {tame_fd, Ref, ready} -> recv_until(Socket, Length, Deadline);
                {tame_fd, Ref, closed} -> {error, closed}
            after tame_tcp_wait:left(Deadline) ->
                tame_tcp_wait:over(Socket, read, Ref)
            end;
        Other ->
            Other
    end.

%% Sends a file, by its name or as file:open/2 with `raw' gave it, without its bytes in the VM.
%% Bytes 0: to the end.
-spec sendfile(socket(), file:name_all() | file:fd()) ->
    {ok, non_neg_integer()} | {error, reason()}.
sendfile(Socket, File) ->
    sendfile(Socket, File, 0, 0).

-spec sendfile(socket(), file:name_all() | file:fd(), non_neg_integer(), non_neg_integer()) ->
    {ok, non_neg_integer()} | {error, reason()}.
sendfile(Socket, File, Offset, Bytes) when
    is_integer(Offset), Offset >= 0, Offset =< ?OFFSET_MAX,
    is_integer(Bytes), Bytes >= 0, Bytes =< ?OFFSET_MAX
->
    Args = [Socket, File, Offset, Bytes],
    ?WITH_SOCKET(Args, tame_tcp_sending:sendfile(Socket, File, Offset, Bytes));
sendfile(_, _, _, _) ->
    {error, einval}.

%% ---- the end, and the owner ---------------------------------------------------------------------

%% Ends one direction, or both; the socket remains. After `write' the peer reads to the end.
-spec shutdown(socket(), read | write | read_write) -> ok | {error, reason()}.
shutdown(Socket, How) when How =:= read; How =:= write; How =:= read_write ->
    ?WITH_SOCKET([Socket, How], tame_tcp_nif:shutdown(Socket, How));
shutdown(Socket, How) ->
    ?BADARG([Socket, How], 2, "must be read, write or read_write").

%% Closes, and returns when the socket is closed. Who waits in it gets {error, closed}. What was
%% sent is still delivered.
-spec close(socket()) -> ok.
close(Socket) ->
    ?WITH_SOCKET([Socket], tame_tcp_wait:close(Socket)).

%% Another process owns the socket, and what messages of it the caller has. Only its owner may
%% say so.
-spec controlling_process(socket(), pid()) -> ok | {error, closed | not_owner | badarg}.
controlling_process(Socket, Pid) when is_pid(Pid), node(Pid) =:= node() ->
    Self = self(),
    case ?WITH_SOCKET([Socket, Pid], tame_tcp_nif:owner(Socket)) of
        {ok, Self} when Pid =:= Self -> ok;
        {ok, Self} -> tame_tcp_active:give(Socket, Pid);
        {ok, _} -> {error, not_owner};
        Error -> Error
    end;
controlling_process(_, _) ->
    {error, badarg}.

-spec owner(socket()) -> {ok, pid()} | {error, closed}.
owner(Socket) ->
    ?WITH_SOCKET([Socket], tame_tcp_nif:owner(Socket)).

%% ---- what can be asked and set ------------------------------------------------------------------

-spec sockname(socket()) -> {ok, address()} | {error, reason()}.
sockname(Socket) ->
    ?WITH_SOCKET([Socket], tame_tcp_nif:name(Socket, sockname)).

-spec peername(socket()) -> {ok, address()} | {error, reason()}.
peername(Socket) ->
    ?WITH_SOCKET([Socket], tame_tcp_nif:name(Socket, peername)).

%% {active, once}, {active, N}, {active, true}: one message, N, or any number of messages
%% {tcp, Socket, Data} to the owner; after N of them {tcp_passive, Socket}. At the peer's end
%% {tcp_closed, Socket}, and the socket is closed. Credit goes before recv, which answers {error,
%% einval} as long as there is some; one that waits already answers so when data comes, or at once
%% when it has a part of its length, which is a message then. Of a listening socket `active' is what
%% those that it accepts from now on begin with.
-spec setopts(socket(), [option()]) -> ok | {error, reason()}.
setopts(_, []) ->
    ok;
setopts(Socket, [Option | More] = Options) ->
    case ?WITH_SOCKET([Socket, Options], setopt(Socket, Option)) of
        ok -> setopts(Socket, More);
        {error, not_started} -> ?BADARG([Socket, Options], 2, ?NOT_STARTED);
        {error, _} = Error -> Error
    end;
setopts(_, _) ->
    {error, einval}.

setopt(Socket, {active, Active}) ->
    tame_tcp_active:set(Socket, Active);
setopt(Socket, Option) ->
    case tame_tcp_options:parse([Option]) of
        {ok, #{set := Set}} -> tame_tcp_options:set(Socket, Set);
        {error, _} -> {error, einval}
    end.

%% {raw, Level, Option, Size} asks the system, for at most 1024 bytes.
-spec getopts(socket(), [atom() | {raw, integer(), integer(), non_neg_integer()}]) ->
    {ok, [tuple()]} | {error, reason()}.
getopts(Socket, Names) ->
    ?WITH_SOCKET([Socket, Names], tame_tcp_options:get(Socket, Names)).

%% Of send_oct and recv_oct, bytes.
-spec getstat(socket(), [send_oct | recv_oct]) ->
    {ok, [tuple()]} | {error, reason()}.
getstat(Socket, Names) when length(Names) >= 0 ->
    case lists:usort(Names) -- [send_oct, recv_oct] of
        [] -> ?WITH_SOCKET([Socket, Names], tame_tcp_options:get(Socket, Names));
        _ -> {error, einval}
    end;
getstat(_, _) ->
    {error, einval}.

-spec format_error(term(), list()) -> map().
format_error(_, [{_, _, _, Info} | _]) ->
    maps:get(cause, proplists:get_value(error_info, Info, #{}), #{}).
