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
    | {send_timeout, non_neg_integer() | infinity}
    | {send_timeout_close, boolean()}.

%% ---- listen, accept, connect ------------------------------------------------------------------

%% Listens on a port, or on {ip, {local, Path}} with port 0. What is said here of `active',
%% `buffer' and the system's options is also said of the sockets that are accepted.
-spec listen(inet:port_number(), [option()]) -> {ok, socket()} | {error, reason()}.
listen(Port, Options) when is_integer(Port), Port >= 0, Port =< 65535 ->
    Parsed = parsed(Options, 2, [Port, Options]),
    listen_on(Port, Parsed);
listen(Port, Options) ->
    badarg([Port, Options], 1, "must be a port from 0 to 65535").

listen_on(Port, #{family := Family, set := Set, backlog := Backlog, active := Active} = Parsed) ->
    open(Family, fun(Socket) ->
        Address = tame_tcp_address:local(Family, maps:get(address, Parsed, any), Port),
        steps([
            fun() -> tame_tcp_options:set(Socket, Set) end,
            fun() -> tame_tcp_nif:bind(Socket, Address) end,
            fun() -> tame_tcp_nif:listen(Socket, Backlog) end,
            fun() -> tame_tcp_nif:setopt(Socket, accept_active, active_code(Active)) end
        ])
    end).

%% Waits for a connection, and returns it. The caller owns it.
-spec accept(socket()) -> {ok, socket()} | {error, reason()}.
accept(Listening) ->
    accept(Listening, infinity).

-spec accept(socket(), timeout()) -> {ok, socket()} | {error, reason()}.
accept(Listening, Timeout) ->
    accept_until(Listening, deadline(Timeout, 2, [Listening, Timeout])).

accept_until(Listening, Deadline) ->
    Ref = make_ref(),
    case tame_tcp_nif:accept(Listening, Ref) of
        wait ->
            receive
                {tame_fd, Ref, ready} -> accept_until(Listening, Deadline);
                {tame_fd, Ref, closed} -> {error, closed}
            after left(Deadline) ->
                timeout(Listening, read, Ref)
            end;
        {ok, Socket, Active} ->
            activated(Socket, active_term(Active));
        Other ->
            Other
    end.

activated(Socket, false) -> {ok, Socket};
activated(Socket, Active) ->
    case set_active(Socket, Active) of
        ok -> {ok, Socket};
        {error, _} = Error -> Error
    end.

%% Connects to an IP address, a name (its addresses are tried in their order), or {local, Path} with
%% port 0. The time is for all of it.
-spec connect(peer(), inet:port_number(), [option()]) -> {ok, socket()} | {error, reason()}.
connect(Address, Port, Options) ->
    connect(Address, Port, Options, infinity).

-spec connect(peer(), inet:port_number(), [option()], timeout()) ->
    {ok, socket()} | {error, reason()}.
connect(Address, Port, Options, Timeout) when is_integer(Port), Port >= 0, Port =< 65535 ->
    Args = [Address, Port, Options, Timeout],
    Deadline = deadline(Timeout, 4, Args),
    #{family := Said} = Parsed = parsed(Options, 3, Args),
    case tame_tcp_address:remote(Address, Port, Said, left(Deadline)) of
        {ok, Family, Addresses} -> connect_first(Addresses, Family, Parsed, Deadline, einval);
        {error, _} = Error -> Error;
        badarg -> badarg(Args, 1, "must be an IP address, a host name or {local, Path}")
    end;
connect(Address, Port, Options, Timeout) ->
    badarg([Address, Port, Options, Timeout], 2, "must be a port from 0 to 65535").

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
            fun() -> set_active(Socket, Active) end
        ])
    end).

bind_first(Socket, Family, #{address := Address}, Port) ->
    tame_tcp_nif:bind(Socket, tame_tcp_address:local(Family, Address, Port));
bind_first(_, _, _, 0) ->
    ok;
bind_first(Socket, Family, _, Port) ->
    tame_tcp_nif:bind(Socket, tame_tcp_address:local(Family, any, Port)).

connect_wait(Socket, Remote, Deadline) ->
    Ref = make_ref(),
    connect_answer(tame_tcp_nif:connect(Socket, Remote, Ref), Socket, Ref, Deadline).

connect_answer(wait, Socket, Ref, Deadline) ->
    receive
        {tame_fd, Ref, ready} ->
            connect_answer(tame_tcp_nif:connected(Socket, Ref), Socket, Ref, Deadline);
        {tame_fd, Ref, closed} ->
            {error, closed}
    after left(Deadline) ->
        timeout(Socket, write, Ref)
    end;
connect_answer(Other, _, _, _) ->
    Other.

%% ---- send and receive ---------------------------------------------------------------------------

%% Sends all of the data: ok says that the system has it. Binaries of more than 64 bytes are not
%% copied before that. Waits while the peer does not read; the option send_timeout bounds the
%% time, and what part was sent is not known then. When a sender is killed, what it has sent is a
%% part.
-spec send(socket(), iodata()) -> ok | {error, reason()}.
send(Socket, Data) ->
    try erlang:iolist_to_iovec(Data) of
        Parts -> send_parts(Socket, Parts, unknown)
    catch
        error:badarg -> {error, einval}
    end.

send_parts(Socket, Parts, Deadline) ->
    Ref = make_ref(),
    case tame_tcp_nif:send(Socket, Parts, Ref) of
        ok ->
            ok;
        {error, _} = Error ->
            Error;
        Wait ->
            Until = send_deadline(Socket, Deadline),
            receive
                {tame_fd, Ref, ready} -> send_parts(Socket, rest(Parts, sent(Wait)), Until);
                {tame_fd, Ref, closed} -> {error, closed}
            after left(Until) ->
                send_timeout(Socket, Ref)
            end
    end.

sent(wait) -> 0;
sent({wait, Bytes}) -> Bytes.

rest(Parts, 0) -> Parts;
rest([Part | Parts], Bytes) when byte_size(Part) =< Bytes -> rest(Parts, Bytes - byte_size(Part));
rest([Part | Parts], Bytes) ->
    <<_:Bytes/binary, Rest/binary>> = Part,
    [Rest | Parts].

%% Asked for when a send has to wait, which few do.
send_deadline(Socket, unknown) ->
    case tame_tcp_nif:getopt(Socket, send_timeout) of
        {ok, Ms} when Ms >= 0 -> now_ms() + Ms;
        _ -> infinity
    end;
send_deadline(_, Deadline) ->
    Deadline.

send_timeout(Socket, Ref) ->
    {error, timeout} = timeout(Socket, write, Ref),
    case tame_tcp_nif:getopt(Socket, send_timeout_close) of
        {ok, 1} -> close(Socket);
        _ -> ok
    end,
    {error, timeout}.

%% Receives exactly Length bytes, or with 0 what is there, at most as many as the option `buffer' says.
%% What has come when the time is over is kept for the next call. The peer's end is {error,
%% closed}.
-spec recv(socket(), non_neg_integer()) -> {ok, binary()} | {error, reason()}.
recv(Socket, Length) ->
    recv_until(Socket, Length, infinity).

-spec recv(socket(), non_neg_integer(), timeout()) -> {ok, binary()} | {error, reason()}.
recv(Socket, Length, Timeout) ->
    recv_until(Socket, Length, deadline(Timeout, 3, [Socket, Length, Timeout])).

recv_until(Socket, Length, Deadline) ->
    Ref = make_ref(),
    case tame_tcp_nif:recv(Socket, Length, Ref) of
        wait ->
            receive
                {tame_fd, Ref, ready} -> recv_until(Socket, Length, Deadline);
                {tame_fd, Ref, closed} -> {error, closed}
            after left(Deadline) ->
                timeout(Socket, read, Ref)
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
    is_integer(Offset), Offset >= 0, is_integer(Bytes), Bytes >= 0
->
    case file_of(File) of
        {ok, Opened} -> sendfile_part(Socket, Opened, Offset, until(Bytes), 0, unknown);
        {error, _} = Error -> Error
    end;
sendfile(_, _, _, _) ->
    {error, einval}.

until(0) -> 16#7fffffffffffffff;
until(Bytes) -> Bytes.

sendfile_part(_, _, _, 0, Done, _) ->
    {ok, Done};
sendfile_part(Socket, File, At, Bytes, Done, Deadline) ->
    Ref = make_ref(),
    case tame_tcp_nif:sendfile(Socket, File, At, Bytes, Ref) of
        ok ->
            {ok, Done + Bytes};
        eof ->
            {ok, Done};
        {error, _} = Error ->
            Error;
        Wait ->
            Until = send_deadline(Socket, Deadline),
            Sent = sent(Wait),
            receive
                {tame_fd, Ref, ready} ->
                    sendfile_part(Socket, File, At + Sent, Bytes - Sent, Done + Sent, Until);
                {tame_fd, Ref, closed} ->
                    {error, closed}
            after left(Until) ->
                send_timeout(Socket, Ref)
            end
    end.

%% A raw file belongs to its owner, who calls: its descriptor is there until we have our own.
file_of(File) when is_tuple(File) ->
    try prim_file:get_handle(File) of
        Handle when is_binary(Handle) -> tame_tcp_nif:file_dup(Handle);
        {error, _} = Error -> Error
    catch
        error:_ -> {error, einval}
    end;
file_of(Name) ->
    try filename:flatten(Name) of
        Flat when is_binary(Flat) -> tame_tcp_nif:file_open(Flat);
        Flat -> tame_tcp_nif:file_open(native(Flat))
    catch
        error:_ -> {error, einval}
    end.

native(Name) ->
    unicode:characters_to_binary(Name, unicode, file:native_name_encoding()).

%% ---- the end, and the owner ---------------------------------------------------------------------

%% Ends one direction, or both; the socket remains. After `write' the peer reads to the end.
-spec shutdown(socket(), read | write | read_write) -> ok | {error, reason()}.
shutdown(Socket, How) ->
    tame_tcp_nif:shutdown(Socket, How).

%% Closes, and returns when the socket is closed. Who waits in it gets {error, closed}. What was
%% sent is still delivered.
-spec close(socket()) -> ok.
close(Socket) ->
    Ref = make_ref(),
    case tame_tcp_nif:close(Socket, Ref) of
        ok -> ok;
        wait -> receive {tame_fd, Ref, closed} -> ok end
    end.

%% Another process owns the socket, and what messages of it the caller has. Only its owner may
%% say so.
-spec controlling_process(socket(), pid()) -> ok | {error, closed | not_owner | badarg}.
controlling_process(Socket, Pid) when Pid =:= self() ->
    case owner(Socket) of
        {ok, Pid} -> ok;
        {ok, _} -> {error, not_owner};
        Error -> Error
    end;
controlling_process(Socket, Pid) when is_pid(Pid), node(Pid) =:= node() ->
    Self = self(),
    case owner(Socket) of
        {ok, Self} -> give(Socket, Pid);
        {ok, _} -> {error, not_owner};
        Error -> Error
    end;
controlling_process(_, _) ->
    {error, badarg}.

%% Passive meanwhile, so that the messages keep their order.
give(Socket, Pid) ->
    {ok, Active} = active(Socket),
    _ = Active =/= false andalso set_active(Socket, false),
    case tame_tcp_nif:give(Socket, Pid) of
        ok ->
            forward(Socket, Pid),
            _ = Active =/= false andalso set_active(Socket, Active),
            ok;
        {error, _} = Error ->
            _ = Active =/= false andalso set_active(Socket, Active),
            Error
    end.

active(Socket) ->
    case tame_tcp_nif:getopt(Socket, active) of
        {ok, Active} -> {ok, Active};
        {error, _} -> {ok, false}
    end.

forward(Socket, Pid) ->
    receive
        {Tag, Socket, _} = Message when Tag =:= tcp; Tag =:= tcp_error ->
            Pid ! Message,
            forward(Socket, Pid);
        {Tag, Socket} = Message when Tag =:= tcp_closed; Tag =:= tcp_passive ->
            Pid ! Message,
            forward(Socket, Pid)
    after 0 -> ok
    end.

-spec owner(socket()) -> {ok, pid()} | {error, closed}.
owner(Socket) ->
    tame_tcp_nif:owner(Socket).

%% ---- what can be asked and set ------------------------------------------------------------------

-spec sockname(socket()) -> {ok, address()} | {error, reason()}.
sockname(Socket) ->
    tame_tcp_nif:name(Socket, sockname).

-spec peername(socket()) -> {ok, address()} | {error, reason()}.
peername(Socket) ->
    tame_tcp_nif:name(Socket, peername).

%% {active, once}, {active, N}, {active, true}: one message, N, or any number of messages
%% {tcp, Socket, Data} to the owner; after N of them {tcp_passive, Socket}. At the peer's end {tcp_closed, Socket}, and the
%% socket is closed.
-spec setopts(socket(), [option()]) -> ok | {error, reason()}.
setopts(_, []) ->
    ok;
setopts(Socket, [{active, Active} | More]) ->
    case set_active(Socket, Active) of
        ok -> setopts(Socket, More);
        {error, _} = Error -> Error
    end;
setopts(Socket, [Option | More]) ->
    case tame_tcp_options:parse([Option]) of
        {ok, #{set := Set}} ->
            case tame_tcp_options:set(Socket, Set) of
                ok -> setopts(Socket, More);
                {error, _} = Error -> Error
            end;
        {error, _} ->
            {error, einval}
    end;
setopts(_, _) ->
    {error, einval}.

-spec getopts(socket(), [atom()]) -> {ok, [{atom(), term()}]} | {error, reason()}.
getopts(Socket, Names) ->
    tame_tcp_options:get(Socket, Names).

%% Of send_oct and recv_oct, bytes.
-spec getstat(socket(), [send_oct | recv_oct]) ->
    {ok, [{atom(), non_neg_integer()}]} | {error, reason()}.
getstat(Socket, Names) ->
    case Names -- [send_oct, recv_oct] of
        [] -> tame_tcp_options:get(Socket, Names);
        _ -> {error, einval}
    end.

set_active(Socket, false) ->
    case reader(Socket) of
        undefined -> ok;
        Reader -> set_passive(Socket, Reader)
    end;
set_active(Socket, Active) when Active =:= true; Active =:= once; is_integer(Active) ->
    case reader(Socket) of
        undefined ->
            badarg([Socket, Active], 2, "needs the application tame_tcp, which does not run");
        Reader ->
            tame_tcp_nif:credit(Socket, Active, Reader)
    end;
set_active(_, _) ->
    {error, einval}.

set_passive(Socket, Reader) ->
    Ref = make_ref(),
    case tame_tcp_nif:passive(Socket, Reader, Ref) of
        %% A reader is at work: after it nothing comes any more.
        wait ->
            receive {tame_fd, Ref, _} -> ok end,
            _ = tame_tcp_nif:cancel(Socket, read),
            ok;
        Other ->
            Other
    end.

%% As the native side keeps what accepted sockets begin with.
active_code(false) -> 0;
active_code(true) -> -1;
active_code(once) -> 1 bsl 16;
active_code(Messages) -> max(0, Messages).

active_term(0) -> false;
active_term(-1) -> true;
active_term(65536) -> once;
active_term(Messages) -> Messages.

reader(Socket) ->
    tame_tcp_reader:of_socket(Socket).

%% ---- what all use -------------------------------------------------------------------------------

%% A new socket that these steps have made ready, or closed again.
open(Family, Prepare) ->
    case tame_tcp_nif:open(Family) of
        {ok, Socket} ->
            case Prepare(Socket) of
                ok ->
                    {ok, Socket};
                {error, _} = Error ->
                    ok = close(Socket),
                    Error
            end;
        {error, _} = Error ->
            Error
    end.

steps([]) ->
    ok;
steps([Step | More]) ->
    case Step() of
        ok -> steps(More);
        {error, _} = Error -> Error
    end.

%% The wait ends; when its message is on its way, it is received.
timeout(Socket, Direction, Ref) ->
    case tame_tcp_nif:cancel(Socket, Direction) of
        done -> {error, timeout};
        sent -> receive {tame_fd, Ref, _} -> {error, timeout} end
    end.

deadline(infinity, _, _) -> infinity;
deadline(Timeout, _, _) when is_integer(Timeout), Timeout >= 0 -> now_ms() + Timeout;
deadline(_, Number, Args) -> badarg(Args, Number, "must be infinity or ms, 0 or more").

left(infinity) -> infinity;
left(Deadline) -> max(0, Deadline - now_ms()).

now_ms() -> erlang:monotonic_time(millisecond).

parsed(Options, Number, Args) ->
    case tame_tcp_options:parse(Options) of
        {ok, Parsed} ->
            Parsed;
        {error, Option} ->
            badarg(Args, Number, io_lib:format("has an unknown option: ~0tp", [Option]))
    end.

-spec badarg([term()], pos_integer(), iodata()) -> no_return().
badarg(Args, Number, Sentence) ->
    erlang:error(badarg, Args, info(Number, Sentence)).

info(Number, Sentence) ->
    [{error_info, #{module => ?MODULE, cause => #{Number => iolist_to_binary(Sentence)}}}].

-spec format_error(term(), list()) -> map().
format_error(_, [{_, _, _, Info} | _]) ->
    maps:get(cause, proplists:get_value(error_info, Info, #{}), #{}).
