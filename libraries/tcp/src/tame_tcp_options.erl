%% The options of listen and connect, and those that are set later.
-module(tame_tcp_options).

-export([parse/1]).
-export([set/2]).
-export([get/2]).
-export([to_integer/1]).

-export_type([parsed/0]).

-type raw() :: {raw, Level :: integer(), Option :: integer()}.

%% set: for the system, in their order.
-type parsed() :: #{
    family := inet | inet6 | local,
    address => term(),
    port := inet:port_number(),
    backlog := pos_integer(),
    active := false | true | once | integer(),
    set := [{atom(), integer()} | {raw(), binary()}]
}.

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
one({backlog, Backlog}) when is_integer(Backlog), Backlog >= 0 -> {backlog, Backlog};
one({active, Active}) when is_boolean(Active); Active =:= once; is_integer(Active) ->
    {active, Active};
one({raw, Level, Option, Value}) when is_integer(Level), is_integer(Option), is_binary(Value) ->
    {set, {raw, Level, Option}, Value};
one({Name, Value}) when is_atom(Name) ->
    case is_known(Name) andalso to_integer(Value) of
        Integer when is_integer(Integer) -> {set, Name, Integer};
        _ -> unknown
    end;
one(_) -> unknown.

ip(any) -> {address, any};
ip(loopback) -> {address, loopback};
ip({local, _} = Address) -> {address, Address};
ip(Ip) ->
    case inet:is_ip_address(Ip) of
        true -> {address, Ip};
        false -> unknown
    end.

%% Of the system, and our own. `linger' of more than 0 s is refused when it is set.
is_known(Name) ->
    lists:member(Name, [
        nodelay, keepalive, reuseaddr, reuseport, dontroute, ipv6_v6only, sndbuf, recbuf, priority,
        tos, ttl, tclass, linger, buffer, send_timeout, send_timeout_close
    ]).

%% As the native side takes it; the term itself when it is none of these.
-spec to_integer(term()) -> term().
to_integer(true) -> 1;
to_integer(false) -> 0;
to_integer(infinity) -> -1;
to_integer({true, Seconds}) when is_integer(Seconds), Seconds >= 0 -> Seconds;
to_integer({false, _}) -> -1;
to_integer(Value) -> Value.

-spec set(tame_tcp_nif:socket(), [{atom() | raw(), term()}]) -> ok | {error, atom()}.
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
    tame_tcp_nif:setopt(Socket, Name, to_integer(Value)).

%% Those that are unknown are left out, as inet:getopts/2 does.
-spec get(tame_tcp_nif:socket(), [atom() | tuple()]) -> {ok, [tuple()]} | {error, atom()}.
get(Socket, Names) ->
    get(Socket, Names, []).

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
    is_integer(Level), is_integer(Option), is_integer(Size), Size >= 0
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
