%% How much memory is in use after each of several equal rounds of calls. Each round is a process of
%% its own, so that what its heap held is gone when memory is read. Tame.Audit.Leak judges.
-module(tame_audit_memory).

-export([rounds/2]).
%% Internal.
-export([round/2]).

%% Memory that is freed by another thread than the one that lets go of it is freed a little later.
-define(SETTLE_MS, 20).

%% Of a round's calls, in its atomics: how many are over, and how many it makes.
-define(OVER, 1).
-define(ASKED, 2).

%% The memory in use after each round of that many calls. One call that takes longer than the limit
%% hangs; where only a round does, it is said how many of its calls were over.
-spec rounds(tame_audit_caller:spec(), #{calls := pos_integer(), rounds := pos_integer()}) ->
    {ok, [tame_audit_process:memory()]}
    | tame_audit_caller:failure()
    | {error, {slow, non_neg_integer()}}.
rounds(Spec, #{calls := Calls, rounds := Rounds}) ->
    tame_audit_process:quietly(fun() -> rounds(Spec, Calls, Rounds, []) end).

rounds(_Spec, _Calls, 0, Seen) ->
    {ok, lists:reverse(Seen)};
rounds(#{limit_ms := LimitMs} = Spec, Calls, Rounds, Seen) ->
    Count = atomics:new(2, []),
    ok = atomics:put(Count, ?ASKED, Calls),
    {Pid, Ref} = spawn_monitor(?MODULE, round, [Spec, Count]),
    case ended(Pid, Ref, LimitMs) of
        {done, ok} ->
            true = erlang:garbage_collect(),
            receive after ?SETTLE_MS -> ok end,
            rounds(Spec, Calls, Rounds - 1, [tame_audit_process:memory() | Seen]);
        {done, {error, Why}} ->
            {error, {input, Why}};
        limit ->
            slow(Pid, Ref, Count, LimitMs);
        Reason ->
            {error, {raised, tame_audit_caller:words(Reason)}}
    end.

%% A round is asked to end after the call that it is in; it is killed where that call hangs.
slow(Pid, Ref, Count, LimitMs) ->
    ok = atomics:put(Count, ?ASKED, 0),
    case ended(Pid, Ref, LimitMs) of
        {done, ok} ->
            {error, {slow, atomics:get(Count, ?OVER)}};
        {done, {error, Why}} ->
            {error, {input, Why}};
        limit ->
            true = exit(Pid, kill),
            {error, hangs};
        Reason ->
            {error, {raised, tame_audit_caller:words(Reason)}}
    end.

ended(Pid, Ref, LimitMs) ->
    receive
        {'DOWN', Ref, process, Pid, Reason} -> Reason
    after LimitMs -> limit
    end.

-spec round(tame_audit_caller:spec(), atomics:atomics_ref()) -> no_return().
round(Spec, Count) ->
    exit({done, calls(Spec, Count)}).

calls(#{target := {Module, Function, Arity}, input := Input, bytes := Bytes}, Count) ->
    case tame_audit_input:args(Input, Bytes, Arity) of
        {ok, Args} -> repeat(Module, Function, Args, Count);
        {error, _} = Error -> Error
    end.

repeat(Module, Function, Args, Count) ->
    case atomics:get(Count, ?OVER) < atomics:get(Count, ?ASKED) of
        true ->
            _ = apply(Module, Function, Args),
            ok = atomics:add(Count, ?OVER, 1),
            repeat(Module, Function, Args, Count);
        false ->
            ok
    end.
