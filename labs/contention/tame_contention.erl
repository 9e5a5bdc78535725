%% One cell of the contention lab, run in the node that is watched: observers, a flood, and what the
%% observers saw, sent to the node that watches.
%%
%% It stands alone with the Erlang modules that it names, so a node needs no Elixir to be watched.
%% The node must have been started by peer with an alternative connection; what is said goes through
%% that one's process `user'. In order:
%%
%%   {hello, Facts}           who is here, and what its clock says
%%   {portion, Portion}       about each sample_ms, see tame_contention_collector
%%   {flood, StartedNs}      the flood is about to begin
%%   {ended, Outcome}         how it ended; a last portion or more follow
%%   {done, Slices}           all is over
%%
%% each as {tame_contention, Tag, What}. All times are those of erlang:monotonic_time/1 here; Facts
%% says what the machine's own clock (os:perf_counter/1, CLOCK_MONOTONIC) said at the same moment.
-module(tame_contention).

-export([facts/0]).
-export([run/3]).

-export_type([cell/0]).

%% job: {Module, Function, Args}. lead_ms: how long the observers look before the flood; tail_ms:
%% and after it. sample_ms, neighbour_ms, dirty_ms, gc_ms: how often each of them looks;
%% gc_second_ms: when the second collection begins, the first one being that before the flood.
-type cell() :: #{
    job := {module(), atom(), [term()]},
    jobs := non_neg_integer(),
    lead_ms := non_neg_integer(),
    window_ms := non_neg_integer(),
    limit_ms := pos_integer(),
    tail_ms := non_neg_integer(),
    sample_ms := pos_integer(),
    neighbour_ms := pos_integer(),
    dirty_ms := pos_integer(),
    gc_ms := pos_integer(),
    gc_second_ms := pos_integer()
}.

%% What this node is, and what two clocks say at one moment.
-spec facts() -> #{atom() => term()}.
facts() ->
    #{
        os_pid => os:getpid(),
        schedulers => erlang:system_info(schedulers_online),
        all_schedulers => erlang:system_info(schedulers),
        dirty_cpu_schedulers => erlang:system_info(dirty_cpu_schedulers),
        dirty_io_schedulers => erlang:system_info(dirty_io_schedulers),
        cores => cores(),
        process_limit => erlang:system_info(process_limit),
        monotonic_ns => erlang:monotonic_time(nanosecond),
        machine_ns => os:perf_counter(nanosecond)
    }.

cores() ->
    case erlang:system_info(logical_processors_available) of
        unknown -> erlang:system_info(schedulers_online);
        Cores -> Cores
    end.

%% Runs a cell. To is a process of the watching node.
-spec run(To :: pid(), Tag :: term(), cell()) -> ok.
run(To, Tag, #{job := {Module, Function, Args}, jobs := Jobs} = Cell) ->
    _ = process_flag(priority, max),
    Say = fun(What) ->
        user ! {message, To, {?MODULE, Tag, What}},
        ok
    end,
    %% Its library is loaded, and its rate measured, before anybody looks.
    _ = apply(Module, Function, [0 || _ <- Args]),
    Flood = tame_flood:start(fun() -> apply(Module, Function, Args) end, Jobs),
    Observers = observe(Cell, Flood, Say),
    ok = Say({hello, facts()}),
    sleep(maps:get(lead_ms, Cell)),
    ok = tame_contention_collector:sample_now(element(1, Observers)),
    ok = Say({flood, erlang:monotonic_time(nanosecond)}),
    Outcome = tame_flood:run(Flood, Cell),
    ok = tame_contention_collector:sample_now(element(1, Observers)),
    _ = maps:get(status, Outcome) =:= ok andalso sleep(maps:get(tail_ms, Cell)),
    ok = Say({ended, Outcome}),
    %% First the flood, so that neighbours can answer.
    Slices = [slices(Reading) || Reading <- tame_flood:stop(Flood)],
    stop(Observers),
    ok = Say({done, Slices}),
    ok.

observe(Cell, Flood, Say) ->
    #{neighbour_ms := NeighbourMs, dirty_ms := DirtyMs} = Cell,
    #{gc_ms := GcMs, gc_second_ms := GcSecondMs} = Cell,
    Collector = tame_contention_collector:start(#{
        sample_ms => maps:get(sample_ms, Cell),
        send => fun(Portion) -> Say({portion, Portion}) end,
        finished => fun() -> tame_flood:finished(Flood) end
    }),
    Neighbours = [
        neighbour(#{scheduler => N, period_ms => NeighbourMs, tell => Collector})
     || N <- lists:seq(1, erlang:system_info(schedulers_online))
    ],
    Askers = [
        tame_asker:start(Kind, #{
            period_ms => PeriodMs, second_ms => SecondMs, collector => Collector
        })
     || {Kind, PeriodMs, SecondMs} <- [
            {dirty_cpu, DirtyMs, DirtyMs}, {dirty_io, DirtyMs, DirtyMs}, {gc, GcMs, GcSecondMs}
        ]
    ],
    {Collector, Neighbours, Askers}.

neighbour(Options) ->
    {ok, Neighbour} = tame_neighbour:start(Options),
    Neighbour.

%% Neighbours tell the collector what they have not told yet.
stop({Collector, Neighbours, Askers}) ->
    lists:foreach(fun tame_asker:stop/1, Askers),
    lists:foreach(fun tame_neighbour:stop/1, Neighbours),
    tame_contention_collector:stop(Collector).

slices(#{normal := Normal} = Reading) ->
    #{count := Count, total_ns := TotalNs, longest_ns := LongestNs, histogram := H} = Normal,
    #{
        count => Count,
        total_ns => TotalNs,
        longest_ns => LongestNs,
        p999_ns => min(LongestNs, tame_histogram:percentile(H, 99.9)),
        dirty_ns => maps:get(total_ns, maps:get(dirty, Reading)),
        reductions => maps:get(reductions, Reading)
    }.

sleep(Ms) ->
    receive after Ms -> ok end.
