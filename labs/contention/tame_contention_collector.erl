%% Collects what the observers of a contention cell see, samples the schedulers, and sends all that
%% on in portions: so of a node that has to be killed there is what it had said until then.
%%
%% It runs at priority max, because a flood of ordinary processes would otherwise keep it from its
%% samples. A sample asks every scheduler for its counters, so it comes late all the same when one
%% of them is held by a native call; the reader sees that by its time.
%%
%% A portion is a map: neighbours => [{Pid, PlannedNs, WokeNs}], askers => [{Kind, asked | got,
%% Ns}], long_schedules => how many, sample => none or the reading of the schedulers (see sample/1).
-module(tame_contention_collector).

-export([start/1]).
-export([sample_now/1]).
-export([stop/1]).

-export_type([portion/0]).
-export_type([sample/0]).

%% wall: {Id, Active, Total} of each scheduler as statistics(scheduler_wall_time_all) says them;
%% queues: as statistics(run_queue_lengths_all) says them, the last two those of the dirty
%% schedulers.
-type sample() :: #{
    at_ns := integer(),
    wall := [{pos_integer(), non_neg_integer(), non_neg_integer()}],
    queues := [non_neg_integer()],
    finished := non_neg_integer()
}.

-type portion() :: #{
    neighbours := [{pid(), integer(), integer()}],
    askers := [{tame_asker:kind(), asked | got, integer()}],
    long_schedules := non_neg_integer(),
    sample := none | sample()
}.

%% The time on one scheduler from which the VM reports it.
-define(LONG_SCHEDULE_MS, 10).

%% send: where a portion goes; finished: how many jobs are done.
-type options() :: #{
    sample_ms := pos_integer(),
    send := fun((portion()) -> term()),
    finished := fun(() -> non_neg_integer())
}.

-spec start(options()) -> pid().
start(#{sample_ms := SampleMs} = Options) ->
    Owner = self(),
    spawn_opt(
        fun() ->
            _ = erlang:system_flag(scheduler_wall_time, true),
            _ = erlang:system_monitor(self(), [{long_schedule, ?LONG_SCHEDULE_MS}]),
            Down = erlang:monitor(process, Owner),
            First = erlang:monotonic_time(millisecond),
            collect(send(empty(), Options), First + SampleMs, Options, Down)
        end,
        [{priority, max}]
    ).

%% Asks for a sample out of turn: at the start and the end of what is to be told apart.
-spec sample_now(pid()) -> ok.
sample_now(Pid) ->
    Pid ! {?MODULE, sample},
    ok.

%% Sends a last portion and ends.
-spec stop(pid()) -> ok.
stop(Pid) ->
    Ref = erlang:monitor(process, Pid),
    Pid ! {?MODULE, stop},
    receive {'DOWN', Ref, process, Pid, _} -> ok end.

empty() ->
    #{neighbours => [], askers => [], long_schedules => 0, sample => none}.

collect(Portion, Next, Options, Down) ->
    receive
        {tame_neighbour, Pid, Wakes} ->
            #{neighbours := Seen} = Portion,
            More = [{Pid, PlannedNs, WokeNs} || {PlannedNs, WokeNs} <- Wakes],
            collect(Portion#{neighbours := More ++ Seen}, Next, Options, Down);
        {tame_asker, Kind, What, Ns} ->
            #{askers := Seen} = Portion,
            collect(Portion#{askers := [{Kind, What, Ns} | Seen]}, Next, Options, Down);
        {monitor, _, long_schedule, _} ->
            #{long_schedules := Count} = Portion,
            collect(Portion#{long_schedules := Count + 1}, Next, Options, Down);
        {?MODULE, sample} ->
            collect(send(Portion, Options), Next, Options, Down);
        {?MODULE, stop} ->
            send(Portion, Options);
        {'DOWN', Down, process, _, _} ->
            ok
    after max(0, Next - erlang:monotonic_time(millisecond)) ->
        #{sample_ms := SampleMs} = Options,
        Now = erlang:monotonic_time(millisecond),
        Missed = (Now - Next) div SampleMs,
        collect(send(Portion, Options), Next + (Missed + 1) * SampleMs, Options, Down)
    end.

send(Portion, #{send := Send, finished := Finished}) ->
    Sample = sample(Finished),
    _ = Send(Portion#{sample := Sample}),
    empty().

-spec sample(fun(() -> non_neg_integer())) -> sample().
sample(Finished) ->
    Wall = erlang:statistics(scheduler_wall_time_all),
    #{
        at_ns => erlang:monotonic_time(nanosecond),
        wall => Wall,
        queues => erlang:statistics(run_queue_lengths_all),
        finished => Finished()
    }.
