%% The host processes of a group that there are to be: each with how it is, the oldest first. Starts
%% those that are missing. A process that dies is replaced, at once or, when they die one after the
%% other, after a second.
-module(tame_hosts_list).

-export([new/2]).
-export([adopt/1]).
-export([all/1]).
-export([find/2]).
-export([set/3]).
-export([remove/2]).
-export([forget_all/1]).
-export([down/2]).
-export([fill/2]).
-export([scale/2]).
-export([restarts/1]).

-export_type([state/0]).

-define(REPLACE_MS, 1000).

-record(list, {
    group :: tame_group:group(),
    options :: tame_isolate_options:options(),
    hosts = [] :: tame_hosts_rings:hosts(),
    monitors = #{} :: #{reference() => pid()},
    %% When a host process died last, and until when none is started in its place.
    died_at = none :: none | integer(),
    hold_until = none :: none | integer(),
    idle = tame_hosts_scale:new() :: tame_hosts_scale:idle(),
    restarts = 0 :: non_neg_integer()
}).
-opaque state() :: #list{}.

-spec new(tame_group:group(), tame_isolate_options:options()) -> state().
new(Group, Options) ->
    #list{group = Group, options = Options}.

%% Takes over the hosts of the process that was here before.
-spec adopt(state()) -> state().
adopt(#list{group = Group} = List) ->
    lists:foldl(fun added/2, List, tame_isolation_sup:hosts(Group)).

added(Host, #list{hosts = Hosts, monitors = Monitors} = List) ->
    Monitor = monitor(process, Host),
    List#list{hosts = Hosts ++ [{Host, down}], monitors = Monitors#{Monitor => Host}}.

-spec all(state()) -> tame_hosts_rings:hosts().
all(#list{hosts = Hosts}) ->
    Hosts.

%% error: it was told to stop.
-spec find(pid(), state()) -> {ok, tame_hosts_rings:host()} | error.
find(Host, #list{hosts = Hosts}) ->
    case lists:keyfind(Host, 1, Hosts) of
        {Host, State} -> {ok, State};
        false -> error
    end.

%% A host that was up and is no more counts as one that starts again.
-spec set(pid(), tame_hosts_rings:host(), state()) -> state().
set(Host, State, #list{hosts = Hosts, restarts = Restarts} = List) ->
    HasCrashed =
        case find(Host, List) of
            {ok, {up, _, _}} -> State =:= down;
            _ -> false
        end,
    List#list{
        hosts = lists:keyreplace(Host, 1, Hosts, {Host, State}),
        restarts = if HasCrashed -> Restarts + 1; true -> Restarts end
    }.

-spec remove(pid(), state()) -> state().
remove(Host, #list{hosts = Hosts} = List) ->
    List#list{hosts = lists:keydelete(Host, 1, Hosts)}.

%% None is left, and nothing holds back new ones.
-spec forget_all(state()) -> state().
forget_all(List) ->
    List#list{hosts = [], idle = tame_hosts_scale:new(), hold_until = none}.

%% The process behind this monitor is gone. died: it was to be there; its OS process goes with it.
-spec down(reference(), state()) -> {died | stopped, pid(), state()} | error.
down(Monitor, #list{monitors = Monitors} = List) ->
    case maps:take(Monitor, Monitors) of
        {Host, Others} ->
            Without = List#list{monitors = Others},
            case find(Host, List) of
                {ok, _} -> {died, Host, died(Host, Without)};
                error -> {stopped, Host, Without}
            end;
        error ->
            error
    end.

died(Host, #list{died_at = Before, restarts = Restarts} = List) ->
    Now = now_ms(),
    Again = is_integer(Before) andalso Now - Before < ?REPLACE_MS,
    HoldUntil = if Again -> Now + ?REPLACE_MS; true -> none end,
    remove(Host, List#list{died_at = Now, hold_until = HoldUntil, restarts = Restarts + 1}).

%% As many hosts as there are to be at least. What cannot be started now is at a later look.
-spec fill(tame_host:spec(), state()) -> state().
fill(Spec, #list{hosts = Hosts, options = #{hosts := {Min, _}}, hold_until = HoldUntil} = List) ->
    case is_integer(HoldUntil) andalso now_ms() < HoldUntil of
        true -> List;
        false -> started(max(0, Min - length(Hosts)), Spec, List)
    end.

started(0, _Spec, List) ->
    List;
started(Count, Spec, #list{group = Group} = List) ->
    case tame_isolation_sup:start_host(Group, Spec) of
        {ok, Host} -> started(Count - 1, Spec, added(Host, List));
        {error, _} -> List
    end.

%% A host more, or one that is to stop: it is in the list no more. Where their number is fixed there
%% is nothing to look at.
-spec scale(tame_host:spec(), state()) -> {kept | {stop, pid()}, state()}.
scale(_Spec, #list{options = #{hosts := {Same, Same}}} = List) ->
    {kept, List};
scale(Spec, #list{hosts = Hosts, options = Options, idle = Before} = List0) ->
    Seen = [{Host, seen(State)} || {Host, State} <- Hosts],
    {Step, Idle} = tame_hosts_scale:look(now_ms(), Seen, Options, Before),
    List = List0#list{idle = Idle},
    case Step of
        keep -> {kept, List};
        start -> {kept, started(1, Spec, List)};
        {stop, Host} -> {{stop, Host}, remove(Host, List)}
    end.

seen({up, Ring, _}) -> {up, tame_ring:info(Ring)};
seen(State) -> State.

%% How often a host that was up ended, or a process of one.
-spec restarts(state()) -> non_neg_integer().
restarts(#list{restarts = Restarts}) ->
    Restarts.

now_ms() ->
    erlang:monotonic_time(millisecond).
