%% The options of listen and connect, and those that are set later.
-module(tame_tcp_options).

-export([parse/1]).
-export([set/2]).
-export([get/2]).
-export([is_active/1]).

-export_type([parsed/0]).

-type raw() :: {raw, Level :: integer(), Option :: integer()}.

%% set: for the system, in their order.
-type parsed() :: #{
    family := inet | inet6 | local,
    address => any | loopback | inet:ip_address() | {local, binary()},
    port := inet:port_number(),
    backlog := pos_integer(),
    active := false | true | once | integer(),
    set := [{atom(), integer()} | {raw(), binary()}]
}.

%% What setsockopt(2) and listen(2) take: a C int.
-define(INT_MAX, 16#7fffffff).
-define(IS_INT(Int), is_integer(Int), Int >= -?INT_MAX - 1, Int =< ?INT_MAX).
%% The most that `after' takes, ms.
-define(TIMEOUT_MAX, 16#ffffffff).

%% gen_tcp's backlog is 5, which is less than a burst of clients.
-define(DEFAULTS, #{family => inet, port => 0, backlog => 128, active => true, set => []}).

%% gen_tcp's own options, as far as they are known here; else the first that is not.
-spec parse([term()]) -> {ok, parsed()} | {error, term()}.
parse(Options) ->
    parse(Options, ?DEFAULTS).

parse([], #{set := Set} = Parsed) ->
    {ok, Parsed#{set := lists:reverse(Set)}};
parse([Option | More], #{set := Set} = Parsed) ->
    case one(Option) of
        same -> parse(More, Parsed);
        {set, Name, Value} -> parse(More, Parsed#{set := [{Name, Value} | Set]});
        {Key, Value} -> parse(More, address(Key, Value, Parsed));
        unknown -> {error, Option}
    end;
parse(Other, _) ->
    {error, Other}.

%% An address tells the family, unless an option does.
address(address, {local, _} = Address, Parsed) -> Parsed#{address => Address, family := local};
address(address, Ip, Parsed) when tuple_size(Ip) =:= 8 -> Parsed#{address => Ip, family := inet6};
address(Key, Value, Parsed) -> Parsed#{Key => Value}.

one(binary) -> same;
one({mode, binary}) -> same;
one({packet, raw}) -> same;
one({packet, 0}) -> same;
one(inet) -> {family, inet};
one(inet6) -> {family, inet6};
one(local) -> {family, local};
one({ip, Ip}) -> ip(Ip);
one({ifaddr, Ip}) -> ip(Ip);
one({port, Port}) when is_integer(Port), Port >= 0, Port =< 65535 -> {port, Port};
one({backlog, Backlog}) when ?IS_INT(Backlog), Backlog >= 0 -> {backlog, Backlog};
one({active, Active}) ->
    case is_active(Active) of
        true -> {active, Active};
        false -> unknown
    end;
one({raw, Level, Option, Value}) when ?IS_INT(Level), ?IS_INT(Option), is_binary(Value) ->
    {set, {raw, Level, Option}, Value};
one({Name, Value}) ->
    case to_integer(type(Name), Value) of
        unknown -> unknown;
        Integer -> {set, Name, Integer}
    end;
one(_) -> unknown.

%% As much credit as gen_tcp's sockets can have.
-spec is_active(term()) -> boolean().
is_active(Active) when is_integer(Active) -> Active >= -32768 andalso Active =< 32767;
is_active(Active) -> is_boolean(Active) orelse Active =:= once.

ip(any) -> {address, any};
ip(loopback) -> {address, loopback};
ip({local, Path}) ->
    try {address, {local, iolist_to_binary(Path)}}
    catch error:badarg -> unknown
    end;
ip(Ip) ->
    case inet:is_ip_address(Ip) of
        true -> {address, Ip};
        false -> unknown
    end.

%% Of the system, and our own.
type(nodelay) -> boolean;
type(keepalive) -> boolean;
type(reuseaddr) -> boolean;
type(reuseport) -> boolean;
type(dontroute) -> boolean;
type(ipv6_v6only) -> boolean;
type(send_timeout_close) -> boolean;
type(sndbuf) -> integer;
type(recbuf) -> integer;
type(buffer) -> integer;
type(priority) -> integer;
type(tos) -> integer;
type(ttl) -> integer;
type(tclass) -> integer;
type(linger) -> linger;
type(send_timeout) -> timeout;
type(_) -> unknown.

%% As the native side takes it, which refuses a `linger' of more than 0 s.
to_integer(boolean, true) -> 1;
to_integer(boolean, false) -> 0;
to_integer(integer, Value) when ?IS_INT(Value), Value >= 0 -> Value;
to_integer(linger, {true, Seconds}) when ?IS_INT(Seconds), Seconds >= 0 -> Seconds;
to_integer(linger, {false, Seconds}) when ?IS_INT(Seconds), Seconds >= 0 -> -1;
to_integer(timeout, infinity) -> -1;
to_integer(timeout, Ms) when is_integer(Ms), Ms >= 0, Ms =< ?TIMEOUT_MAX -> Ms;
to_integer(_, _) -> unknown.

%% What parse/1 has read.
-spec set(tame_tcp_nif:socket(), [{atom(), integer()} | {raw(), binary()}]) ->
    ok | {error, atom()}.
set(_, []) ->
    ok;
set(Socket, [{Name, Value} | More]) ->
    case set_one(Socket, Name, Value) of
        ok -> set(Socket, More);
        {error, _} = Error -> Error
    end.

set_one(Socket, {raw, Level, Option}, Value) ->
    tame_tcp_nif:setraw(Socket, Level, Option, Value);
set_one(Socket, Name, Value) ->
    tame_tcp_nif:setopt(Socket, Name, Value).

%% Those that are unknown are left out, as inet:getopts/2 does.
-spec get(tame_tcp_nif:socket(), [atom() | tuple()]) -> {ok, [tuple()]} | {error, atom()}.
get(Socket, Names) when length(Names) >= 0 ->
    get(Socket, Names, []);
get(_, _) ->
    {error, einval}.

get(_, [], Found) ->
    {ok, lists:reverse(Found)};
get(Socket, [Name | More], Found) ->
    case value(Socket, Name) of
        {ok, Value} -> get(Socket, More, [named(Name, Value) | Found]);
        {error, closed} -> {error, einval};
        {error, _} -> get(Socket, More, Found)
    end.

named({raw, Level, Option, _}, Value) -> {raw, Level, Option, Value};
named(Name, Value) -> {Name, Value}.

value(Socket, {raw, Level, Option, Size}) when
    ?IS_INT(Level), ?IS_INT(Option), ?IS_INT(Size), Size >= 0
->
    tame_tcp_nif:getraw(Socket, Level, Option, Size);
value(_, mode) -> {ok, binary};
value(_, packet) -> {ok, 0};
value(Socket, send_timeout) ->
    case tame_tcp_nif:getopt(Socket, send_timeout) of
        {ok, -1} -> {ok, infinity};
        Other -> Other
    end;
value(Socket, send_timeout_close) ->
    case tame_tcp_nif:getopt(Socket, send_timeout_close) of
        {ok, Value} -> {ok, Value =:= 1};
        Other -> Other
    end;
value(Socket, Name) when is_atom(Name) -> tame_tcp_nif:getopt(Socket, Name);
value(_, _) -> {error, einval}.
