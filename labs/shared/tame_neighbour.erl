%% A neighbour: a process that wants to wake every so often on a given scheduler, and records how
%% late it woke. That is the harm which a native function does to others, felt at their place.
%%
%%     1> {ok, N} = tame_neighbour:start(#{scheduler => 1}).
%%     2> my_nif:work(), H = tame_neighbour:stop(N), tame_histogram:max(H).
%%     49832959
%%
%% The wake-ups are planned once, as moments of the monotonic clock; lateness is counted from the
%% planned moment. A neighbour that is held up for several periods records each wake-up that it
%% missed with its own lateness: to count only the wake-ups that took place is to ask just when
%% things are good again ("coordinated omission").
%%
%% The floor: the VM's timers tick once a millisecond, but a timer for an absolute time that lies on
%% a tick goes off right after it. In an idle VM (OTP 25, two cores) p50 was 75 µs, p90 0.1 ms and
%% p99 0.1 to 1 ms, where `receive after 1` is 1 ms late by itself.
%%
%% It stands alone with tame_histogram, so that it can be loaded into a node that is watched.
-module(tame_neighbour).

-export([start/1]).
-export([stop/1]).

%% Internal.
-export([late/3]).

-define(TELL_NS, 200_000_000).

-export_type([neighbour/0]).
-export_type([options/0]).

-opaque neighbour() :: {pid(), reference()}.

%% scheduler: the number of a normal scheduler; period_ms: the time between two wake-ups (default
%% 1); tell: a process that gets {tame_neighbour, Pid, [{PlannedNs, WokeNs}]} of the wake-ups that
%% took place, the latest first: at once when one was missed, and else some together within 200 ms,
%% because to wake that process costs more than to be late (default: nobody). It is for those who
%% may not live to call stop/1.
-type options() :: #{scheduler := pos_integer(), period_ms => pos_integer(), tell => pid()}.

%% Starts a neighbour. It has made its plan when this returns; the first wake-up is one to two
%% periods away. It ends with stop/1 or with the process that started it.
-spec start(options()) -> {ok, neighbour()} | {error, {bad_option, atom(), term()}}.
start(Options) when is_map(Options) ->
    All = maps:merge(#{scheduler => undefined, period_ms => 1, tell => nobody}, Options),
    case [{bad_option, Key, Value} || {Key, Value} <- maps:to_list(All), not valid(Key, Value)] of
        [] -> {ok, begin_waking(All)};
        [Bad | _] -> {error, Bad}
    end.

valid(scheduler, N) -> is_integer(N) andalso N >= 1 andalso N =< erlang:system_info(schedulers);
valid(period_ms, N) -> is_integer(N) andalso N >= 1;
valid(tell, Process) -> Process =:= nobody orelse is_pid(Process);
valid(_, _) -> false.

%% Ends a neighbour and returns how late its wake-ups were, in ns. A wake-up that was due but had
%% not taken place counts with its lateness so far. Call it in the process that called start.
-spec stop(neighbour()) -> tame_histogram:histogram().
stop({Pid, Monitor}) ->
    Pid ! {?MODULE, Monitor, stop},
    Histogram = answer(Pid, Monitor),
    true = erlang:demonitor(Monitor, [flush]),
    Histogram.

begin_waking(#{scheduler := Scheduler, period_ms := PeriodMs, tell := Tell}) ->
    Owner = self(),
    {Pid, Monitor} = spawn_at(Scheduler, fun() -> init(Owner, PeriodMs, Tell) end),
    Pid ! {?MODULE, Monitor, start},
    started = answer(Pid, Monitor),
    {Pid, Monitor}.

%% {scheduler, N} is an option of spawn_opt that has long been there and is not documented. It binds
%% the process to that scheduler's run queue. Without it the VM moves a process away from a
%% scheduler that is held up, as soon as another one is idle, and the delay that we want to see is
%% seen by nobody. Dialyzer knows the documented options only and would infer that this never
%% returns, so the option comes from a list that might be empty, for all Dialyzer can see.
spawn_at(Scheduler, Fun) ->
    erlang:spawn_opt(Fun, [monitor | [{scheduler, N} || N <- [Scheduler]]]).

%% The neighbour answers or dies; there is no third case, because it waits for nobody.
answer(Pid, Monitor) ->
    receive
        {?MODULE, Monitor, Answer} -> Answer;
        {'DOWN', Monitor, process, Pid, Reason} -> exit({neighbour_down, Reason})
    end.

%% ---- the neighbour ---------------------------------------------------------------------------

init(Owner, PeriodMs, Tell) ->
    Down = erlang:monitor(process, Owner),
    receive
        {?MODULE, Ref, start} ->
            Histogram = tame_histogram:new(),
            FirstMs = erlang:monotonic_time(millisecond) + 1 + PeriodMs,
            Owner ! {?MODULE, Ref, started},
            wake(FirstMs * 1_000_000, PeriodMs * 1_000_000, {Histogram, told(Tell)}, Owner, Down);
        {'DOWN', Down, process, Owner, _} ->
            ok
    end.

told(nobody) -> nobody;
told(Pid) -> {Pid, []}.

wake(PlannedNs, PeriodNs, {Histogram, _} = Records, Owner, Down) ->
    Timer = erlang:start_timer(PlannedNs div 1_000_000, self(), wake, [{abs, true}]),
    receive
        {timeout, Timer, wake} ->
            {NextNs, Told} = record(PlannedNs, PeriodNs, Records),
            wake(NextNs, PeriodNs, Told, Owner, Down);
        {?MODULE, Ref, stop} ->
            {_, {_, Tell}} = record(PlannedNs, PeriodNs, Records),
            _ = tell_now(Tell),
            Owner ! {?MODULE, Ref, Histogram};
        {'DOWN', Down, process, Owner, _} ->
            ok
    end.

record(PlannedNs, PeriodNs, {Histogram, Tell}) ->
    NowNs = erlang:monotonic_time(nanosecond),
    {Late, NextNs} = late(PlannedNs, NowNs, PeriodNs),
    lists:foreach(fun(LateNs) -> ok = tame_histogram:record(Histogram, LateNs) end, Late),
    {NextNs, {Histogram, tell(Tell, Late, PlannedNs, NowNs)}}.

tell(nobody, _Late, _Planned_ns, _Now_ns) ->
    nobody;
tell(Tell, [], _Planned_ns, _Now_ns) ->
    Tell;
tell({Pid, Wakes}, Late, PlannedNs, NowNs) ->
    Untold = {Pid, [{PlannedNs, NowNs} | Wakes]},
    {FirstNs, _} = lists:last(element(2, Untold)),
    case Late of
        [_] when NowNs - FirstNs < ?TELL_NS -> Untold;
        _ -> tell_now(Untold)
    end.

tell_now({Pid, [_ | _] = Wakes}) ->
    Pid ! {?MODULE, self(), Wakes},
    {Pid, []};
tell_now(Tell) ->
    Tell.

%% How late each wake-up is that was planned up to now, and when the next one is. Pure.
%%
%%     1> tame_neighbour:late(1000, 1250, 100).
%%     {[250,150,50],1300}
-spec late(PlannedNs :: integer(), NowNs :: integer(), PeriodNs :: pos_integer()) ->
    {[non_neg_integer()], NextNs :: integer()}.
late(PlannedNs, NowNs, PeriodNs) when NowNs < PlannedNs, PeriodNs > 0 ->
    {[], PlannedNs};
late(PlannedNs, NowNs, PeriodNs) when PeriodNs > 0 ->
    Overdue = (NowNs - PlannedNs) div PeriodNs,
    Late = [NowNs - PlannedNs - N * PeriodNs || N <- lists:seq(0, Overdue)],
    {Late, PlannedNs + (Overdue + 1) * PeriodNs}.
