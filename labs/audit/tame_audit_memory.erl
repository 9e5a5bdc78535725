%% How much memory is in use after each of several equal rounds of calls. Each round is a process of
%% its own, so that what its heap held is gone when memory is read. Tame.Audit.Leak judges.
-module(tame_audit_memory).

-export([rounds/2]).
%% Internal.
-export([round/3]).

%% Memory that is freed by another thread than the one that lets go of it is freed a little later.
-define(SETTLE_MS, 20).

%% The memory in use after each round of that many calls. One call that takes longer than the limit
%% hangs; where only a round does, it is said how many of its calls were over.
-spec rounds(tame_audit:spec(), #{calls := pos_integer(), rounds := pos_integer()}) ->
    {ok, [tame_audit_process:memory()]} | tame_audit:failure() | {error, {slow, non_neg_integer()}}.
rounds(Spec, #{calls := Calls, rounds := Rounds}) ->
    tame_audit_process:quietly(fun() -> rounds(Spec, Calls, Rounds, []) end).

rounds(_Spec, _Calls, 0, Seen) ->
    {ok, lists:reverse(Seen)};
rounds(#{limit_ms := LimitMs} = Spec, Calls, Rounds, Seen) ->
    Over = atomics:new(1, []),
    {Pid, Ref} = spawn_monitor(?MODULE, round, [Spec, Calls, Over]),
    case ended(Pid, Ref, LimitMs) of
        {done, ok} ->
            true = erlang:garbage_collect(),
            receive after ?SETTLE_MS -> ok end,
            rounds(Spec, Calls, Rounds - 1, [tame_audit_process:memory() | Seen]);
        {done, {error, Why}} ->
            {error, {input, Why}};
        limit ->
            Then = atomics:get(Over, 1),
            _ = ended(Pid, Ref, LimitMs),
            true = exit(Pid, kill),
            case atomics:get(Over, 1) of
                Then -> {error, hangs};
                Now -> {error, {slow, Now}}
            end;
        Reason ->
            {error, {raised, tame_audit:words(Reason)}}
    end.

ended(Pid, Ref, LimitMs) ->
    receive
        {'DOWN', Ref, process, Pid, Reason} -> Reason
    after LimitMs -> limit
    end.

-spec round(tame_audit:spec(), pos_integer(), atomics:atomics_ref()) -> no_return().
round(Spec, Calls, Over) ->
    exit({done, calls(Spec, Calls, Over)}).

calls(#{target := {Module, Function, Arity}, input := Input, bytes := Bytes}, Calls, Over) ->
    case tame_audit_input:args(Input, Bytes, Arity) of
        {ok, Args} -> repeat(Module, Function, Args, Calls, Over);
        {error, _} = Error -> Error
    end.

repeat(_Module, _Function, _Args, 0, _Over) ->
    ok;
repeat(Module, Function, Args, Calls, Over) ->
    _ = apply(Module, Function, Args),
    ok = atomics:add(Over, 1, 1),
    repeat(Module, Function, Args, Calls - 1, Over).
