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

-export_type([reading/0]).

-import(tame_audit_caller, [all_ready/2, beside/1, next/3, observed/1, ready/3, start/3]).

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

%% ---- calling -----------------------------------------------------------------------------------

%% One call, watched.
-spec call(tame_audit_caller:spec()) -> {ok, reading()} | tame_audit_caller:failure().
call(Spec) ->
    observed(fun() -> watched(Spec, once) end).

%% Calls it that many times more; and, of one further call, the shares of its time that its longest
%% call of a NIF and garbage collections had.
-spec again(tame_audit_caller:spec(), non_neg_integer()) ->
    {ok, [reading()], #{nif := float(), gc := float()}} | tame_audit_caller:failure().
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
-spec loop(tame_audit_caller:spec(), #{
    ms := pos_integer(), callers := pos_integer(), dirty := dirty_cpu | dirty_io
}) ->
    {ok, reading(), DirtyWaitNs :: non_neg_integer()} | tame_audit_caller:failure().
loop(#{limit_ms := LimitMs} = Spec, #{ms := Ms, callers := Callers, dirty := Kind}) ->
    observed(fun() ->
        Others = [start(Spec, {loop, Ms}, false) || _ <- lists:seq(2, Callers)],
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
-spec held(tame_audit_caller:spec(), #{ms := pos_integer(), least_ns := non_neg_integer()}) ->
    {ok, #{
        calls := pos_integer(),
        stretches_ns := [non_neg_integer()],
        stolen_ns := non_neg_integer()
    }}
    | tame_audit_caller:failure().
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
-spec kill(tame_audit_caller:spec(), #{after_ms := pos_integer(), callers := pos_integer()}) ->
    {ok, #{
        after_ns := non_neg_integer(),
        down_ns := non_neg_integer(),
        dirty_ns := non_neg_integer(),
        cpu_ns := non_neg_integer()
    }}
    | {ok, over}
    | tame_audit_caller:failure().
kill(#{limit_ms := LimitMs} = Spec, #{after_ms := AfterMs, callers := Callers}) ->
    observed(fun() ->
        How = {told, self()},
        Workers = [start(Spec, How, false) || _ <- lists:seq(1, Callers)],
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
    Down = beside(fun() -> gone(Observer, [monitor(process, Pid) || Pid <- Pids]) end),
    StartNs = erlang:monotonic_time(nanosecond),
    _ = [exit(Pid, kill) || Pid <- Pids],
    Clock = fun() -> Observer ! {self(), tame_thousand_cuts:dirty_cpu_clock()} end,
    Dirty = beside(Clock),
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

%% ---- one call, watched --------------------------------------------------------------------------

watched(#{limit_ms := LimitMs} = Spec, How) ->
    {Pid, Ref} = start(Spec, How, true),
    case ready(Pid, Ref, LimitMs) of
        ready ->
            Threads = tame_stolen:threads(),
            {ok, Neighbour} = tame_neighbour:start(#{scheduler => tame_audit_caller:scheduler()}),
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
    {Pid, Ref} = start(Spec, How, false),
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
