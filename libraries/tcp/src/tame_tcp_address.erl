%% The addresses that people write, as the native side takes them.
-module(tame_tcp_address).

-export([remote/4]).
-export([local/3]).

-type family() :: inet | inet6 | local.

%% Those to connect to, in their order. The time is for the look-up of a name.
-spec remote(term(), inet:port_number(), family(), timeout()) ->
    {ok, family(), [tame_tcp_nif:address()]} | {error, atom()} | badarg.
remote({local, Path}, 0, _, _) ->
    try iolist_to_binary(Path) of
        Binary -> {ok, local, [{local, Binary}]}
    catch
        error:badarg -> badarg
    end;
remote({local, _}, _, _, _) ->
    {error, eaddrnotavail};
remote(loopback, Port, Family, _) ->
    {ok, Family, [ip(Family, loopback(Family), Port)]};
remote(Ip, Port, _, _) when tuple_size(Ip) =:= 4; tuple_size(Ip) =:= 8 ->
    case inet:is_ip_address(Ip) of
        true when tuple_size(Ip) =:= 4 -> {ok, inet, [ip(inet, Ip, Port)]};
        true -> {ok, inet6, [ip(inet6, Ip, Port)]};
        false -> badarg
    end;
remote(Name, Port, Family, Timeout) when
    (is_atom(Name) orelse is_list(Name)), Family =/= local
->
    case inet:getaddrs(Name, Family, Timeout) of
        {ok, Ips} -> {ok, Family, [ip(Family, Ip, Port) || Ip <- Ips]};
        {error, Reason} -> {error, Reason}
    end;
remote(_, _, _, _) ->
    badarg.

%% The one to bind to, which tame_tcp_options has read.
-spec local(family(), term(), inet:port_number()) -> tame_tcp_nif:address().
local(_, {local, _} = Address, _) -> Address;
local(Family, any, Port) -> ip(Family, any(Family), Port);
local(Family, loopback, Port) -> ip(Family, loopback(Family), Port);
local(Family, Ip, Port) -> ip(Family, Ip, Port).

%% An address of the other family is the system's to refuse.
ip(_, Ip, Port) when tuple_size(Ip) =:= 4 -> {inet, Ip, Port};
ip(_, Ip, Port) -> {inet6, Ip, Port, 0}.

any(inet6) -> {0, 0, 0, 0, 0, 0, 0, 0};
any(_) -> {0, 0, 0, 0}.

loopback(inet6) -> {0, 0, 0, 0, 0, 0, 0, 1};
loopback(_) -> {127, 0, 0, 1}.
