%% The table of servers: for each its supervisor, by which users know it, its owner and its native
%% handle; and the acceptors that it has, or had.
-module(tame_http_servers).

-export([new/0]).
-export([monitor/0]).
-export([insert/1]).
-export([take_dead/0]).
-export([delete/1]).
-export([find/1]).
-export([insert_acceptor/2]).
-export([delete_acceptors/1]).
-export([take_acceptors/1]).

-export_type([entry/0]).

-type entry() :: #{
    sup := pid(), owner := pid(), handle := tame_http_nif:server(), port := inet:port_number()
}.

%% The table ends with the process that calls this.
-spec new() -> ok.
new() ->
    ?MODULE = ets:new(?MODULE, [named_table, public, {read_concurrency, true}]),
    ok.

%% Of the process with which it ends.
-spec monitor() -> {ok, reference()} | error.
monitor() ->
    case ets:info(?MODULE, owner) of
        undefined -> error;
        Owner -> {ok, erlang:monitor(process, Owner)}
    end.

-spec insert(entry()) -> ok.
insert(#{sup := Sup} = Entry) ->
    true = ets:insert(?MODULE, {Sup, Entry}),
    ok.

%% The acceptors of servers that were killed, which are not known any more: nobody else will ask.
%% And the ports that may not be free yet. An owner that lives deletes its server, once that has
%% ended.
-spec take_dead() -> {[pid()], [inet:port_number()]}.
take_dead() ->
    Servers = [Entry || {Sup, Entry} <- ets:tab2list(?MODULE), is_pid(Sup)],
    Dead = [Entry || #{sup := Sup} = Entry <- Servers, not is_process_alive(Sup)],
    Acceptors = lists:flatmap(fun(#{sup := Sup}) -> take_acceptors(Sup) end, Dead),
    _ = [delete(Sup) || #{sup := Sup, owner := Owner} <- Dead, not is_process_alive(Owner)],
    {Acceptors, [Port || #{port := Port} <- Dead]}.

-spec insert_acceptor(pid(), pid()) -> ok.
insert_acceptor(Sup, Acceptor) ->
    if_there(fun() -> ets:insert(?MODULE, {{acceptor, Acceptor}, Sup}) end).

-spec delete_acceptors([pid()]) -> ok.
delete_acceptors(Acceptors) ->
    if_there(fun() -> [ets:delete(?MODULE, {acceptor, Pid}) || Pid <- Acceptors] end).

%% They are not known any more.
-spec take_acceptors(pid()) -> [pid()].
take_acceptors(Sup) ->
    Acceptors = [Pid || [Pid] <- ets:match(?MODULE, {{acceptor, '$1'}, Sup})],
    ok = delete_acceptors(Acceptors),
    Acceptors.

%% With its acceptors.
-spec delete(pid()) -> ok.
delete(Sup) ->
    if_there(fun() ->
        true = ets:delete(?MODULE, Sup),
        take_acceptors(Sup)
    end).

%% The table may end at any time.
if_there(Fun) ->
    try Fun() of
        _ -> ok
    catch
        error:badarg -> ok
    end.

%% By the pid or the registered name of its supervisor.
-spec find(pid() | atom()) -> {ok, entry()} | error.
find(Name) when is_atom(Name) ->
    case whereis(Name) of
        undefined -> error;
        Sup -> find(Sup)
    end;
find(Sup) when is_pid(Sup) ->
    try ets:lookup(?MODULE, Sup) of
        [{_, Entry}] -> {ok, Entry};
        [] -> error
    catch
        error:badarg -> error
    end;
find(_) ->
    error.
