%% The load lab's part in the VM of the server: starts it, and samples the schedulers.
%%
%% The VM must have been started by peer with an alternative connection; what is said goes through
%% that one's process `user', as {tame_load_agent, Tag, What}:
%%
%%   {ready, Facts}      the server listens
%%   {failed, Reason}    it does not
%%   {sample, Sample}    each sample_ms
%%
%% All times are those of the machine's own clock (os:perf_counter/1, CLOCK_MONOTONIC), which the
%% clients and the lab read too. A sample asks every scheduler for its counters, so it comes late
%% when native code holds one; who reads it sees that by its time.
-module(tame_load_agent).

-export([run/3]).

-export_type([facts/0]).
-export_type([sample/0]).

%% os_pid: whose CPU a request costs.
-type facts() :: #{
    port := inet:port_number(),
    os_pid := binary(),
    schedulers := pos_integer(),
    all_schedulers := pos_integer(),
    dirty_cpu_schedulers := pos_integer(),
    cores := pos_integer()
}.

-type sample() :: #{
    at_ns := integer(),
    wall := [{pos_integer(), non_neg_integer(), non_neg_integer()}],
    queued := non_neg_integer()
}.

%% server: a module with the functions of Tame.Load.Server.
-type spec() :: #{
    server := module(),
    port := inet:port_number(),
    protocol := h1 | h2,
    work := tame_load_work:work(),
    sample_ms := pos_integer()
}.

%% Starts the server and samples until the VM ends. To is a process of the VM that watches.
-spec run(To :: pid(), Tag :: term(), spec()) -> ok.
run(To, Tag, #{server := Server, port := Port, protocol := Protocol, work := Work} = Spec) ->
    %% Its samples are to come while ordinary processes keep all schedulers busy.
    _ = process_flag(priority, max),
    Say = fun(What) ->
        user ! {message, To, {?MODULE, Tag, What}},
        ok
    end,
    ok = logger:set_primary_config(level, none),
    ok = tame_load_work:set(Work),
    try Server:start(Port, Protocol) of
        {ok, Listening} ->
            ready(Say, Listening, list_to_binary(os:getpid()), Spec);
        {ok, Listening, OsPid} ->
            ready(Say, Listening, OsPid, Spec);
        {error, Reason} ->
            Say({failed, Reason})
    catch
        _:Reason -> Say({failed, Reason})
    end.

ready(Say, Listening, OsPid, #{sample_ms := SampleMs}) ->
    _ = erlang:system_flag(scheduler_wall_time, true),
    ok = Say({ready, facts(Listening, OsPid)}),
    sample(Say, SampleMs, erlang:monotonic_time(millisecond)).

facts(Port, OsPid) ->
    #{
        port => Port,
        os_pid => OsPid,
        schedulers => erlang:system_info(schedulers_online),
        all_schedulers => erlang:system_info(schedulers),
        dirty_cpu_schedulers => erlang:system_info(dirty_cpu_schedulers),
        cores => cores()
    }.

cores() ->
    case erlang:system_info(logical_processors_available) of
        unknown -> erlang:system_info(schedulers_online);
        Cores -> Cores
    end.

sample(Say, SampleMs, Planned) ->
    Wall = erlang:statistics(scheduler_wall_time_all),
    ok = Say(
        {sample, #{
            at_ns => os:perf_counter(nanosecond),
            wall => Wall,
            queued => erlang:statistics(total_run_queue_lengths)
        }}
    ),
    Now = erlang:monotonic_time(millisecond),
    Next = Planned + (1 + max(0, Now - Planned) div SampleMs) * SampleMs,
    receive after max(0, Next - Now) -> ok end,
    sample(Say, SampleMs, Next).
