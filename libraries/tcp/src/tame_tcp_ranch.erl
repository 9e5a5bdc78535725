%% tame_tcp as a transport of ranch, so that cowboy and others run on it unchanged:
%%
%%     Transport = #{socket_opts => [{port, 8080}]},
%%     ranch:start_listener(Ref, tame_tcp_ranch, Transport, cowboy_clear, Options)
%%
%% Needs ranch 2 at run time; compiles without it.
-module(tame_tcp_ranch).

-export([name/0, secure/0, messages/0]).
-export([listen/1, disallowed_listen_options/0, accept/2, handshake/2, handshake/3]).
-export([handshake_continue/2, handshake_continue/3, handshake_cancel/1]).
-export([connect/3, connect/4]).
-export([recv/3, recv_proxy_header/2, send/2, sendfile/2, sendfile/4, sendfile/5]).
-export([setopts/2, getopts/2, getstat/1, getstat/2]).
-export([controlling_process/2, peername/1, sockname/1, shutdown/2, close/1]).
-export([cleanup/1, format_error/1]).

-spec name() -> tame_tcp.
name() -> tame_tcp.

-spec secure() -> false.
secure() -> false.

-spec messages() -> {tcp, tcp_closed, tcp_error, tcp_passive}.
messages() -> {tcp, tcp_closed, tcp_error, tcp_passive}.

%% Ranch's own defaults for TCP. What it says of the connections' processes is not ours.
-spec listen(map()) -> {ok, tame_tcp:socket()} | {error, atom()}.
listen(#{socket_opts := Options}) ->
    Given = [Option || Option <- Options, not is_disallowed(Option)],
    Defaults = [
        {backlog, 1024}, {nodelay, true}, {send_timeout, 30000}, {send_timeout_close, true}
    ],
    Missing = [Option || {Name, _} = Option <- Defaults, not lists:keymember(Name, 1, Given)],
    Port = proplists:get_value(port, Given, 0),
    Fixed = [binary, {active, false}, {packet, raw}, {reuseaddr, true}],
    tame_tcp:listen(Port, Missing ++ Given ++ Fixed).

is_disallowed({Name, _}) -> lists:member(Name, disallowed_listen_options());
is_disallowed(Name) -> lists:member(Name, disallowed_listen_options()).

-spec disallowed_listen_options() -> [atom()].
disallowed_listen_options() ->
    [active, header, mode, packet, packet_size, line_delimiter, reuseaddr].

-spec accept(tame_tcp:socket(), timeout()) -> {ok, tame_tcp:socket()} | {error, atom()}.
accept(Listening, Timeout) -> tame_tcp:accept(Listening, Timeout).

-spec handshake(tame_tcp:socket(), timeout()) -> {ok, tame_tcp:socket()}.
handshake(Socket, Timeout) -> handshake(Socket, [], Timeout).

-spec handshake(tame_tcp:socket(), list(), timeout()) -> {ok, tame_tcp:socket()}.
handshake(Socket, _, _) -> {ok, Socket}.

-spec handshake_continue(tame_tcp:socket(), timeout()) -> no_return().
handshake_continue(Socket, Timeout) -> handshake_continue(Socket, [], Timeout).

-spec handshake_continue(tame_tcp:socket(), list(), timeout()) -> no_return().
handshake_continue(_, _, _) -> error(not_supported).

-spec handshake_cancel(tame_tcp:socket()) -> no_return().
handshake_cancel(_) -> error(not_supported).

-spec connect(inet:ip_address() | inet:hostname(), inet:port_number(), list()) ->
    {ok, tame_tcp:socket()} | {error, atom()}.
connect(Host, Port, Options) -> connect(Host, Port, Options, infinity).

-spec connect(inet:ip_address() | inet:hostname(), inet:port_number(), list(), timeout()) ->
    {ok, tame_tcp:socket()} | {error, atom()}.
connect(Host, Port, Options, Timeout) ->
    tame_tcp:connect(Host, Port, Options ++ [binary, {active, false}, {packet, raw}], Timeout).

-spec recv(tame_tcp:socket(), non_neg_integer(), timeout()) -> {ok, binary()} | {error, atom()}.
recv(Socket, Length, Timeout) -> tame_tcp:recv(Socket, Length, Timeout).

%% The header of the PROXY protocol would have to be read line by line.
-spec recv_proxy_header(tame_tcp:socket(), timeout()) -> no_return().
recv_proxy_header(_, _) -> error(not_supported).

-spec send(tame_tcp:socket(), iodata()) -> ok | {error, atom()}.
send(Socket, Data) -> tame_tcp:send(Socket, Data).

-spec sendfile(tame_tcp:socket(), file:name_all() | file:fd()) ->
    {ok, non_neg_integer()} | {error, atom()}.
sendfile(Socket, File) -> sendfile(Socket, File, 0, 0).

-spec sendfile(
    tame_tcp:socket(), file:name_all() | file:fd(), non_neg_integer(), non_neg_integer()
) -> {ok, non_neg_integer()} | {error, atom()}.
sendfile(Socket, File, Offset, Bytes) -> tame_tcp:sendfile(Socket, File, Offset, Bytes).

-spec sendfile(
    tame_tcp:socket(), file:name_all() | file:fd(), non_neg_integer(), non_neg_integer(), list()
) -> {ok, non_neg_integer()} | {error, atom()}.
sendfile(Socket, File, Offset, Bytes, _) -> tame_tcp:sendfile(Socket, File, Offset, Bytes).

-spec setopts(tame_tcp:socket(), list()) -> ok | {error, atom()}.
setopts(Socket, Options) -> tame_tcp:setopts(Socket, Options).

-spec getopts(tame_tcp:socket(), [atom()]) -> {ok, list()} | {error, atom()}.
getopts(Socket, Names) -> tame_tcp:getopts(Socket, Names).

-spec getstat(tame_tcp:socket()) -> {ok, list()} | {error, atom()}.
getstat(Socket) -> tame_tcp:getstat(Socket, [recv_oct, send_oct]).

-spec getstat(tame_tcp:socket(), [atom()]) -> {ok, list()} | {error, atom()}.
getstat(Socket, Names) -> tame_tcp:getstat(Socket, Names).

-spec controlling_process(tame_tcp:socket(), pid()) -> ok | {error, closed | not_owner | badarg}.
controlling_process(Socket, Pid) -> tame_tcp:controlling_process(Socket, Pid).

-spec peername(tame_tcp:socket()) -> {ok, tame_tcp:address()} | {error, atom()}.
peername(Socket) -> tame_tcp:peername(Socket).

-spec sockname(tame_tcp:socket()) -> {ok, tame_tcp:address()} | {error, atom()}.
sockname(Socket) -> tame_tcp:sockname(Socket).

-spec shutdown(tame_tcp:socket(), read | write | read_write) -> ok | {error, atom()}.
shutdown(Socket, How) -> tame_tcp:shutdown(Socket, How).

-spec close(tame_tcp:socket()) -> ok.
close(Socket) -> tame_tcp:close(Socket).

-spec cleanup(map()) -> ok.
cleanup(_) -> ok.

-spec format_error(atom()) -> string().
format_error(Reason) -> inet:format_error(Reason).
