%% The load that is known to make schedulers collapse: many long native calls that charge nothing,
%% then a burst of cheap work, again and again with a rest in between in which schedulers go to
%% sleep.
%%
%% The VM decides by reductions how many schedulers it needs. Calls that charge none look like no
%% work at all, so it may leave schedulers asleep while jobs wait behind the calls of another. Every
%% job says when it was asked for and when it began; whether schedulers slept meanwhile is seen from
%% outside (Tame.Collapse).
-module(tame_collapse).

-export([run/3]).

-export_type([load/0]).

%% long: calls of 10 ms for each scheduler in a round; cheap: processes of the burst after them.
-type load() :: #{
    rounds := pos_integer(),
    long := pos_integer(),
    cheap := pos_integer(),
    rest_ms := pos_integer()
}.

-define(LONG_US, 10000).
-define(CHEAP_US, 20).

%% Sends {tame_collapse, Tag, {done, [{Kind, AskedNs, BeganNs}]}} to To, a process of the node that
%% watches, with times of os:perf_counter/1, which is the machine's clock. The node must have been
%% started by peer with an alternative connection; what is sent goes through that one's process
%% `user'.
-spec run(To :: pid(), Tag :: term(), load()) -> ok.
run(To, Tag, #{rounds := Rounds} = Load) ->
    ok = tame_thousand_cuts:cut(0),
    ok = tame_loop:loop(0),
    Jobs = lists:append([one_round(Load) || _ <- lists:seq(1, Rounds)]),
    user ! {message, To, {?MODULE, Tag, {done, Jobs}}},
    ok.

one_round(#{long := Long, cheap := Cheap, rest_ms := RestMs}) ->
    Schedulers = erlang:system_info(schedulers_online),
    LongWork = fun() -> tame_thousand_cuts:cut(?LONG_US) end,
    CheapWork = fun() -> tame_loop:loop(?CHEAP_US) end,
    LongJobs = [ask(long, LongWork) || _ <- lists:seq(1, Long * Schedulers)],
    CheapJobs = [ask(cheap, CheapWork) || _ <- lists:seq(1, Cheap)],
    Jobs = [await(Job) || Job <- LongJobs ++ CheapJobs],
    receive after RestMs -> Jobs end.

%% A new process waits in the run queue of the one that made it until somebody takes it from there.
ask(Kind, Work) ->
    Owner = self(),
    Ref = make_ref(),
    AskedNs = os:perf_counter(nanosecond),
    _ = spawn_link(fun() ->
        BeganNs = os:perf_counter(nanosecond),
        ok = Work(),
        Owner ! {Ref, BeganNs}
    end),
    {Kind, AskedNs, Ref}.

await({Kind, AskedNs, Ref}) ->
    receive
        {Ref, BeganNs} -> {Kind, AskedNs, BeganNs}
    end.
