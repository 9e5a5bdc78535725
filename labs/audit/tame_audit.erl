%% What the audit runs in a VM of its own: it calls functions that may hold a scheduler, hang or end
%% the VM, of modules that tame_audit_load has loaded. Tame.Audit judges what is seen here.
%%
%% Each call is made in a fresh process bound to one scheduler, beside a neighbour bound to the
%% same. Its slices come from its `running' trace events (tame_slices); it runs on scheduler 1 and
%% those who look at it on another.
%%
%% Time for which the operating system gave the core to somebody else is not the function's: the
%% kernel counts it for each thread (tame_stolen), where it does.
%%
%% It stands alone with the Erlang modules that it names.
-module(tame_audit).

-export([call/1]).
-export([again/2]).
-export([loop/2]).
-export([held/2]).
-export([kill/2]).

%% Internal.
-export([words/1]).

-export_type([failure/0]).
-export_type([reading/0]).
-export_type([spec/0]).

%% limit_ms: how long a call may take before it counts as one that hangs.
-type spec() :: #{
    target := mfa(),
    input := tame_audit_input:input(),
    bytes := pos_integer(),
    limit_ms := pos_integer()
}.

%% Of one process: longest_ns and median_ns are of its slices, reductions what it was charged.
%% refused: the value of a single call, where it is an error.
-type reading() :: #{
    elapsed_ns := non_neg_integer(),
    calls := pos_integer(),
    normal := share(),
    dirty := share(),
    reductions := non_neg_integer(),
    stolen_ns := #{normal | dirty => non_neg_integer()},
    neighbour_ns := non_neg_integer(),
    refused := none | binary()
}.

-type share() :: #{
    longest_ns := non_neg_integer(),
    median_ns := non_neg_integer(),
    total_ns := non_neg_integer()
}.

-type failure() :: {error, hangs | {input, binary()} | {raised, binary()} | {died, binary()}}.

%% Where the function is called, and where those who look on are.
-define(WORK_SCHEDULER, 1).
-define(WATCH_SCHEDULER, 2).

%% ---- calling -----------------------------------------------------------------------------------

%% One call, watched.
-spec call(spec()) -> {ok, reading()} | failure().
call(Spec) ->
    observed(fun() -> watched(Spec, once) end).

%% Calls it that many times more; and, of one further call, the shares of its time that its longest
%% call of a NIF and garbage collections had.
-spec again(spec(), non_neg_integer()) ->
    {ok, [reading()], #{nif := float(), gc := float()}} | failure().
again(Spec, Times) ->
    observed(fun() ->
        case many(Spec, Times) of
            {ok, Readings} -> with_shares(Spec, Readings);
            Error -> Error
        end
    end).

many(_Spec, 0) ->
    {ok, []};
many(Spec, Times) ->
    case {watched(Spec, once), many(Spec, Times - 1)} of
        {{ok, Reading}, {ok, More}} -> {ok, [Reading | More]};
        {{ok, _}, Error} -> Error;
        {Error, _} -> Error
    end.

%% Calls in a row for that long, by that many processes at once, one of them watched; and how long
%% dirty work waited beside them.
-spec loop(spec(), #{
    ms := pos_integer(), callers := pos_integer(), dirty := dirty_cpu | dirty_io
}) ->
    {ok, reading(), DirtyWaitNs :: non_neg_integer()} | failure().
loop(#{limit_ms := LimitMs} = Spec, #{ms := Ms, callers := Callers, dirty := Kind}) ->
    observed(fun() ->
        Options = at(?WORK_SCHEDULER),
        Others = [start(Spec, {loop, Ms}, false, Options) || _ <- lists:seq(2, Callers)],
        case all_ready(Others, LimitMs) of
            ok ->
                _ = [Pid ! go || {Pid, _} <- Others],
                looped(Spec, {loop, Ms}, Others, Kind);
            Error ->
                Error
        end
    end).

looped(#{limit_ms := LimitMs} = Spec, How, Others, Kind) ->
    Asker = tame_asker:start(Kind, #{period_ms => 5, second_ms => 5, collector => self()}),
    Answer = watched(Spec, How),
    WaitNs = longest_wait(0, none),
    true = tame_asker:stop(Asker),
    Ended = [next(Pid, Ref, LimitMs) || {ok, _} <- [Answer], {Pid, Ref} <- Others],
    case {Answer, [Why || {failed, Why} <- Ended]} of
        {{ok, Reading}, []} -> {ok, Reading, WaitNs};
        {{ok, _}, [Why | _]} -> {error, Why};
        {Error, _} -> Error
    end.

%% Calls in a row for that long, and for how long a NIF had the scheduler without a break: the
%% longest of such stretches that take least_ns and more.
-spec held(spec(), #{ms := pos_integer(), least_ns := non_neg_integer()}) ->
    {ok, #{
        calls := pos_integer(),
        stretches_ns := [non_neg_integer()],
        stolen_ns := non_neg_integer()
    }}
    | failure().
held(Spec, #{ms := Ms, least_ns := LeastNs}) ->
    observed(fun() ->
        case traced(Spec, {loop, Ms}, {held, LeastNs}) of
            {ok, {Calls, _, _, none}, Stretches, StolenNs} ->
                {ok, #{calls => Calls, stretches_ns => Stretches, stolen_ns => StolenNs}};
            Error ->
                Error
        end
    end).

%% A question that is not answered yet counts with its length so far.
longest_wait(LongestNs, AskedNs) ->
    receive
        {tame_asker, _, asked, Ns} -> longest_wait(LongestNs, Ns);
        {tame_asker, _, got, Ns} -> longest_wait(max(LongestNs, Ns - AskedNs), none)
    after 0 ->
        case AskedNs of
            none -> LongestNs;
            _ -> max(LongestNs, erlang:monotonic_time(nanosecond) - AskedNs)
        end
    end.

%% Kills that many callers after_ms after the last of them has called. Returns how long that was
%% after the first one's call, on a busy machine longer than asked; and how long after it they
%% were gone, a dirty CPU scheduler was free, and the VM used no more CPU: work of theirs that
%% goes on shows in one of these. The first two not within the limit: it hangs. Nobody is killed
%% where a call was over by then.
-spec kill(spec(), #{after_ms := pos_integer(), callers := pos_integer()}) ->
    {ok, #{
        after_ns := non_neg_integer(),
        down_ns := non_neg_integer(),
        dirty_ns := non_neg_integer(),
        cpu_ns := non_neg_integer()
    }}
    | {ok, over}
    | failure().
kill(#{limit_ms := LimitMs} = Spec, #{after_ms := AfterMs, callers := Callers}) ->
    observed(fun() ->
        How = {told, self()},
        Workers = [start(Spec, How, false, at(?WORK_SCHEDULER)) || _ <- lists:seq(1, Callers)],
        case all_ready(Workers, LimitMs) of
            ok ->
                _ = [Pid ! go || {Pid, _} <- Workers],
                kill([called(Pid, LimitMs) || {Pid, _} <- Workers], Workers, AfterMs, LimitMs);
            Error ->
                Error
        end
    end).

%% A call that holds the scheduler keeps the others from theirs.
called(Pid, LimitMs) ->
    receive
        {Pid, called, Ns} -> Ns
    after LimitMs -> hangs
    end.

kill(CalledNs, Workers, AfterMs, LimitMs) ->
    case lists:member(hangs, CalledNs) of
        false ->
            receive after AfterMs -> ok end,
            Before = [next(Pid, Ref, 0) || {Pid, Ref} <- Workers],
            case [Ended || Ended <- Before, Ended =/= {failed, hangs}] of
                [] -> killed(Workers, lists:min(CalledNs), LimitMs);
                [{failed, Why} | _] -> {error, Why};
                [{done, _} | _] -> {ok, over}
            end;
        true ->
            {error, hangs}
    end.

killed(Workers, CalledNs, LimitMs) ->
    Observer = self(),
    Pids = [Pid || {Pid, _} <- Workers],
    Beside = [link | at(?WATCH_SCHEDULER)],
    Down = spawn_opt(fun() -> gone(Observer, [monitor(process, Pid) || Pid <- Pids]) end, Beside),
    StartNs = erlang:monotonic_time(nanosecond),
    _ = [exit(Pid, kill) || Pid <- Pids],
    Clock = fun() -> Observer ! {self(), tame_thousand_cuts:dirty_cpu_clock()} end,
    Dirty = spawn_opt(Clock, Beside),
    CpuNs = idle(StartNs, LimitMs, element(1, statistics(runtime)), 0) - StartNs,
    Killed = #{
        after_ns => StartNs - CalledNs,
        down_ns => since(Down, StartNs, LimitMs),
        dirty_ns => since(Dirty, StartNs, LimitMs),
        cpu_ns => CpuNs
    },
    %% What has its thread for longer than any call may take has it for ever.
    case lists:member(hangs, maps:values(Killed)) of
        false -> {ok, Killed};
        true -> {error, hangs}
    end.

since(Pid, StartNs, LimitMs) ->
    receive
        {Pid, Ns} -> Ns - StartNs
    after LimitMs -> hangs
    end.

gone(Observer, Refs) ->
    _ = [receive {'DOWN', Ref, process, _, _} -> ok end || Ref <- Refs],
    Observer ! {self(), erlang:monotonic_time(nanosecond)}.

%% The end of the last portion of 5 ms in which there was work, seen from four without.
idle(StartNs, LimitMs, BeforeMs, Idle) ->
    receive after 5 -> ok end,
    {NowMs, _} = statistics(runtime),
    NowNs = erlang:monotonic_time(nanosecond),
    if
        NowNs - StartNs > LimitMs * 1_000_000 -> NowNs;
        NowMs - BeforeMs >= 3 -> idle(StartNs, LimitMs, NowMs, 0);
        Idle =:= 3 -> max(StartNs, NowNs - 20_000_000);
        true -> idle(StartNs, LimitMs, NowMs, Idle + 1)
    end.

%% ---- one process that calls ---------------------------------------------------------------------

%% The observer is on a scheduler of its own, which the held one must not be.
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

%% Not documented; see tame_neighbour.
at(Scheduler) ->
    [{scheduler, N} || N <- [Scheduler], N =< erlang:system_info(schedulers)].

%% The worker has made its arguments before anything is looked at.
start(Spec, How, Record, Options) ->
    Observer = self(),
    spawn_opt(fun() -> work(Observer, Spec, How, Record) end, [monitor | Options]).

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

watched(#{limit_ms := LimitMs} = Spec, How) ->
    {Pid, Ref} = start(Spec, How, true, at(?WORK_SCHEDULER)),
    case ready(Pid, Ref, LimitMs) of
        ready ->
            Threads = tame_stolen:threads(),
            {ok, Neighbour} = tame_neighbour:start(#{scheduler => ?WORK_SCHEDULER}),
            BeforeNs = tame_stolen:ns(Threads),
            Pid ! go,
            case next(Pid, Ref, LimitMs) of
                {done, {Calls, ElapsedNs, Refused, Slices}} ->
                    Late = tame_neighbour:stop(Neighbour),
                    AfterNs = tame_stolen:ns(Threads),
                    Since = fun(Kind, Ns) -> Ns - maps:get(Kind, BeforeNs) end,
                    StolenNs = maps:map(Since, AfterNs),
                    LateNs = tame_histogram:max(Late),
                    Reading = reading(Calls, ElapsedNs, Slices, StolenNs, LateNs),
                    {ok, Reading#{refused => Refused}};
                {failed, Why} ->
                    {error, Why}
            end;
        {failed, Why} ->
            {error, Why}
    end.

all_ready(Workers, LimitMs) ->
    case [Why || {Pid, Ref} <- Workers, {failed, Why} <- [ready(Pid, Ref, LimitMs)]] of
        [] -> ok;
        [Why | _] -> {error, Why}
    end.

%% A worker that has made its arguments. One that does not end with them has not called yet.
ready(Pid, Ref, LimitMs) ->
    case next(Pid, Ref, LimitMs) of
        {failed, hangs} ->
            true = exit(Pid, kill),
            Why = io_lib:format("is not made within ~b ms", [LimitMs]),
            {failed, {input, iolist_to_binary(Why)}};
        Other ->
            Other
    end.

next(Pid, Ref, LimitMs) ->
    receive
        {Pid, What} -> What;
        {'DOWN', Ref, process, Pid, Reason} -> {failed, {raised, words(Reason)}}
    after LimitMs -> {failed, hangs}
    end.

reading(Calls, ElapsedNs, Slices, StolenNs, LateNs) ->
    #{normal := Normal, dirty := Dirty, reductions := Reductions} = Slices,
    #{
        calls => Calls,
        elapsed_ns => ElapsedNs,
        normal => share(Normal),
        dirty => share(Dirty),
        reductions => Reductions,
        stolen_ns => StolenNs,
        neighbour_ns => LateNs
    }.

share(#{longest_ns := LongestNs, total_ns := TotalNs, histogram := Histogram, count := Count}) ->
    MedianNs = case Count of 0 -> 0; _ -> tame_histogram:percentile(Histogram, 50.0) end,
    #{longest_ns => LongestNs, median_ns => min(MedianNs, LongestNs), total_ns => TotalNs}.

-spec words(term()) -> binary().
words({Reason, [{_, _, _, _} | _]}) -> words(Reason);
words(Reason) -> unicode:characters_to_binary(io_lib:format("~tP", [Reason, 8])).

%% ---- by trace of the calls of NIFs --------------------------------------------------------------

with_shares(Spec, Readings) ->
    case traced(Spec, once, shares) of
        {ok, {_, ElapsedNs, _, none}, Times, _} ->
            Share = fun(_, Ns) -> Ns / max(1, ElapsedNs) end,
            {ok, Readings, maps:map(Share, Times)};
        Error ->
            Error
    end.

%% What a process did, what its tracer saw, and what the operating system took from it meanwhile.
traced(#{target := {Module, _, _}, limit_ms := LimitMs} = Spec, How, What) ->
    ok = tame_audit_trace:nifs(Module),
    {Pid, Ref} = start(Spec, How, false, at(?WORK_SCHEDULER)),
    case ready(Pid, Ref, LimitMs) of
        ready ->
            Tracer = tame_audit_trace:start(What),
            1 = erlang:trace(Pid, true, [{tracer, Tracer} | tame_audit_trace:flags(What)]),
            Threads = tame_stolen:threads(),
            #{normal := BeforeNs} = tame_stolen:ns(Threads),
            Pid ! go,
            case next(Pid, Ref, LimitMs) of
                {done, Done} ->
                    #{normal := AfterNs} = tame_stolen:ns(Threads),
                    {ok, Done, tame_audit_trace:stop(Tracer, Pid), AfterNs - BeforeNs};
                {failed, Why} ->
                    {error, Why}
            end;
        {failed, Why} ->
            {error, Why}
    end.
