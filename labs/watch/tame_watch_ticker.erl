%% A ticker of `mix tame.watch': a process on one normal scheduler of the watched node that wants to
%% wake every 100 ms. How late it wakes is neighbour delay. What it sees lies in atomics, so that it
%% is read without waiting for a process that is held.
-module(tame_watch_ticker).

-export([new/0]).
-export([run/1]).
-export([overdue_ns/2]).
-export([cost_ns/1]).
-export([take/2]).

%% Internal.
-export([bucket/1]).

-export_type([seen/0]).

%% How many wake-ups, the longest delay, and the histogram of delays.
-type seen() :: {
    Count :: non_neg_integer(),
    LongestNs :: non_neg_integer(),
    [{Bucket :: non_neg_integer(), Count :: pos_integer()}]
}.

%% Each wake-up of an idle VM costs a scheduler a round of busy waiting besides, some 0.2 ms: at 20
%% ms that was 2.3 % of a core with two schedulers.
-define(TICK_MS, 100).
%% A wake-up that takes longer was interrupted; the rest of its time is not ours.
-define(TICK_NS, 20_000).

%% Of the atomics: when it wakes next, its longest delay, its own time; then the histogram.
-define(NEXT, 1).
-define(LONGEST, 2).
-define(COST, 3).
-define(BUCKETS, 3).
-define(BUCKET_COUNT, 120).

%% The atomics of one ticker.
-spec new() -> atomics:atomics_ref().
new() ->
    atomics:new(?BUCKETS + ?BUCKET_COUNT, []).

%% Wakes for as long as the process lives.
-spec run(atomics:atomics_ref()) -> no_return().
run(Ticks) ->
    tick((erlang:monotonic_time(millisecond) + 1 + ?TICK_MS) * 1_000_000, Ticks).

tick(PlannedNs, Ticks) ->
    ok = atomics:put(Ticks, ?NEXT, PlannedNs),
    Timer = erlang:start_timer(PlannedNs div 1_000_000, self(), tick, [{abs, true}]),
    receive {timeout, Timer, tick} -> ok end,
    NowNs = erlang:monotonic_time(nanosecond),
    ok = record_longest(Ticks, NowNs - PlannedNs),
    NextNs = record(Ticks, PlannedNs, NowNs),
    ok = atomics:add(Ticks, ?COST, min(?TICK_NS, erlang:monotonic_time(nanosecond) - NowNs)),
    tick(NextNs, Ticks).

record_longest(Ticks, LateNs) ->
    case atomics:get(Ticks, ?LONGEST) of
        LongestNs when LongestNs >= LateNs -> ok;
        _ -> atomics:put(Ticks, ?LONGEST, LateNs)
    end.

%% A wake-up that was missed counts too, with its own lateness.
record(_Ticks, PlannedNs, NowNs) when PlannedNs > NowNs ->
    PlannedNs;
record(Ticks, PlannedNs, NowNs) ->
    ok = atomics:add(Ticks, ?BUCKETS + 1 + bucket((NowNs - PlannedNs) div 1000), 1),
    record(Ticks, PlannedNs + ?TICK_MS * 1_000_000, NowNs).

%% Four buckets for each doubling of a time in µs: the lowest of bucket B is B up to 4, then
%% (4 + B rem 4) bsl (B div 4 - 1). Pure.
-spec bucket(non_neg_integer()) -> non_neg_integer().
bucket(Us) when Us < 4 -> Us;
bucket(Us) -> bucket(Us, 0).

bucket(Us, Shift) when Us >= 8 -> bucket(Us bsr 1, Shift + 1);
bucket(Us, Shift) -> min(?BUCKET_COUNT - 1, 4 * Shift + Us).

%% For how long the next wake-up has been due; negative before it is.
-spec overdue_ns(atomics:atomics_ref(), integer()) -> integer().
overdue_ns(Ticks, NowNs) ->
    NowNs - atomics:get(Ticks, ?NEXT).

%% The ticker's own time in all.
-spec cost_ns(atomics:atomics_ref()) -> non_neg_integer().
cost_ns(Ticks) ->
    atomics:get(Ticks, ?COST).

%% What the ticker saw since the last time. A wake-up that is overdue counts with its delay so far,
%% as the longest.
-spec take(atomics:atomics_ref(), integer()) -> seen().
take(Ticks, NowNs) ->
    LongestNs = atomics:exchange(Ticks, ?LONGEST, 0),
    Buckets = [
        {B, Count}
     || B <- lists:seq(0, ?BUCKET_COUNT - 1),
        Count <- [atomics:exchange(Ticks, ?BUCKETS + 1 + B, 0)],
        Count > 0
    ],
    Count = lists:sum([N || {_, N} <- Buckets]),
    {Count, lists:max([0, LongestNs, overdue_ns(Ticks, NowNs)]), Buckets}.
