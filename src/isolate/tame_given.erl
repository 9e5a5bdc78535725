%% The processes and ports that an isolated library was given, and so may send to. A host could
%% address a message to any process of the VM, to `init' for example. So a message is delivered only
%% to processes that the VM named to the library before: in arguments, as the caller, in load_info,
%% or as the answer to whereis.
%%
%% The table is per library, not per host: the next host of a library that crashed has the same
%% rights. An entry stays until its process has died and prune/1 has seen it.
-module(tame_given).

-export([new/0]).
-export([note/2]).
-export([is_given/2]).
-export([is_private/1]).
-export([prune/1]).
-export([forget/1]).

-spec new() -> ok.
new() ->
    Concurrent = [{write_concurrency, true}, {read_concurrency, true}],
    ?MODULE = ets:new(?MODULE, [named_table, public | Concurrent]),
    ok.

%% Notes each local pid and port in a term. The time depends on the size of the term; this is
%% Erlang, so it yields. The environment of a fun is not searched; the library cannot see it either.
-spec note(module(), term()) -> ok.
note(Module, Pid) when is_pid(Pid); is_port(Pid) ->
    _ = node(Pid) =:= node() andalso ets:insert_new(?MODULE, {{Module, Pid}}),
    ok;
note(Module, [Head | Tail]) ->
    _ = note(Module, Head),
    note(Module, Tail);
note(Module, Tuple) when is_tuple(Tuple) ->
    note_elements(Module, Tuple, tuple_size(Tuple));
note(Module, Map) when is_map(Map) ->
    note_pairs(Module, maps:next(maps:iterator(Map)));
note(_Module, _Term) ->
    ok.

note_elements(_Module, _Tuple, 0) ->
    ok;
note_elements(Module, Tuple, N) ->
    _ = note(Module, element(N, Tuple)),
    note_elements(Module, Tuple, N - 1).

note_pairs(_Module, none) ->
    ok;
note_pairs(Module, {Key, Value, Rest}) ->
    _ = note(Module, Key),
    _ = note(Module, Value),
    note_pairs(Module, maps:next(Rest)).

-spec is_given(module(), pid() | port()) -> boolean().
is_given(Module, Pid) ->
    ets:member(?MODULE, {Module, Pid}).

%% Whether a process is one of the system's own, which a library does not get by asking for its
%% name: it belongs to kernel, stdlib or tame, or to no application and its group leader is init.
-spec is_private(pid()) -> boolean().
is_private(Pid) ->
    case application:get_application(Pid) of
        {ok, Application} -> lists:member(Application, [kernel, stdlib, tame]);
        undefined -> process_info(Pid, group_leader) =:= {group_leader, whereis(init)}
    end.

%% Forgets the dead.
-spec prune(module()) -> ok.
prune(Module) ->
    Given = ets:select(?MODULE, [{{{Module, '$1'}}, [], ['$1']}]),
    lists:foreach(fun(Pid) -> is_alive(Pid) orelse ets:delete(?MODULE, {Module, Pid}) end, Given).

is_alive(Pid) when is_pid(Pid) -> node(Pid) =:= node() andalso is_process_alive(Pid);
is_alive(Port) -> erlang:port_info(Port, id) =/= undefined.

%% All that a library was given: it is not isolated any more.
-spec forget(module()) -> ok.
forget(Module) ->
    true = ets:match_delete(?MODULE, {{Module, '_'}}),
    ok.
