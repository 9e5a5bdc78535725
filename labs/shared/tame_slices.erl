%% Reads the slices of a process from outside: each stretch of time for which it had a scheduler
%% thread to itself, from the `running` trace events, not from what its code says of itself.
%%
%%     1> {ok, R} = tame_slices:start(self()), my_nif:work(), tame_slices:stop(R).
%%     #{normal := #{count := 1, longest_ns := 50412345, ...}, dirty := #{count := 0, ...}, ...}
%%
%% A slice is either normal or dirty. The trace calls every dirty scheduler 0, so dirty CPU and
%% dirty I/O cannot be told apart, and a garbage collection of a large heap, which runs there too,
%% counts as a dirty slice.
%%
%% What it costs: two trace messages a slice, about 1 µs in all to the watched process, and the time
%% of the process that receives them; give that one another scheduler with the option `scheduler`.
%%
%% What it cannot see: which function a slice was spent in; a process that neither gets nor leaves a
%% thread between start and stop.
%%
%% It stands alone with tame_histogram and tame_otp_features, so that it can be loaded into a node
%% that is watched.
-module(tame_slices).

-export([start/1]).
-export([start/2]).
-export([stop/1]).

%% Internal.
-export([keep/2]).
-export([kept/1]).
-export([new_picture/1]).

-export_type([options/0]).
-export_type([reading/0]).
-export_type([share/0]).
-export_type([slice/0]).
-export_type([recording/0]).

-opaque recording() :: #{
    pid := pid(),
    session := none | {module(), term()},
    tracer := pid(),
    monitor := reference(),
    reductions := undefined | non_neg_integer()
}.

%% keep: how many slices at most are returned one by one (default 500, at least 2); scheduler: where
%% the process that collects them runs (default: anywhere).
-type options() :: #{keep => pos_integer(), scheduler => pos_integer()}.

%% Start is counted from the start of the recording.
-type slice() :: {StartNs :: non_neg_integer(), DurationNs :: non_neg_integer(), normal | dirty}.

%% The slices of one kind. longest_ns and total_ns are exact, the histogram within 0.1 %.
-type share() :: #{
    count := non_neg_integer(),
    total_ns := non_neg_integer(),
    longest_ns := non_neg_integer(),
    histogram := tame_histogram:histogram()
}.

%% reductions: what the process was charged in the meantime; undefined when it has died.
%% slices: in order, each the longest of a run of consecutive slices; left_out: those that were not.
-type reading() :: #{
    normal := share(),
    dirty := share(),
    reductions := undefined | non_neg_integer(),
    slices := [slice()],
    left_out := non_neg_integer()
}.

-define(FLAGS, [running, exiting, scheduler_id, monotonic_timestamp]).
-define(DEFAULT_KEEP, 500).

%% The slices that are returned one by one. There may be millions, so they are cut into groups of
%% `stride` and the longest of each is kept; when there are `limit` of those, neighbouring groups
%% are merged. So the picture reaches from the first slice to the last and never hides the longest.
-record(picture, {
    limit :: pos_integer(),
    stride = 1 :: pos_integer(),
    kept = [] :: [slice()],
    kept_len = 0 :: non_neg_integer(),
    group = none :: none | slice(),
    group_len = 0 :: non_neg_integer(),
    seen = 0 :: non_neg_integer()
}).

-record(state, {
    pid :: pid(),
    %% The time from which the picture counts.
    zero = undefined :: undefined | integer(),
    %% When the slice that runs now began. `own`: it belongs to start/2, which the process calls
    %% itself.
    since :: own | off | integer(),
    normal :: share(),
    dirty :: share(),
    picture :: #picture{}
}).

%% As start(Pid, #{}).
-spec start(pid()) -> {ok, recording()} | {error, term()}.
start(Pid) ->
    start(Pid, #{}).

%% Begins to record the slices of a local process. The recording ends with stop/1 or with the
%% process that began it.
%%
%% A process may record itself. Then start and stop give its scheduler back once (erlang:yield/0),
%% so that the recording covers whole slices, which hold what the process does between the two calls
%% and about a microsecond of theirs. Of another process, the slices that run when the recording
%% begins and ends count with the part that was seen; and both calls wait until it can say its
%% reductions: during a long NIF call, until that is over.
%%
%% The error is noproc, already_traced (up to OTP 26 a process has one tracer), or
%% {bad_option, Key, Value}.
-spec start(pid(), options()) -> {ok, recording()} | {error, term()}.
start(Pid, Options) when is_pid(Pid), node(Pid) =:= node(), is_map(Options) ->
    case [Option || {Key, Value} = Option <- maps:to_list(Options), not valid(Key, Value)] of
        [] -> begin_recording(Pid, Options);
        [{Key, Value} | _] -> {error, {bad_option, Key, Value}}
    end.

valid(keep, N) -> is_integer(N) andalso N >= 2;
valid(scheduler, N) -> is_integer(N) andalso N >= 1 andalso N =< erlang:system_info(schedulers);
valid(_, _) -> false.

%% Ends the recording and returns what was seen. Call it in the process that called start.
-spec stop(recording()) -> reading().
stop(#{pid := Pid, session := Session, tracer := Tracer, monitor := Monitor} = Recording) ->
    #{reductions := Before} = Recording,
    After = reductions(Pid),
    _ = Pid =:= self() andalso erlang:yield(),
    ok = trace_off(Pid, Session),
    Tracer ! {?MODULE, Monitor, stop, erlang:monotonic_time()},
    Reading = answer(Tracer, Monitor),
    true = erlang:demonitor(Monitor, [flush]),
    Reading#{reductions => charged(Before, After)}.

charged(Before, After) when is_integer(Before), is_integer(After) -> After - Before;
charged(_, _) -> undefined.

%% The trace is switched on by the owner itself and not by the tracer: so a process that watches
%% itself has it switched on while it runs, and exactly one event, the `out` of its yield, comes
%% before the slices that count.
begin_recording(Pid, Options) ->
    Owner = self(),
    State = new_state(Owner, Pid, Options),
    {Tracer, Monitor} = spawn_tracer(fun() -> tracer(Owner, State) end, Options),
    case trace_on(Pid, Tracer) of
        {ok, Session} ->
            _ = Pid =:= Owner andalso erlang:yield(),
            {ok, #{
                pid => Pid,
                session => Session,
                tracer => Tracer,
                monitor => Monitor,
                reductions => reductions(Pid)
            }};
        {error, Reason} ->
            true = exit(Tracer, kill),
            true = erlang:demonitor(Monitor, [flush]),
            {error, Reason}
    end.

%% The tracer answers or dies; there is no third case, because it waits for nobody.
answer(Tracer, Monitor) ->
    receive
        {?MODULE, Monitor, Answer} -> Answer;
        {'DOWN', Monitor, process, Tracer, Reason} -> exit({tracer_down, Reason})
    end.

reductions(Pid) ->
    case erlang:process_info(Pid, reductions) of
        {reductions, Count} -> Count;
        undefined -> undefined
    end.

%% {scheduler, N} is not documented; see tame_neighbour.
spawn_tracer(Fun, Options) ->
    Where = [{scheduler, maps:get(scheduler, Options)} || is_map_key(scheduler, Options)],
    erlang:spawn_opt(Fun, [monitor, {message_queue_data, off_heap} | Where]).

%% ---- the tracer ----------------------------------------------------------------------------

%% Tracing ends with the tracer, and the tracer with its owner.
tracer(Owner, State) ->
    collect(Owner, erlang:monitor(process, Owner), State).

new_state(Owner, Pid, Options) ->
    {Zero, Since} =
        case Pid of
            Owner -> {undefined, own};
            _ -> {erlang:monotonic_time(), off}
        end,
    #state{
        pid = Pid,
        zero = Zero,
        since = Since,
        normal = new_share(),
        dirty = new_share(),
        picture = new_picture(maps:get(keep, Options, ?DEFAULT_KEEP))
    }.

new_share() ->
    #{count => 0, total_ns => 0, longest_ns => 0, histogram => tame_histogram:new()}.

%% When the owner says stop, all events have been delivered already.
collect(Owner, Down, #state{pid = Pid} = State) ->
    receive
        {trace_ts, Pid, Event, _, Scheduler, Time} ->
            collect(Owner, Down, event(Event, Scheduler, Time, State));
        {?MODULE, Ref, stop, Now} ->
            Owner ! {?MODULE, Ref, reading(close(Pid =:= Owner, Now, State))};
        {'DOWN', Down, process, Owner, _} ->
            ok
    end.

event(Event, _Scheduler, Time, State) when Event =:= in; Event =:= in_exiting ->
    Zero = case State#state.zero of undefined -> Time; Known -> Known end,
    State#state{since = Time, zero = Zero};
event(_Out, _Scheduler, _Time, #state{since = own} = State) ->
    State#state{since = off};
%% It had its thread already when the recording began.
event(_Out, Scheduler, Time, #state{since = off, picture = #picture{seen = 0}} = State) ->
    ended(State#state.zero, Time, Scheduler, State);
event(_Out, _Scheduler, _Time, #state{since = off} = State) ->
    State;
event(_Out, Scheduler, Time, #state{since = Since} = State) ->
    ended(Since, Time, Scheduler, State).

ended(From, To, Scheduler, State) ->
    DurationNs = ns(To - From),
    StartNs = max(0, ns(From - State#state.zero)),
    case Scheduler of
        0 ->
            Slice = {StartNs, DurationNs, dirty},
            Picture = keep(Slice, State#state.picture),
            State#state{since = off, dirty = add(DurationNs, State#state.dirty), picture = Picture};
        _ ->
            Slice = {StartNs, DurationNs, normal},
            Picture = keep(Slice, State#state.picture),
            Normal = add(DurationNs, State#state.normal),
            State#state{since = off, normal = Normal, picture = Picture}
    end.

add(DurationNs, #{count := Count, total_ns := Total, longest_ns := Longest} = Share) ->
    #{histogram := H} = Share,
    ok = tame_histogram:record(H, DurationNs),
    Share#{
        count := Count + 1,
        total_ns := Total + DurationNs,
        longest_ns := max(Longest, DurationNs)
    }.

%% A process that recorded itself runs in stop/1 now, which is not its own work. Another one that
%% still runs counts up to now, as normal: the scheduler is known only when a slice ends.
close(true, _Now, State) -> State;
close(false, Now, #state{since = Since} = State) when is_integer(Since) ->
    ended(Since, Now, 1, State);
close(false, _Now, State) -> State.

reading(#state{normal = Normal, dirty = Dirty, picture = Picture}) ->
    {Slices, LeftOut} = kept(Picture),
    #{normal => Normal, dirty => Dirty, slices => Slices, left_out => LeftOut}.

ns(Native) ->
    erlang:convert_time_unit(Native, native, nanosecond).

%% ---- tracing, by OTP version -----------------------------------------------------------------

%% In a trace session of our own where OTP has them, which disturbs no other tracer.
trace_on(Pid, Tracer) ->
    try
        case tame_otp_features:trace() of
            none -> trace_on_shared(Pid, Tracer);
            Trace ->
                Session = Trace:session_create(?MODULE, Tracer, []),
                1 = Trace:process(Session, Pid, true, ?FLAGS),
                {ok, {Trace, Session}}
        end
    catch
        error:badarg -> {error, noproc}
    end.

%% Asked first, because the VM logs an error when a process gets a second tracer.
trace_on_shared(Pid, Tracer) ->
    case erlang:trace_info(Pid, tracer) of
        {tracer, []} ->
            1 = erlang:trace(Pid, true, [{tracer, Tracer} | ?FLAGS]),
            {ok, none};
        {tracer, _} ->
            {error, already_traced};
        undefined ->
            {error, noproc}
    end.

%% Never more than this one process: on OTP 25 switching off a set of processes (all, existing, new)
%% ends the VM with a segmentation fault when one of them is in a dirty NIF. A process that is gone
%% is not traced any more, and gives badarg.
trace_off(Pid, none) ->
    _ = try erlang:trace(Pid, false, ?FLAGS) catch error:badarg -> 0 end,
    await_delivered(Pid, erlang:trace_delivered(Pid));
trace_off(Pid, {Trace, Session}) ->
    _ = try Trace:process(Session, Pid, false, ?FLAGS) catch error:badarg -> 0 end,
    ok = await_delivered(Pid, Trace:delivered(Session, Pid)),
    true = Trace:session_destroy(Session),
    ok.

await_delivered(Pid, Ref) ->
    receive
        {trace_delivered, Pid, Ref} -> ok
    end.

%% ---- the picture -----------------------------------------------------------------------------

-spec new_picture(pos_integer()) -> #picture{}.
new_picture(Keep) ->
    %% Even, so that merging leaves none over.
    #picture{limit = Keep - Keep rem 2}.

-spec keep(slice(), #picture{}) -> #picture{}.
keep(Slice, #picture{group = Group, group_len = Len, seen = Seen} = Picture) ->
    Longer = longer(Group, Slice),
    case Len + 1 of
        Full when Full =:= Picture#picture.stride ->
            merge(Picture#picture{
                kept = [Longer | Picture#picture.kept],
                kept_len = Picture#picture.kept_len + 1,
                group = none,
                group_len = 0,
                seen = Seen + 1
            });
        Part ->
            Picture#picture{group = Longer, group_len = Part, seen = Seen + 1}
    end.

merge(#picture{limit = Limit, stride = Stride, kept = Kept, kept_len = Limit} = Picture) ->
    Picture#picture{stride = 2 * Stride, kept = pairs(Kept), kept_len = Limit div 2};
merge(Picture) ->
    Picture.

pairs([Later, Earlier | Rest]) -> [longer(Earlier, Later) | pairs(Rest)];
pairs([]) -> [].

longer(none, Slice) -> Slice;
longer({_, A, _} = Slice, {_, B, _}) when A >= B -> Slice;
longer(_, Slice) -> Slice.

%% The slices kept, in order, and how many were not.
-spec kept(#picture{}) -> {[slice()], LeftOut :: non_neg_integer()}.
kept(#picture{kept = Kept, group = Group, seen = Seen}) ->
    Slices = lists:reverse([Slice || Slice <- [Group], Slice =/= none] ++ Kept),
    {Slices, Seen - length(Slices)}.
