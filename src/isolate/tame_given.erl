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
-export([ask_private/2]).
-export([prune/1]).
-export([forget/1]).

%% Internal.
-export([private_within/3]).
-export([exit_private/1]).

%% As long as a host may leave a question of ours unanswered.
-define(ASK_MS, 5000).

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
note(Group, [Head | Tail]) when is_number(Head); is_atom(Head); is_bitstring(Head) ->
    note(Group, Tail);
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

%% Asks whether a process is one of the system's own, which a library does not get by asking for its
%% name: it belongs to kernel, stdlib or tame, or to no application and its group leader is init. A
%% process says who its group leader is when it runs, which one in a long NIF does not: so who asks
%% here gets {tame_private, Ref, IsPrivate}; true also where there is no answer within ?ASK_MS.
%% A process that an -on_load starts has the group leader of the code server, which is kernel's. Its
%% parent has ended; the parent of a process of kernel's own, its supervisor, lives.
-spec ask_private(reference(), pid()) -> ok.
ask_private(Ref, Pid) ->
    _ = spawn(?MODULE, private_within, [self(), Ref, Pid]),
    ok.

-spec private_within(pid(), reference(), pid()) -> ok.
private_within(Owner, Ref, Pid) ->
    {Asking, Monitor} = spawn_monitor(?MODULE, exit_private, [Pid]),
    receive
        {'DOWN', Monitor, process, Asking, {is_private, IsPrivate}} ->
            Owner ! {tame_private, Ref, IsPrivate};
        {'DOWN', Monitor, process, Asking, _} ->
            Owner ! {tame_private, Ref, true}
    after ?ASK_MS ->
        true = exit(Asking, kill),
        Owner ! {tame_private, Ref, true}
    end,
    ok.

-spec exit_private(pid()) -> no_return().
exit_private(Pid) ->
    exit({is_private, is_private(Pid)}).

is_private(Pid) ->
    case application:get_application(Pid) of
        {ok, Application} ->
            lists:member(Application, [kernel, stdlib, tame]) andalso is_started_by_live(Pid);
        undefined ->
            process_info(Pid, group_leader) =:= {group_leader, whereis(init)}
    end.

%% An application's master has outlived who started it.
is_started_by_live(Pid) ->
    case process_info(Pid, [parent, group_leader]) of
        [{parent, Parent}, {group_leader, Leader}] ->
            Leader =:= Pid orelse not is_pid(Parent) orelse tame_ring:is_alive(Parent);
        undefined ->
            true
    end.

%% Forgets the dead.
-spec prune(tame_group:group()) -> ok.
prune(Group) ->
    Given = ets:select(?MODULE, [{{{Group, '$1'}}, [], ['$1']}]),
    IsAlive = fun tame_ring:is_alive/1,
    lists:foreach(fun(Pid) -> IsAlive(Pid) orelse ets:delete(?MODULE, {Group, Pid}) end, Given).

%% All that a group was given: none of it is isolated any more.
-spec forget(tame_group:group()) -> ok.
forget(Group) ->
    true = ets:match_delete(?MODULE, {{Group, '_'}}),
    ok.
