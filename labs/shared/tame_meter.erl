%% The meter: calls a function many times, times each call by itself, keeps every sample.
%%
%% Nothing but the call stands between the two readings of the clock: what came back is compared
%% and the sample recorded afterwards. What the meter itself costs is therefore one reading of the
%% clock and one call, and is measured like anything else: give it a function that does nothing.
%%
%% It is Erlang without dependencies, so that it can be loaded into a node that has no Elixir.
-module(tame_meter).

-export([run/5]).

%% A function to time: takes a state and a term, returns the term.
-type echo(State) :: fun((State, term()) -> term()).
-export_type([echo/1]).

%% Calls Echo(State, Term) Count times and records each duration, in nanoseconds, in Histogram.
%%
%% Stops at the first call that returns anything other than Term, and returns what came instead; an
%% exception of Echo passes through. Returns how many garbage collections the VM ran in the
%% meantime, in all its processes (in a VM that does nothing else: in this one).
%%
%%     1> H = tame_histogram:new().
%%     2> tame_meter:run(fun(_, T) -> T end, none, hello, 1000, H).
%%     {ok, #{gc_runs => 0}}
%%     3> tame_histogram:count(H).
%%     1000
-spec run(echo(State), State, term(), non_neg_integer(), tame_histogram:histogram()) ->
    {ok, #{gc_runs := non_neg_integer()}} | {error, {different, term()}}.
run(Echo, State, Term, Count, Histogram) when is_function(Echo, 2), is_integer(Count), Count >= 0 ->
    {Before, _, _} = erlang:statistics(garbage_collection),
    case loop(Echo, State, Term, Count, Histogram) of
        ok ->
            {After, _, _} = erlang:statistics(garbage_collection),
            {ok, #{gc_runs => After - Before}};
        {different, _} = Different ->
            {error, Different}
    end.

loop(_Echo, _State, _Term, 0, _Histogram) ->
    ok;
loop(Echo, State, Term, Count, Histogram) ->
    Start = erlang:monotonic_time(),
    Back = Echo(State, Term),
    Stop = erlang:monotonic_time(),
    case Back of
        Term ->
            DurationNs = erlang:convert_time_unit(Stop - Start, native, nanosecond),
            _ = tame_histogram:record(Histogram, DurationNs),
            loop(Echo, State, Term, Count - 1, Histogram);
        _ ->
            {different, Back}
    end.
