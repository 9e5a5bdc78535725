%% The tracer of `mix tame.watch --slices': the calls of one function of the watched node, up to a
%% number, and the slices of those who call it. It is sent only when it is asked for.
%%
%% A call of the function switches on the `running' events of its caller, and nobody else's; its
%% return, or the bound, ends them. The watcher makes calls and slices of the events.
-module(tame_watch_tracer).

-export([run/2]).
-export([take/1]).

-export_type([state/0]).

-type state() :: tracing | done | {refused, term()}.

%% A call whose end nobody sees, or one that hops on and on, must not fill the memory.
-define(TRACE_EVENTS, 20_000).

%% No event holds an argument or a value: they may be of any size.
-define(CALLS, [call, arity, return_to, scheduler_id, monotonic_timestamp]).

-record(calls, {
    function :: mfa(),
    left :: non_neg_integer(),
    state = tracing :: state(),
    session = none :: none | {module(), term()},
    closing = false :: boolean(),
    callers = #{} :: #{pid() => []},
    seen = 0 :: non_neg_integer(),
    events = [] :: [tuple()],
    len = 0 :: non_neg_integer()
}).

%% What the tracer has seen since the last time: its state, the calls that began, and their events.
-spec take(pid()) -> {state(), Calls :: non_neg_integer(), Events :: [tuple()]}.
take(Tracer) ->
    Tracer ! {self(), calls},
    receive {Tracer, Calls} -> Calls after 1000 -> {tracing, 0, []} end.

%% Traces until that many calls of the function are over, and lives until an exit signal.
-spec run(mfa(), pos_integer()) -> term().
run(Function, Calls) ->
    _ = process_flag(trap_exit, true),
    trace(trace_on(#calls{function = Function, left = Calls})).

trace(#calls{callers = Callers} = State) ->
    receive
        {'EXIT', _, _} ->
            trace_off(State);
        {Agent, calls} when is_pid(Agent) ->
            Events = lists:reverse(State#calls.events),
            Agent ! {self(), {State#calls.state, State#calls.seen, Events}},
            trace(State#calls{events = [], len = 0, seen = 0});
        %% One that is called within itself is one call.
        {trace_ts, Pid, call, _, Scheduler, Time} when
            State#calls.left > 0, not is_map_key(Pid, Callers)
        ->
            Counted = State#calls{
                left = State#calls.left - 1,
                seen = State#calls.seen + 1,
                callers = Callers#{Pid => []}
            },
            trace(bounded(keep_event({call, Pid, Scheduler, Time}, Counted)));
        {trace_ts, Pid, call, _, _, _} ->
            _ = is_map_key(Pid, Callers) orelse running_off(Pid, State),
            trace(State);
        {trace_ts, Pid, return_to, Function, Scheduler, Time} when
            is_map_key(Pid, Callers), Function =/= State#calls.function
        ->
            running_off(Pid, State),
            Returned = State#calls{callers = maps:remove(Pid, Callers)},
            trace(bounded(keep_event({return, Pid, Scheduler, Time}, Returned)));
        {trace_ts, Pid, Event, _, Scheduler, Time} when
            is_map_key(Pid, Callers), Event =:= in orelse Event =:= out
        ->
            trace(bounded(keep_event({Event, Pid, Scheduler, Time}, State)));
        _ ->
            trace(State)
    end.

keep_event({What, Pid, Scheduler, Time}, #calls{events = Events, len = Len} = State) ->
    Event = {What, Pid, Scheduler, erlang:convert_time_unit(Time, native, nanosecond)},
    State#calls{events = [Event | Events], len = Len + 1}.

bounded(#calls{state = tracing, left = Left, len = Len, callers = Callers} = State) ->
    if
        Left =:= 0, map_size(Callers) =:= 0 -> trace_off(State);
        Len >= ?TRACE_EVENTS -> trace_off(State);
        Left =:= 0, not State#calls.closing -> pattern_off(State), State#calls{closing = true};
        true -> State
    end;
bounded(State) ->
    State.

match() -> [{'_', [], [{trace, [], [running]}]}].

%% In a session of its own from OTP 27 on. Before, a process has one tracer and a function one
%% pattern: what somebody else traces is left alone.
trace_on(#calls{function = {Module, _, _} = Function} = State) ->
    Trace = trace,
    _ = code:ensure_loaded(Module),
    try
        case code:ensure_loaded(Trace) of
            {module, Trace} ->
                Session = Trace:session_create(?MODULE, self(), []),
                Known = State#calls{session = {Trace, Session}},
                some(Trace:function(Session, Function, match(), [local])),
                _ = Trace:process(Session, all, true, ?CALLS),
                Known;
            _ ->
                {all, false} = erlang:trace_info(Function, all),
                some(erlang:trace_pattern(Function, match(), [local])),
                _ = erlang:trace(processes, true, [{tracer, self()} | ?CALLS]),
                State
        end
    catch
        _:Reason -> State#calls{state = {refused, Reason}, left = 0}
    end.

some(N) when N > 0 -> ok.

pattern_off(#calls{session = none, function = Function}) ->
    _ = erlang:trace_pattern(Function, false, [local]),
    ok;
pattern_off(#calls{session = {Trace, Session}, function = Function}) ->
    _ = Trace:function(Session, Function, false, [local]),
    ok.

running_off(Pid, #calls{session = none}) ->
    _ = try erlang:trace(Pid, false, [running]) catch error:badarg -> 0 end,
    ok;
running_off(Pid, #calls{session = {Trace, Session}}) ->
    _ = try Trace:process(Session, Pid, false, [running]) catch error:badarg -> 0 end,
    ok.

%% Without sessions process by process: on OTP 25 to switch off a set of processes (all, existing,
%% new) ends the VM with a segmentation fault when one of them is in a dirty NIF. New processes get
%% the flag of `all' no more with the tracer's death, which is this one's.
trace_off(#calls{state = tracing, session = none} = State) ->
    pattern_off(State),
    _ = [
        try erlang:trace(Pid, false, [running | ?CALLS]) catch error:badarg -> 0 end
     || Pid <- processes(), Pid =/= self(), mine(Pid)
    ],
    State#calls{state = done, left = 0, callers = #{}};
trace_off(#calls{state = tracing, session = {Trace, Session}} = State) ->
    true = Trace:session_destroy(Session),
    State#calls{state = done, left = 0, callers = #{}};
trace_off(State) ->
    State.

mine(Pid) ->
    erlang:trace_info(Pid, tracer) =:= {tracer, self()}.
