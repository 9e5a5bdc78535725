%% The processes of requests. They are not linked to the acceptor that starts them: a link, and the
%% message at its end, cost a fifth of a request (README, "What was tried"). So this ends them when
%% their server has ended: the VM knows for each process who started it.
-module(tame_http_requests).

-export([spawn/1]).
-export([end_all/1]).
-export([needed/1]).

%% Room for a request's terms and a short answer, without a collection.
-define(HEAP_WORDS, 610).

%% By an acceptor that its server knows. full: the VM has no process left, just now; the
%% request stays where it is, and is overdue a second later (tame_http_nif:credit/2).
-spec spawn(fun(() -> term())) -> ok | full.
spawn(Fun) ->
    try erlang:spawn_opt(Fun, [{min_heap_size, ?HEAP_WORDS}]) of
        _ -> ok
    catch
        error:system_limit -> full
    end.

%% All that these acceptors have started, now or earlier. They have ended, or are about to.
-spec end_all([pid()]) -> ok.
end_all([]) ->
    ok;
end_all(Acceptors) ->
    ok = lists:foreach(fun tame_orphan:wait/1, Acceptors),
    Known = maps:from_keys(Acceptors, true),
    _ = [exit(Pid, shutdown) || Pid <- processes(), is_child(Pid, Known)],
    ok.

is_child(Pid, Known) -> is_map_key(parent(Pid), Known).

parent(Pid) ->
    case process_info(Pid, parent) of
        {parent, Parent} -> Parent;
        undefined -> undefined
    end.

%% Of these acceptors those that live, or have started a process that does; and the others.
-spec needed([pid()]) -> {[pid()], [pid()]}.
needed(Acceptors) ->
    %% First: what has ended starts nothing that the look at the processes would miss.
    {Living, Ended} = lists:partition(fun is_process_alive/1, Acceptors),
    Parents = maps:from_keys([parent(Pid) || Pid <- processes()], true),
    {Parental, Others} = lists:partition(fun(Pid) -> is_map_key(Pid, Parents) end, Ended),
    {Living ++ Parental, Others}.
