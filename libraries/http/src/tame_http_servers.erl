%% The table of servers: for each its supervisor, by which users know it, its owner and its native
%% handle.
-module(tame_http_servers).

-export([new/0]).
-export([insert/1]).
-export([delete/1]).
-export([find/1]).

-export_type([entry/0]).

-type entry() :: #{
    sup := pid(), owner := pid(), handle := tame_http_nif:server(), port := inet:port_number()
}.

%% The table ends with the process that calls this.
-spec new() -> ok.
new() ->
    ?MODULE = ets:new(?MODULE, [named_table, public, {read_concurrency, true}]),
    ok.

%% Entries of servers that were killed go.
-spec insert(entry()) -> ok.
insert(#{sup := Sup} = Entry) ->
    _ = [ets:delete(?MODULE, Old) || {Old, _} <- ets:tab2list(?MODULE), not is_process_alive(Old)],
    true = ets:insert(?MODULE, {Sup, Entry}),
    ok.

-spec delete(pid()) -> ok.
delete(Sup) ->
    true = ets:delete(?MODULE, Sup),
    ok.

%% By the pid or the registered name of its supervisor.
-spec find(pid() | atom()) -> {ok, entry()} | error.
find(Name) when is_atom(Name) ->
    case whereis(Name) of
        undefined -> error;
        Sup -> find(Sup)
    end;
find(Sup) when is_pid(Sup) ->
    case ets:whereis(?MODULE) =/= undefined andalso ets:lookup(?MODULE, Sup) of
        [{_, Entry}] -> {ok, Entry};
        _ -> error
    end;
find(_) ->
    error.
