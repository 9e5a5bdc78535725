%% The processes of isolation:
%%
%%   tame_sup                       owns the tables (tame_registry, tame_library, tame_given)
%%   ├─ tame_job_rates ...
%%   └─ tame_isolation_sup          one_for_one
%%      ├─ tame_libraries           one_for_one: a child for each group of tame_registry
%%      │  └─ tame_library_<group> one_for_one
%%      │     ├─ tame_host_sup_<group>  simple_one_for_one: a tame_host for each OS process, which
%%      │     │                          it never restarts
%%      │     └─ tame_hosts_<group>     says how many hosts there are to be, and replaces those
%%      │                                that end
%%      └─ tame_isolation           isolate and restore, one at a time
%%
%% A process that dies is started again by its supervisor, and finds in the tables what it has to
%% do: a new tame_libraries its children, a new tame_hosts its libraries and the hosts that are up.
%% Hosts end with their supervisor.
-module(tame_isolation_sup).
-behaviour(supervisor).

-export([start_link/0]).
-export([start_library/1]).
-export([stop_library/1]).
-export([stop_all/0]).
-export([start_host/2]).
-export([hosts/1]).

%% Internal.
-export([start_link/2]).
-export([init/1]).

-type what() :: top | libraries | {library | host_sup, tame_group:group()}.

%% A process of ours that dies more often than that has a defect that no restart mends.
-define(INTENSITY, 100).
-define(PERIOD_S, 10).
%% A supervisor that does not answer within that is about to be replaced.
-define(ASK_MS, 5000).
%% How long hosts may take to end their calls and their OS processes: a second more than a host.
-define(STOP_MS, 8000).

-spec start_link() -> {ok, pid()} | {error, term()}.
start_link() ->
    start_link(?MODULE, top).

-spec start_link(atom(), what()) -> {ok, pid()} | {error, term()}.
start_link(Name, What) ->
    ok = tame_orphan:wait(Name),
    case supervisor:start_link({local, Name}, ?MODULE, What) of
        {ok, Sup} -> {ok, Sup};
        {error, Reason} -> {error, Reason}
    end.

%% The processes of a group, of which an entry is in the registry.
-spec start_library(tame_group:group()) -> ok | {error, term()}.
start_library(Group) ->
    case ask(tame_libraries, {start_child, library(Group)}) of
        {ok, _} -> ok;
        {error, {already_started, _}} -> ok;
        {error, Reason} -> {error, Reason}
    end.

%% Ends them, the hosts after their calls in flight. Takes some seconds at most.
-spec stop_library(tame_group:group()) -> ok.
stop_library(Group) ->
    ok = drain([Group]),
    _ = gen_server:call(tame_libraries, {terminate_child, Group}, 60000),
    _ = gen_server:call(tame_libraries, {delete_child, Group}, ?ASK_MS),
    ok.

%% Before the application ends: calls that begin raise, and all hosts end after those in flight, at
%% the same time.
-spec stop_all() -> ok.
stop_all() ->
    ok = tame_library:close(),
    drain(tame_group:all()).

%% A host that is late is killed, by itself (tame_host) or with its supervisor.
drain(Groups) ->
    Hosts = lists:append([tame_hosts:stop(Group) || Group <- Groups]),
    Until = erlang:monotonic_time(millisecond) + ?STOP_MS,
    lists:foreach(
        fun(Monitor) ->
            receive
                {'DOWN', Monitor, process, _, _} -> ok
            after max(0, Until - erlang:monotonic_time(millisecond)) ->
                true = demonitor(Monitor, [flush])
            end
        end,
        [monitor(process, Host) || Host <- Hosts]
    ).

-spec start_host(tame_group:group(), tame_host:spec()) -> {ok, pid()} | {error, term()}.
start_host(Group, Spec) ->
    ask(name(host_sup, Group), {start_child, [Spec]}).

%% All hosts of a group, in any state.
-spec hosts(tame_group:group()) -> [pid()].
hosts(Group) ->
    case ask(name(host_sup, Group), which_children) of
        Children when is_list(Children) -> [Pid || {_, Pid, _, _} <- Children, is_pid(Pid)];
        {error, _} -> []
    end.

%% As the functions of supervisor, which wait without end.
ask(Name, Request) ->
    try
        gen_server:call(Name, Request, ?ASK_MS)
    catch
        exit:Reason -> {error, Reason}
    end.

-spec init(what()) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init(top) ->
    {ok, {flags(one_for_one), [
        supervisor(tame_libraries, libraries),
        #{id => tame_isolation, start => {tame_isolation, start_link, []}}
    ]}};
init(libraries) ->
    {ok, {flags(one_for_one), [library(Group) || Group <- tame_group:all()]}};
init({library, Group}) ->
    {ok, {flags(one_for_one), [
        supervisor(name(host_sup, Group), {host_sup, Group}),
        #{id => hosts, start => {tame_hosts, start_link, [Group]}}
    ]}};
init({host_sup, _Group}) ->
    %% tame_hosts starts another.
    {ok, {flags(simple_one_for_one), [
        #{id => host, start => {tame_host, start_link, []}, restart => temporary, shutdown => 10000}
    ]}}.

flags(Strategy) ->
    #{strategy => Strategy, intensity => ?INTENSITY, period => ?PERIOD_S}.

library(Group) ->
    (supervisor(name(library, Group), {library, Group}))#{id => Group}.

supervisor(Name, What) ->
    #{
        id => Name,
        start => {?MODULE, start_link, [Name, What]},
        type => supervisor,
        shutdown => infinity
    }.

name(What, Group) ->
    list_to_atom(lists:concat(["tame_", What, "_", Group])).
