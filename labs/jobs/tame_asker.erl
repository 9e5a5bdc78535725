%% Askers beside a flood: processes of normal priority that ask for dirty work every so often, and
%% tell a collector when they asked and when they got it.
%%
%%   dirty_cpu  a dirty CPU NIF that only reads the clock: asked until it ran
%%   dirty_io   file:read_file_info/2 (raw, so that no file server is asked): asked until it
%%              returned
%%   gc         a garbage collection of a heap of 50 MB, which the VM does on a dirty CPU scheduler:
%%              asked until it was done
%%
%% The collector gets {tame_asker, Kind, asked, Ns} and {tame_asker, Kind, got, Ns}, as times of
%% erlang:monotonic_time/1: of a call that never comes back it knows at least since when it waits.
-module(tame_asker).

-export([start/2]).
-export([stop/1]).

-export_type([kind/0]).

-type kind() :: dirty_cpu | dirty_io | gc.

%% A bignum is copied by a collection as it is, word by word; nothing in it has to be looked at. So
%% an asker measures how long it waited rather than how fast we collect.
-define(BIGNUM_BYTES, 400_000).
-define(HEAP_BYTES, 50_000_000).

%% Starts an asker, which asks at once, again after second_ms, and then each period_ms. It ends with
%% stop/1 or with the process that started it.
-spec start(kind(), #{
    period_ms := pos_integer(), second_ms := pos_integer(), collector := pid()
}) -> pid().
start(Kind, #{period_ms := PeriodMs, second_ms := SecondMs, collector := Collector}) ->
    Owner = self(),
    {Pid, Ref} = spawn_opt(
        fun() ->
            Down = erlang:monitor(process, Owner),
            State = prepare(Kind),
            Owner ! {?MODULE, self(), ready},
            ask(Kind, State, {SecondMs, PeriodMs}, Collector, Down)
        end,
        [monitor, {priority, normal}]
    ),
    receive
        {?MODULE, Pid, ready} -> demonitor(Ref, [flush]), Pid;
        {'DOWN', Ref, process, Pid, Reason} -> exit({asker_down, Kind, Reason})
    end.

-spec stop(pid()) -> true.
stop(Pid) ->
    exit(Pid, kill).

ask(Kind, State, {WaitMs, PeriodMs}, Collector, Down) ->
    AskedNs = erlang:monotonic_time(nanosecond),
    Collector ! {?MODULE, Kind, asked, AskedNs},
    Collector ! {?MODULE, Kind, got, got_ns(Kind)},
    receive
        {'DOWN', Down, process, _, _} -> ok
    after WaitMs ->
        ask(Kind, State, {PeriodMs, PeriodMs}, Collector, Down)
    end.

got_ns(dirty_cpu) ->
    tame_thousand_cuts:dirty_cpu_clock();
got_ns(dirty_io) ->
    {ok, _} = file:read_file_info("/", [raw]),
    erlang:monotonic_time(nanosecond);
got_ns(gc) ->
    true = erlang:garbage_collect(),
    erlang:monotonic_time(nanosecond).

prepare(gc) -> [1 bsl (8 * ?BIGNUM_BYTES + N) || N <- lists:seq(1, ?HEAP_BYTES div ?BIGNUM_BYTES)];
prepare(_) -> none.
