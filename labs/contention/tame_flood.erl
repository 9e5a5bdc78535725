%% A flood: many processes that all want native work at the same moment, burst after burst.
%%
%% Each worker does one job in a burst. A burst ends with its last job, and then the next one
%% begins, until the flood has lasted for window_ms; so short jobs are observed for long enough to
%% say something about their neighbours. A flood is stopped after limit_ms, even with jobs left.
%%
%% It belongs to a process of priority max (tame_contention), because a flood may keep any other
%% from running, and somebody has to stop it.
-module(tame_flood).

-export([start/2]).
-export([run/2]).
-export([finished/1]).
-export([stop/1]).

-export_type([flood/0]).
-export_type([outcome/0]).

%% finished: jobs done so far, and jobs refused; left: of this burst.
-opaque flood() :: #{
    workers := [pid()],
    recordings := [tame_slices:recording()],
    owner := pid(),
    finished := counters:counters_ref(),
    left := atomics:atomics_ref()
}.

-type outcome() :: #{
    status := ok | timeout | {failed, term()},
    started_ns := integer(),
    ended_ns := integer(),
    bursts := pos_integer(),
    finished := non_neg_integer(),
    refused := non_neg_integer()
}.

%% How many workers have their slices read: a recording costs its worker about 1 µs a slice.
-define(RECORDED, 2).

%% Makes the workers, which wait.
-spec start(fun(() -> term()), Jobs :: non_neg_integer()) -> flood().
start(Job, Jobs) ->
    Owner = self(),
    Left = atomics:new(1, []),
    Finished = counters:new(2, [write_concurrency]),
    Workers = [
        spawn_opt(fun() -> worker(Job, Left, Finished, Owner) end, [link, {priority, normal}])
     || _ <- lists:seq(1, Jobs)
    ],
    Recordings = [record(Worker) || Worker <- lists:sublist(Workers, ?RECORDED)],
    #{
        workers => Workers,
        recordings => Recordings,
        owner => Owner,
        finished => Finished,
        left => Left
    }.

record(Worker) ->
    {ok, Recording} = tame_slices:start(Worker, #{keep => 2}),
    Recording.

worker(Job, Left, Finished, Owner) ->
    receive
        go ->
            try
                _ = Job(),
                counters:add(Finished, 1, 1)
            catch
                %% A pool that is full says so at once, as it should.
                error:{tame, busy} -> counters:add(Finished, 2, 1);
                _:Reason ->
                    Owner ! {?MODULE, failed, Reason},
                    ok
            end,
            _ = atomics:sub_get(Left, 1, 1) =:= 0 andalso (Owner ! {?MODULE, burst_done}),
            worker(Job, Left, Finished, Owner)
    end.

%% Runs bursts until it is time.
-spec run(flood(), #{window_ms := non_neg_integer(), limit_ms := pos_integer(), _ => _}) ->
    outcome().
run(#{finished := Finished} = Flood, #{window_ms := WindowMs, limit_ms := LimitMs}) ->
    Started = erlang:monotonic_time(millisecond),
    StartedNs = erlang:monotonic_time(nanosecond),
    {Status, Bursts} = bursts(Flood, Started + WindowMs, Started + LimitMs, 1),
    #{
        status => Status,
        started_ns => StartedNs,
        ended_ns => erlang:monotonic_time(nanosecond),
        bursts => Bursts,
        finished => counters:get(Finished, 1),
        refused => counters:get(Finished, 2)
    }.

bursts(#{workers := []}, Window, _Limit, _Bursts) ->
    receive after max(0, Window - erlang:monotonic_time(millisecond)) -> {ok, 1} end;
bursts(#{workers := Workers, left := Left} = Flood, Window, Limit, Bursts) ->
    ok = atomics:put(Left, 1, length(Workers)),
    lists:foreach(fun(Worker) -> Worker ! go end, Workers),
    receive
        {?MODULE, burst_done} ->
            case erlang:monotonic_time(millisecond) < Window of
                true -> bursts(Flood, Window, Limit, Bursts + 1);
                false -> {ok, Bursts}
            end;
        {?MODULE, failed, Reason} ->
            {{failed, Reason}, Bursts}
    after max(0, Limit - erlang:monotonic_time(millisecond)) ->
        {timeout, Bursts}
    end.

%% How many jobs are done so far.
-spec finished(flood()) -> non_neg_integer().
finished(#{finished := Finished}) ->
    counters:get(Finished, 1).

%% Ends the workers and returns the slices of the recorded ones. A worker inside a native call that
%% cannot be stopped ends after the call; recorded workers are waited for.
-spec stop(flood()) -> [tame_slices:reading()].
stop(#{workers := Workers, recordings := Recordings}) ->
    {Recorded, Others} = lists:split(length(Recordings), Workers),
    lists:foreach(fun end_worker/1, Others),
    Readings = [tame_slices:stop(Recording) || Recording <- Recordings],
    lists:foreach(fun end_worker/1, Recorded),
    Readings.

end_worker(Worker) ->
    true = unlink(Worker),
    exit(Worker, kill).
