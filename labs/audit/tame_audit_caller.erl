%% The processes in which an audit calls a function. Each makes its arguments, says that it is
%% ready, calls when it is told to go, and tells its observer what came of it.
-module(tame_audit_caller).

-export([observed/1]).
-export([scheduler/0]).
-export([beside/1]).
-export([start/3]).
-export([ready/3]).
-export([all_ready/2]).
-export([next/3]).
-export([words/1]).

-export_type([failure/0]).
-export_type([how/0]).
-export_type([spec/0]).

%% limit_ms: how long a call may take before it counts as one that hangs.
-type spec() :: #{
    target := mfa(),
    input := tame_audit_input:input(),
    bytes := pos_integer(),
    limit_ms := pos_integer()
}.

-type failure() :: {error, hangs | {input, binary()} | {raised, binary()} | {died, binary()}}.

%% One call, one whose caller says when it calls, or calls in a row for that long.
-type how() :: once | {told, Observer :: pid()} | {loop, Ms :: pos_integer()}.

%% Of the calls: how many, how long they took together, the value of a single one where that is an
%% error; and what tame_slices recorded, if it did.
-type done() :: {pos_integer(), non_neg_integer(), none | binary(), none | tame_slices:reading()}.

%% Where the function is called, and where those who look on are.
-define(WORK_SCHEDULER, 1).
-define(WATCH_SCHEDULER, 2).

%% The observer is on a scheduler of its own, which the held one must not be.
-spec observed(fun(() -> Answer)) -> Answer | failure().
observed(Fun) ->
    Asker = self(),
    Options = [monitor, {priority, high} | at(?WATCH_SCHEDULER)],
    Quietly = fun() -> Asker ! {self(), tame_audit_process:quietly(Fun)} end,
    {Pid, Ref} = spawn_opt(Quietly, Options),
    receive
        {Pid, Answer} ->
            true = demonitor(Ref, [flush]),
            Answer;
        {'DOWN', Ref, process, Pid, Reason} ->
            {error, {died, words(Reason)}}
    end.

%% Where the function is called.
-spec scheduler() -> pos_integer().
scheduler() -> ?WORK_SCHEDULER.

%% A process of the observer's on the observer's scheduler.
-spec beside(fun(() -> term())) -> pid().
beside(Fun) ->
    spawn_opt(Fun, [link | at(?WATCH_SCHEDULER)]).

%% Not documented; see tame_neighbour.
at(Scheduler) ->
    [{scheduler, N} || N <- [Scheduler], N =< erlang:system_info(schedulers)].

%% A caller, monitored, and whether its slices are recorded. It has made its arguments before
%% anything is looked at.
-spec start(spec(), how(), boolean()) -> {pid(), reference()}.
start(Spec, How, Record) ->
    Observer = self(),
    Work = fun() -> work(Observer, Spec, How, Record) end,
    spawn_opt(Work, [monitor | at(?WORK_SCHEDULER)]).

work(Observer, #{target := Target, input := Input, bytes := Bytes}, How, Record) ->
    {Module, Function, Arity} = Target,
    case tame_audit_input:args(Input, Bytes, Arity) of
        {ok, Args} ->
            true = erlang:garbage_collect(),
            Observer ! {self(), ready},
            receive go -> ok end,
            Observer ! {self(), {done, work(Module, Function, Args, How, Record)}};
        {error, Why} ->
            Observer ! {self(), {failed, {input, Why}}}
    end.

work(Module, Function, Args, How, true) ->
    {ok, Recording} = tame_slices:start(self(), #{keep => 2, scheduler => observer_scheduler()}),
    {Calls, ElapsedNs, Refused} = run(Module, Function, Args, How),
    {Calls, ElapsedNs, Refused, tame_slices:stop(Recording)};
work(Module, Function, Args, How, false) ->
    {Calls, ElapsedNs, Refused} = run(Module, Function, Args, How),
    {Calls, ElapsedNs, Refused, none}.

observer_scheduler() -> min(?WATCH_SCHEDULER, erlang:system_info(schedulers)).

run(Module, Function, Args, once) ->
    StartNs = erlang:monotonic_time(nanosecond),
    Value = apply(Module, Function, Args),
    {1, erlang:monotonic_time(nanosecond) - StartNs, refused(Value)};
run(Module, Function, Args, {told, Observer}) ->
    Observer ! {self(), called, erlang:monotonic_time(nanosecond)},
    run(Module, Function, Args, once);
run(Module, Function, Args, {loop, Ms}) ->
    StartNs = erlang:monotonic_time(nanosecond),
    repeat(Module, Function, Args, StartNs, StartNs + Ms * 1_000_000, 1).

repeat(Module, Function, Args, StartNs, EndNs, Calls) ->
    _ = apply(Module, Function, Args),
    case erlang:monotonic_time(nanosecond) of
        NowNs when NowNs >= EndNs -> {Calls, NowNs - StartNs, none};
        _ -> repeat(Module, Function, Args, StartNs, EndNs, Calls + 1)
    end.

refused(error) -> <<"error">>;
refused(Value) when tuple_size(Value) > 1, element(1, Value) =:= error -> words(Value);
refused(_Value) -> none.

-spec all_ready([{pid(), reference()}], timeout()) -> ok | failure().
all_ready(Callers, LimitMs) ->
    case [Why || {Pid, Ref} <- Callers, {failed, Why} <- [ready(Pid, Ref, LimitMs)]] of
        [] -> ok;
        [Why | _] -> {error, Why}
    end.

%% A caller that has made its arguments. One that does not end with them has not called yet.
-spec ready(pid(), reference(), timeout()) -> ready | {failed, {input | raised, binary()}}.
ready(Pid, Ref, LimitMs) ->
    case next(Pid, Ref, LimitMs) of
        {failed, hangs} ->
            true = exit(Pid, kill),
            Why = io_lib:format("is not made within ~b ms", [LimitMs]),
            {failed, {input, iolist_to_binary(Why)}};
        Other ->
            Other
    end.

%% What a caller says next.
-spec next(pid(), reference(), timeout()) ->
    ready | {done, done()} | {failed, hangs | {input | raised, binary()}}.
next(Pid, Ref, LimitMs) ->
    receive
        {Pid, What} -> What;
        {'DOWN', Ref, process, Pid, Reason} -> {failed, {raised, words(Reason)}}
    after LimitMs -> {failed, hangs}
    end.

%% A reason, cut off where it is long.
-spec words(term()) -> binary().
words({Reason, [{_, _, _, _} | _]}) -> words(Reason);
words(Reason) -> unicode:characters_to_binary(io_lib:format("~tP", [Reason, 8])).

