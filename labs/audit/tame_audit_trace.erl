%% What the audit reads from traces of the calls of NIFs: how long one of them was within a call
%% of the function, and for how long one had its scheduler without a break. tame_audit has the
%% process that is traced; the functions in here run in the tracer.
-module(tame_audit_trace).

-export([nifs/1]).
-export([flags/1]).
-export([start/1]).
-export([stop/2]).

-export_type([what/0]).
-export_type([shares/0]).

%% shares: of one call. {held, LeastNs}: each stretch that is no shorter.
-type what() :: shares | {held, LeastNs :: non_neg_integer()}.

-type shares() :: #{nif := non_neg_integer(), gc := non_neg_integer()}.

%% The longest ones that are returned.
-define(KEEP, 100).

%% Has a module's NIFs traced by their calls and returns; those of other modules are not looked at.
-spec nifs(module()) -> ok.
nifs(Module) ->
    Match = [{'_', [], [{return_trace}]}],
    Nifs = Module:module_info(nifs),
    _ = [erlang:trace_pattern({Module, F, A}, Match, [local]) || {F, A} <- Nifs],
    ok.

-spec flags(what()) -> [atom()].
flags(shares) -> [call, garbage_collection, monotonic_timestamp];
flags({held, _}) -> [running, scheduler_id | flags(shares)].

%% A tracer, which ends with the caller.
-spec start(what()) -> pid().
start(What) ->
    Run =
        case What of
            shares -> fun() -> shares(none, none, #{nif => 0, gc => 0}) end;
            {held, LeastNs} -> fun() -> stretches(none, outside, LeastNs, []) end
        end,
    spawn_opt(Run, [link, {message_queue_data, off_heap}]).

%% What a tracer has seen of a process: shares(), or the longest stretches in ns.
-spec stop(pid(), pid()) -> shares() | [non_neg_integer()].
stop(Tracer, Pid) ->
    Delivered = erlang:trace_delivered(Pid),
    receive {trace_delivered, Pid, Delivered} -> ok end,
    Tracer ! {self(), stop},
    receive {Tracer, Seen} -> Seen end.

%% By call trace, which shows a call and its return with everything in between: a call that yields
%% is as long as its slices together. A collection of a large heap is done on a dirty scheduler, and
%% has its slices there as a dirty NIF has.
shares(Call, Gc, #{nif := Longest, gc := Total} = Times) ->
    receive
        {trace_ts, _, call, _, Time} -> shares(Time, Gc, Times);
        {trace_ts, _, return_from, _, _, Time} when Call =/= none ->
            shares(none, Gc, Times#{nif := max(Longest, Time - Call)});
        {trace_ts, _, Start, _, Time} when Start =:= gc_major_start; Start =:= gc_minor_start ->
            shares(Call, Time, Times);
        {trace_ts, _, End, _, Time} when
            Gc =/= none, End =:= gc_major_end orelse End =:= gc_minor_end
        ->
            shares(Call, none, Times#{gc := Total + Time - Gc});
        {Observer, stop} ->
            Observer ! {self(), maps:map(fun(_, Native) -> ns(Native) end, Times)};
        _ ->
            shares(Call, Gc, Times)
    end.

%% A stretch lasts from a NIF's call, or from when its process got a normal scheduler again, to its
%% return, or to when the process left. Since is when it began, with the time of collections added.
%% Where: outside of a NIF, inside, or {gc, Time} for a collection inside.
%%
%% With scheduler_id every event has the scheduler before its time, which is the last element.
stretches(Since, Where, LeastNs, Longest) ->
    receive
        Event when element(1, Event) =:= trace_ts ->
            Time = element(tuple_size(Event), Event),
            Scheduler = element(tuple_size(Event) - 1, Event),
            {Since1, Where1} = seen(element(3, Event), Scheduler, Time, Since, Where),
            Ended = Since =/= none andalso Since1 =:= none,
            Longest1 =
                case Ended andalso ns(Time - Since) of
                    Ns when is_integer(Ns), Ns >= LeastNs -> [Ns | Longest];
                    _ -> Longest
                end,
            stretches(Since1, Where1, LeastNs, Longest1);
        {Observer, stop} ->
            Observer ! {self(), lists:sublist(lists:reverse(lists:sort(Longest)), ?KEEP)}
    end.

seen(call, _Scheduler, Time, _Since, _Where) -> {Time, inside};
seen(return_from, _Scheduler, _Time, _Since, _Where) -> {none, outside};
seen(_Event, _Scheduler, _Time, Since, outside) -> {Since, outside};
seen(in, 0, _Time, _Since, Where) -> {none, Where};
seen(in, _Scheduler, Time, _Since, Where) -> {Time, Where};
seen(out, _Scheduler, _Time, _Since, Where) -> {none, Where};
seen(gc_major_start, _Scheduler, Time, Since, inside) -> {Since, {gc, Time}};
seen(gc_minor_start, _Scheduler, Time, Since, inside) -> {Since, {gc, Time}};
seen(gc_major_end, _Scheduler, Time, Since, {gc, Start}) -> {later(Since, Time - Start), inside};
seen(gc_minor_end, _Scheduler, Time, Since, {gc, Start}) -> {later(Since, Time - Start), inside};
seen(_Event, _Scheduler, _Time, Since, Where) -> {Since, Where}.

later(none, _Time) -> none;
later(Since, Time) -> Since + Time.

ns(Native) ->
    erlang:convert_time_unit(Native, native, nanosecond).
