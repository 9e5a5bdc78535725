%% What this machine's ways out of a scheduler cost, beside the rates of the jobs that have run on it
%% (tame:calibration/0).
-module(tame_calibration).

-export([measure/0]).

-export_type([calibration/0]).

%% costs_ns: what a call costs more than the same in one go on the caller's scheduler, in ns: one hop, and
%% the way to a dirty CPU scheduler, the pool or a thread and back.
%%
%% break_even_us: the call length, in us, at which yielding every 100 us costs as much as moving the call there:
%% shorter calls are cheaper yielding, longer ones moved.
-type calibration() :: #{
    costs_ns := #{hop | dirty_hop | pool | thread => non_neg_integer()},
    break_even_us := #{dirty_hop | pool | thread => non_neg_integer()},
    jobs := #{{module(), atom(), arity()} => tame_job_rates:job()}
}.

%% Calls of each kind in a turn, and turns: 0.2 s in all.
-define(TURN_CALLS, 20).
-define(TURNS, 101).

-define(SLICE_US, 100).

%% Takes 0.2 s. Needs the application tame.
-spec measure() -> calibration().
measure() ->
    Costs = costs_ns(),
    #{
        costs_ns => Costs,
        break_even_us => break_even_us(Costs),
        jobs => jobs()
    }.

%% The kinds take turns, so that what disturbs the machine hits all alike.
costs_ns() ->
    Kinds = [
        {inline, fun tame_echo_nif:echo/1},
        {hop, fun tame_echo_nif:echo_yielding/1},
        {dirty_hop, fun tame_echo_nif:echo_dirty_cpu/1},
        {inline_job, fun tame_echo:echo_inline/1},
        {pool, fun tame_echo:echo_pool/1},
        {thread, fun tame_echo:echo_thread/1}
    ],
    Turns = [[turn_ns(Echo) || {_, Echo} <- Kinds] || _ <- lists:seq(1, ?TURNS)],
    Medians = maps:from_list([
        {Kind, median([lists:nth(N, Turn) || Turn <- Turns])}
     || {N, {Kind, _}} <- lists:enumerate(Kinds)
    ]),
    #{
        hop => more(hop, inline, Medians),
        dirty_hop => more(dirty_hop, inline, Medians),
        pool => more(pool, inline_job, Medians),
        thread => more(thread, inline_job, Medians)
    }.

%% On a disturbed machine the difference may come out below nothing.
more(Kind, Base, Medians) ->
    max(0, maps:get(Kind, Medians) - maps:get(Base, Medians)).

median(Values) ->
    lists:nth((length(Values) + 1) div 2, lists:sort(Values)).

break_even_us(#{hop := HopNs} = Costs) ->
    maps:map(fun(_Kind, Ns) -> Ns * ?SLICE_US div max(1, HopNs) end, maps:remove(hop, Costs)).

%% Without the jobs that are called here to measure something else.
jobs() ->
    #{jobs := Jobs} = tame:calibration(),
    maps:filter(fun({Module, _, _}, _) -> Module =/= tame_echo end, Jobs).

turn_ns(Echo) ->
    Start = erlang:monotonic_time(nanosecond),
    calls(Echo, ?TURN_CALLS),
    (erlang:monotonic_time(nanosecond) - Start) div ?TURN_CALLS.

calls(_Echo, 0) ->
    ok;
calls(Echo, Count) ->
    _ = Echo(echo),
    calls(Echo, Count - 1).
