%% The processes and ports that the libraries of a group were given, and so may send to. A host
%% could address a message to any process of the VM, to `init' for example. So a message is
%% delivered only to processes that the VM named to the library before: in arguments, as the caller,
%% in load_info, or as the answer to whereis.
%%
%% The table is per group, not per host: the next host of a group that crashed has the same
%% rights; and what one library of a host has, the others have. An entry stays until its process has
%% died and prune/1 has seen it.
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
-spec note(tame_group:group(), term()) -> ok.
note(Group, Pid) when is_pid(Pid); is_port(Pid) ->
    _ = node(Pid) =:= node() andalso ets:insert_new(?MODULE, {{Group, Pid}}),
    ok;
note(Group, [Head | Tail]) ->
    _ = note(Group, Head),
    note(Group, Tail);
note(Group, Tuple) when is_tuple(Tuple) ->
    note_elements(Group, Tuple, tuple_size(Tuple));
note(Group, Map) when is_map(Map) ->
    note_pairs(Group, maps:next(maps:iterator(Map)));
note(_Group, _Term) ->
    ok.

note_elements(_Group, _Tuple, 0) ->
    ok;
note_elements(Group, Tuple, N) ->
    _ = note(Group, element(N, Tuple)),
    note_elements(Group, Tuple, N - 1).

note_pairs(_Group, none) ->
    ok;
note_pairs(Group, {Key, Value, Rest}) ->
    _ = note(Group, Key),
    _ = note(Group, Value),
    note_pairs(Group, maps:next(Rest)).

-spec is_given(tame_group:group(), pid() | port()) -> boolean().
is_given(Group, Pid) ->
    ets:member(?MODULE, {Group, Pid}).

%% Whether a process is one of the system's own, which a library does not get by asking for its
%% name: it belongs to kernel, stdlib or tame, or to no application and its group leader is init.
-spec is_private(pid()) -> boolean().
is_private(Pid) ->
    case application:get_application(Pid) of
        {ok, Application} -> lists:member(Application, [kernel, stdlib, tame]);
        undefined -> process_info(Pid, group_leader) =:= {group_leader, whereis(init)}
    end.

%% Forgets the dead.
-spec prune(tame_group:group()) -> ok.
prune(Group) ->
    Given = ets:select(?MODULE, [{{{Group, '$1'}}, [], ['$1']}]),
    lists:foreach(fun(Pid) -> is_alive(Pid) orelse ets:delete(?MODULE, {Group, Pid}) end, Given).

is_alive(Pid) when is_pid(Pid) -> node(Pid) =:= node() andalso is_process_alive(Pid);
is_alive(Port) -> erlang:port_info(Port, id) =/= undefined.

%% All that a group was given: none of it is isolated any more.
-spec forget(tame_group:group()) -> ok.
forget(Group) ->
    true = ets:match_delete(?MODULE, {{Group, '_'}}),
    ok.
