%% Which hosts are up with which libraries, and what the libraries' entries say of that: callers
%% take their rings from there (tame_library).
-module(tame_hosts_rings).

-include("tame_registry.hrl").

-export([has/2]).
-export([everywhere/2]).
-export([state/2]).
-export([choose/2]).
-export([publish/2]).

-export_type([host/0]).
-export_type([hosts/0]).

%% `down' also while it starts.
-type host() :: {up, tame_ring:ring(), tame_host_libraries:libraries()} | down | failed.

%% Oldest first.
-type hosts() :: [{pid(), host()}].

-spec has(tame_host_libraries:library(), tame_host_libraries:libraries()) -> boolean().
has(#{number := Number, key := Key}, Have) ->
    case Have of
        #{Number := {Key, _}} -> true;
        #{} -> false
    end.

%% Whether each host that is up has it.
-spec everywhere(tame_host_libraries:library(), hosts()) -> boolean().
everywhere(Library, Hosts) ->
    lists:all(fun(Have) -> has(Library, Have) end, [Have || {_, {up, _, Have}} <- Hosts]).

%% A group that serves has each library in a host.
-spec state([tame_host_libraries:library()], hosts()) -> failed | serving | empty.
state(Libraries, Hosts) ->
    IsUp = lists:any(fun({_, State}) -> is_tuple(State) end, Hosts),
    IsServed = fun(Library) -> rings(Library, Hosts) =/= [] end,
    case [Host || {Host, State} <- Hosts, State =/= failed] of
        [] when Hosts =/= [] -> failed;
        _ when not IsUp -> empty;
        _ ->
            case lists:all(IsServed, Libraries) of
                true -> serving;
                false -> empty
            end
    end.

%% The least busy ring of those that have the library; there is one.
-spec choose(tame_host_libraries:library(), hosts()) -> tame_ring:ring().
choose(Library, Hosts) ->
    Rings = list_to_tuple(rings(Library, Hosts)),
    element(tame_ring:choose(Rings), Rings).

%% Writes the entries.
-spec publish([tame_host_libraries:library()], hosts()) -> ok.
publish(Libraries, Hosts) ->
    Infos = maps:from_list(lists:append([maps:values(Have) || {_, {up, _, Have}} <- Hosts])),
    lists:foreach(fun(Library) -> publish(Library, Infos, Hosts) end, Libraries).

%% Where no host is up, what the library does is not known, and stays as it was.
publish(#{key := Key, module := Module, number := Number} = Library, Infos, Hosts) ->
    Rings = list_to_tuple(rings(Library, Hosts)),
    case {Infos, tame_registry:find(Module)} of
        {#{Key := Info}, {ok, #entry{options = Options}}} ->
            Base = tame_host_libraries:function(Number, 0),
            tame_library:publish(Key, Rings, Base, together(Info, Infos), Options);
        _ ->
            tame_library:set_rings(Key, Rings)
    end.

%% A library may send to what another was given, and be given what another has made.
together(Info, Infos) ->
    Any = fun(What) -> lists:any(fun(Of) -> maps:get(What, Of) end, maps:values(Infos)) end,
    Info#{sends := Any(sends), resources := Any(resources)}.

%% Of the hosts that have a library.
rings(Library, Hosts) ->
    [Ring || {_, {up, Ring, Have}} <- Hosts, has(Library, Have)].
