%% A histogram of times: fixed memory, any number of writers, three exact decimal digits.
%%
%% It holds whole nanoseconds from 0 to 60 s. Its buckets are those of HdrHistogram made with
%% (lowest 1, highest 60 000 000 000, 3 digits), and its figures follow that library's
%% definitions, so both give the same answers for the same data; a test compares them. In short:
%%
%%   * Up to 2047 ns each nanosecond has a bucket of its own. Above, each doubling of the value
%%     is cut into 1024 buckets, so a bucket is never wider than 1/1024 of the values in it.
%%   * A figure that stands for a bucket is its highest value, for min/1 its lowest, for mean/1
%%     and stddev/1 its middle. None is further than 0.1 % from the value that was recorded. The
%%     highest value of the last bucket lies just above 60 s.
%%   * A value outside the range goes into no bucket, and so into no figure but out_of_range/1.
%%
%% The counts lie in one array of atomics (216 KiB), which lives as long as somebody holds the
%% histogram. It can be sent to other processes, and all of them may record at once; it means
%% nothing on another node (see to_list/1).
%%
%% To record is one addition: no totals are kept for the readers. bench/histogram.exs measures it.
%% (Atomics, because counters were slower to add to.) Each reading function walks all buckets
%% instead, which takes about 1 ms, and can be preempted; it may or may not see what is recorded
%% meanwhile.
%%
%% This module stands alone, so that it can be loaded by itself into a node that is watched; only
%% hgrm/2 needs a second one.
-module(tame_histogram).

-export([new/0]).
-export([record/2]).
-export([record/3]).
-export([count/1]).
-export([out_of_range/1]).
-export([min/1]).
-export([max/1]).
-export([mean/1]).
-export([stddev/1]).
-export([percentile/2]).
-export([percentiles/2]).
-export([hgrm/2]).
-export([to_list/1]).
-export([merge/2]).
-export([reset/1]).

%% Internal.
-export([format_error/2]).

-export_type([histogram/0]).
-export_type([row/0]).

-opaque histogram() :: atomics:atomics_ref().

%% A percentile from 0.0 to 100.0; the value in ns that this share of all values does not exceed;
%% how many values do not exceed it.
-type row() :: {Percentile :: float(), ValueNs :: non_neg_integer(), Count :: pos_integer()}.

%% The non-empty buckets in ascending order, and the sum of their counts.
-type snapshot() :: {Total :: non_neg_integer(), [{Slot :: pos_integer(), Count :: pos_integer()}]}.

-define(MAX_VALUE_NS, 60_000_000_000).

%% One doubling is cut into half of ?SUB_BUCKETS, because the lower half of a bucket's 2048
%% sub-buckets is covered, more finely, by the buckets before it. 2048 is the power of two that
%% keeps three digits; 26 buckets are what it takes to reach 60 s.
-define(SUB_BUCKETS, 2048).
-define(HALF_BITS, 10).
-define(HALF, (1 bsl ?HALF_BITS)).
-define(BUCKETS, 26).

%% Atomics count from 1. The slot after the buckets counts what fell outside them.
-define(LAST_SLOT, ((?BUCKETS + 1) * ?HALF)).
-define(OUT_OF_RANGE_SLOT, (?LAST_SLOT + 1)).

%% A new, empty histogram.
%%
%%     1> H = tame_histogram:new().
-spec new() -> histogram().
new() ->
    atomics:new(?OUT_OF_RANGE_SLOT, []).

%% Counts one value, in nanoseconds. Below 0 or above 60 s it is counted as out of range.
%% Raises badarg when it is not an integer.
%%
%%     2> tame_histogram:record(H, 1500).
%%     ok
-spec record(histogram(), ValueNs :: integer()) -> ok.
record(H, Value) when is_integer(Value), Value >= 0, Value =< ?MAX_VALUE_NS ->
    atomics:add(H, slot(Value), 1);
record(H, Value) when is_integer(Value) ->
    atomics:add(H, ?OUT_OF_RANGE_SLOT, 1);
record(H, Value) ->
    erlang:error(badarg, [H, Value], [{error_info, #{module => ?MODULE}}]).

%% Counts a value, in nanoseconds, that came Count times. Raises badarg when the value is not an
%% integer or the count is not an integer from 0.
%%
%%     3> tame_histogram:record(H, 2_000_000, 3).
%%     ok
-spec record(histogram(), ValueNs :: integer(), Count :: non_neg_integer()) -> ok.
record(H, Value, Count) when is_integer(Value), is_integer(Count), Count >= 0 ->
    atomics:add(H, slot_or_outside(Value), Count);
record(H, Value, Count) ->
    erlang:error(badarg, [H, Value, Count], [{error_info, #{module => ?MODULE}}]).

%% How many values within the range were recorded.
%%
%%     4> tame_histogram:count(H).
%%     4
-spec count(histogram()) -> non_neg_integer().
count(H) ->
    {Total, _} = snapshot(H),
    Total.

%% How many values were refused because they were negative or above 60 s. Print it beside every
%% figure: those values are in none of them.
%%
%%     5> tame_histogram:record(H, -1), tame_histogram:out_of_range(H).
%%     1
-spec out_of_range(histogram()) -> non_neg_integer().
out_of_range(H) ->
    atomics:get(H, ?OUT_OF_RANGE_SLOT).

%% The least value in ns, as the lowest value of its bucket. 0 for an empty histogram.
%%
%%     6> tame_histogram:min(H).
%%     1500
-spec min(histogram()) -> non_neg_integer().
min(H) ->
    case snapshot(H) of
        {0, []} -> 0;
        {_, [{Slot, _} | _]} -> lowest(Slot)
    end.

%% The greatest value in ns, as the highest value of its bucket. 0 for an empty histogram.
%%
%%     7> tame_histogram:max(H).
%%     2000895
-spec max(histogram()) -> non_neg_integer().
max(H) ->
    max_of(snapshot(H)).

%% The mean in ns. 0.0 for an empty histogram.
%%
%%     8> tame_histogram:mean(H).
%%     1500663.0
-spec mean(histogram()) -> float().
mean(H) ->
    mean_of(snapshot(H)).

%% The standard deviation in ns, of the values as a whole population (divided by their number,
%% not by one less). 0.0 for an empty histogram.
%%
%%     9> tame_histogram:stddev(H).
%%     865542.161609127
-spec stddev(histogram()) -> float().
stddev(H) ->
    stddev_of(snapshot(H)).

%% The value in ns that Percentile per cent of all values do not exceed, as the highest value of
%% its bucket; for 0.0 the same as min/1. 0 for an empty histogram. Raises badarg when the
%% percentile is not a number from 0 to 100.
%%
%%     10> tame_histogram:percentile(H, 99.9).
%%     2000895
-spec percentile(histogram(), Percentile :: number()) -> non_neg_integer().
percentile(H, Percentile) when is_number(Percentile), Percentile == 0 ->
    ?MODULE:min(H);
percentile(H, Percentile) when is_number(Percentile), Percentile > 0, Percentile =< 100 ->
    {Total, Counts} = snapshot(H),
    value_at(rank(Percentile, Total), Counts);
percentile(H, Percentile) ->
    erlang:error(badarg, [H, Percentile], [{error_info, #{module => ?MODULE}}]).

%% The percentiles that make a readable curve: Ticks of them between 0 and 50 %, as many between
%% 50 and 75 %, and so on, halving the distance to 100 % until the greatest value is reached; the
%% last row is always 100.0. The values are as in percentile/2. [] for an empty histogram.
%% Raises badarg when Ticks is not an integer from 1.
%%
%%     11> tame_histogram:percentiles(H, 1).
%%     [{0.0,1500,1},{50.0,2000895,4},{100.0,2000895,4}]
-spec percentiles(histogram(), Ticks :: pos_integer()) -> [row()].
percentiles(H, Ticks) when is_integer(Ticks), Ticks > 0 ->
    rows_of(snapshot(H), Ticks);
percentiles(H, Ticks) ->
    erlang:error(badarg, [H, Ticks], [{error_info, #{module => ?MODULE}}]).

%% The rows of percentiles/2 in µs as text, in the form that HdrHistogram's tools and its public
%% plotter read (".hgrm"). An empty histogram gives a table without rows. Values out of range are
%% not in it, because the form has no place for them. Raises badarg as percentiles/2 does. Needs
%% the module tame_hgrm.
%%
%%     12> file:write_file("wake.hgrm", tame_histogram:hgrm(H, 5)).
%%     ok
-spec hgrm(histogram(), Ticks :: pos_integer()) -> iodata().
hgrm(H, Ticks) when is_integer(Ticks), Ticks > 0 ->
    {Total, _} = Snapshot = snapshot(H),
    tame_hgrm:format(#{
        rows => rows_of(Snapshot, Ticks),
        mean_ns => mean_of(Snapshot),
        stddev_ns => stddev_of(Snapshot),
        max_ns => max_of(Snapshot),
        count => Total,
        buckets => ?BUCKETS,
        sub_buckets => ?SUB_BUCKETS
    });
hgrm(H, Ticks) ->
    erlang:error(badarg, [H, Ticks], [{error_info, #{module => ?MODULE}}]).

%% Every non-empty bucket in ascending order: its lowest value in ns and its count. [] for an
%% empty histogram. Given to record/3 one by one, on any node, they make the same histogram again,
%% without what was out of range.
%%
%%     13> tame_histogram:to_list(H).
%%     [{1500,1},{1999872,3}]
-spec to_list(histogram()) -> [{ValueNs :: non_neg_integer(), Count :: pos_integer()}].
to_list(H) ->
    {_, Counts} = snapshot(H),
    [{lowest(Slot), Count} || {Slot, Count} <- Counts].

%% Adds all counts of the second histogram, those out of range too, to the first.
%%
%%     14> tame_histogram:merge(tame_histogram:new(), H).
%%     ok
-spec merge(Into :: histogram(), From :: histogram()) -> ok.
merge(Into, From) ->
    {_, Counts} = snapshot(From),
    lists:foreach(fun({Slot, Count}) -> atomics:add(Into, Slot, Count) end, Counts),
    atomics:add(Into, ?OUT_OF_RANGE_SLOT, out_of_range(From)).

%% Empties the histogram. A value that is recorded meanwhile may stay or go.
%%
%%     15> tame_histogram:reset(H), tame_histogram:count(H).
%%     0
-spec reset(histogram()) -> ok.
reset(H) ->
    lists:foreach(fun(Slot) -> atomics:put(H, Slot, 0) end, lists:seq(1, ?OUT_OF_RANGE_SLOT)).

%% What the shell prints below a badarg raised here.
-spec format_error(term(), erlang:stacktrace()) -> #{pos_integer() => string()}.
format_error(badarg, [{?MODULE, record, [_, Value | Count], _} | _]) ->
    maps:from_list(
        [{2, "must be an integer, the time in nanoseconds"} || not is_integer(Value)] ++
        [{3, "must be an integer from 0"} || [N] <- [Count], not (is_integer(N) andalso N >= 0)]);
format_error(badarg, [{?MODULE, percentile, _, _} | _]) ->
    #{2 => "must be a number from 0 to 100"};
format_error(badarg, _) ->
    #{2 => "must be an integer from 1, the ticks for each halving of the distance to 100 %"}.

%% The slot of a value. Sub-bucket and bucket are added rather than or-ed: the sub-bucket's top
%% bit, always set from 2048 on, is what steps over the half that a bucket does not use.
%% Comparisons, because the VM offers no instruction for the bit length. In ascending order,
%% because most latencies are short; a binary search measured no faster on mixed values.
-define(SLOT(Value, Bucket), ((Value bsr Bucket) + (Bucket bsl ?HALF_BITS) + 1)).

slot(V) when V < 1 bsl 11 -> ?SLOT(V, 0);
slot(V) when V < 1 bsl 12 -> ?SLOT(V, 1);
slot(V) when V < 1 bsl 13 -> ?SLOT(V, 2);
slot(V) when V < 1 bsl 14 -> ?SLOT(V, 3);
slot(V) when V < 1 bsl 15 -> ?SLOT(V, 4);
slot(V) when V < 1 bsl 16 -> ?SLOT(V, 5);
slot(V) when V < 1 bsl 17 -> ?SLOT(V, 6);
slot(V) when V < 1 bsl 18 -> ?SLOT(V, 7);
slot(V) when V < 1 bsl 19 -> ?SLOT(V, 8);
slot(V) when V < 1 bsl 20 -> ?SLOT(V, 9);
slot(V) when V < 1 bsl 21 -> ?SLOT(V, 10);
slot(V) when V < 1 bsl 22 -> ?SLOT(V, 11);
slot(V) when V < 1 bsl 23 -> ?SLOT(V, 12);
slot(V) when V < 1 bsl 24 -> ?SLOT(V, 13);
slot(V) when V < 1 bsl 25 -> ?SLOT(V, 14);
slot(V) when V < 1 bsl 26 -> ?SLOT(V, 15);
slot(V) when V < 1 bsl 27 -> ?SLOT(V, 16);
slot(V) when V < 1 bsl 28 -> ?SLOT(V, 17);
slot(V) when V < 1 bsl 29 -> ?SLOT(V, 18);
slot(V) when V < 1 bsl 30 -> ?SLOT(V, 19);
slot(V) when V < 1 bsl 31 -> ?SLOT(V, 20);
slot(V) when V < 1 bsl 32 -> ?SLOT(V, 21);
slot(V) when V < 1 bsl 33 -> ?SLOT(V, 22);
slot(V) when V < 1 bsl 34 -> ?SLOT(V, 23);
slot(V) when V < 1 bsl 35 -> ?SLOT(V, 24);
slot(V) -> ?SLOT(V, 25).

slot_or_outside(Value) when Value >= 0, Value =< ?MAX_VALUE_NS -> slot(Value);
slot_or_outside(_) -> ?OUT_OF_RANGE_SLOT.

%% The lowest value of a slot, the inverse of slot/1. Right for one slot past the last, too.
lowest(Slot) when Slot =< ?HALF ->
    Slot - 1;
lowest(Slot) ->
    Bucket = ((Slot - 1) bsr ?HALF_BITS) - 1,
    (Slot - 1 - (Bucket bsl ?HALF_BITS)) bsl Bucket.

highest(Slot) ->
    lowest(Slot + 1) - 1.

middle(Slot) ->
    (lowest(Slot) + lowest(Slot + 1)) bsr 1.

%% All figures of one answer come from one snapshot, so that they agree with each other while
%% others record. From the last slot down, so that the list is in ascending order.
-spec snapshot(histogram()) -> snapshot().
snapshot(H) ->
    snapshot(H, ?LAST_SLOT, 0, []).

snapshot(_, 0, Total, Counts) ->
    {Total, Counts};
snapshot(H, Slot, Total, Counts) ->
    case atomics:get(H, Slot) of
        0 -> snapshot(H, Slot - 1, Total, Counts);
        Count -> snapshot(H, Slot - 1, Total + Count, [{Slot, Count} | Counts])
    end.

max_of({0, []}) ->
    0;
max_of({_, Counts}) ->
    {Slot, _} = lists:last(Counts),
    highest(Slot).

mean_of({0, []}) ->
    0.0;
mean_of({Total, Counts}) ->
    lists:sum([middle(Slot) * Count || {Slot, Count} <- Counts]) / Total.

stddev_of({0, []}) ->
    0.0;
stddev_of({Total, Counts} = Snapshot) ->
    Mean = mean_of(Snapshot),
    Squares = [(middle(Slot) - Mean) * (middle(Slot) - Mean) * Count || {Slot, Count} <- Counts],
    math:sqrt(lists:foldl(fun erlang:'+'/2, 0.0, Squares) / Total).

%% Which value, counted from the least, is at the percentile: the share of the total, rounded up.
%% The percentile is first lowered by the smallest step that a float can make, as HdrHistogram
%% does, because 99.9 as a float may be a little above 99.9, and one value too many would be asked.
rank(Percentile, Total) ->
    <<Bits:64>> = <<(float(Percentile)):64/float>>,
    <<Lower:64/float>> = <<(Bits - 1):64>>,
    erlang:max(1, ceil(Lower * Total / 100.0)).

value_at(_, []) -> 0;
value_at(Rank, [{Slot, Count} | _]) when Rank =< Count -> highest(Slot);
value_at(_, [{Slot, _}]) -> highest(Slot);
value_at(Rank, [{_, Count} | Counts]) -> value_at(Rank - Count, Counts).

rows_of({Total, Counts}, Ticks) ->
    rows(Counts, 0, Total, 0.0, Ticks).

%% Before is how many values lie in earlier slots, Level the next percentile to be reported. The
%% last slot reaches every level; it gets one row for the next one and the row for 100.0.
rows([], _, _, _, _) ->
    [];
rows([{Slot, _}], _, Total, Level, _) ->
    [{Level, highest(Slot), Total} || Level < 100.0] ++ [{100.0, highest(Slot), Total}];
rows([{Slot, Count} | Rest] = Counts, Before, Total, Level, Ticks) ->
    UpTo = Before + Count,
    case 100.0 * UpTo / Total >= Level of
        true ->
            Next = next_level(Level, Ticks),
            [{Level, highest(Slot), UpTo} | rows(Counts, Before, Total, Next, Ticks)];
        false ->
            rows(Rest, UpTo, Total, Level, Ticks)
    end.

%% One tick further. How often the distance to 100 % has been halved is computed with logarithms
%% and not kept beside the level, so that it rounds as HdrHistogram does. Where floats have no
%% more steps below 100 (7 * 10^15 values) it leaps past all levels, rather than standing still.
next_level(Level, Ticks) ->
    Halvings = trunc(math:log(100.0 / (100.0 - Level)) / math:log(2)),
    case Level + 100.0 / (Ticks * (2 bsl Halvings)) of
        Next when Next > Level, Next < 100.0 -> Next;
        _ -> 200.0
    end.
