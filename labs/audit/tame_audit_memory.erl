%% How much memory is in use after each of several equal rounds of calls. Each round is a process of
%% its own, so that what its heap held is gone when memory is read. Tame.Audit.Leak judges.
-module(tame_audit_memory).

-export([rounds/2]).
%% Internal.
-export([round/2]).

%% Memory that is freed by another thread than the one that lets go of it is freed a little later.
-define(SETTLE_MS, 20).

%% The memory in use after each round of that many calls.
-spec rounds(tame_audit:spec(), #{calls := pos_integer(), rounds := pos_integer()}) ->
    {ok, [tame_audit_process:memory()]} | tame_audit:failure().
rounds(Spec, #{calls := Calls, rounds := Rounds}) ->
    tame_audit_process:quietly(fun() -> rounds(Spec, Calls, Rounds, []) end).

rounds(_Spec, _Calls, 0, Seen) ->
    {ok, lists:reverse(Seen)};
rounds(#{limit_ms := LimitMs} = Spec, Calls, Rounds, Seen) ->
    {Pid, Ref} = spawn_monitor(?MODULE, round, [Spec, Calls]),
    receive
        {'DOWN', Ref, process, Pid, {done, ok}} ->
            true = erlang:garbage_collect(),
            receive after ?SETTLE_MS -> ok end,
            rounds(Spec, Calls, Rounds - 1, [tame_audit_process:memory() | Seen]);
        {'DOWN', Ref, process, Pid, {done, {error, Why}}} ->
            {error, {input, Why}};
        {'DOWN', Ref, process, Pid, Reason} ->
            {error, {raised, tame_audit:words(Reason)}}
    after LimitMs ->
        true = exit(Pid, kill),
        {error, hangs}
    end.

-spec round(tame_audit:spec(), pos_integer()) -> no_return().
round(Spec, Calls) ->
    exit({done, calls(Spec, Calls)}).

calls(#{target := {Module, Function, Arity}, input := Input, bytes := Bytes}, Calls) ->
    case tame_audit_input:args(Input, Bytes, Arity) of
        {ok, Args} -> repeat(Module, Function, Args, Calls);
        {error, _} = Error -> Error
    end.

repeat(_Module, _Function, _Args, 0) ->
    ok;
repeat(Module, Function, Args, Calls) ->
    _ = apply(Module, Function, Args),
    repeat(Module, Function, Args, Calls - 1).
