%% What `mix tame.watch' puts into a running node: it observes, answers once a second, and removes
%% itself.
%%
%% The modules that are sent need nothing but kernel and stdlib, because the node has neither tame
%% nor Elixir. start/1 makes a keeper, whose name is tame_watch, and these, all linked to it:
%%
%%   tickers   one on each normal scheduler (tame_watch_ticker): how late neighbours wake
%%   scanner   asks processes what they do (tame_watch_scanner): who holds a dirty scheduler
%%   walls     asks the schedulers for their counters, and waits where one is held
%%   agent     takes long_schedule events, answers the watcher
%%   tracer    only for slices (tame_watch_tracer): the calls of one function, up to a number
%%
%% The keeper ends all of them, and deletes and purges the modules, when the watcher says so, dies,
%% loses the connection or does not ask for 15 s, when the time is up, and when one of them fails.
%% What they changed in the VM (the counters of wall time, the system monitor, tracing) hangs on
%% their lives.
%%
%% Nothing here grows with what happens in the node: events are counted beyond a bound, scanning
%% takes at most 0.5 % of a core, and no process that answers the watcher waits for a process or
%% scheduler that is held.
-module(tame_watch).

-export([start/1]).
-export([modules/1]).

-export_type([options/0]).
-export_type([reading/0]).

%% slices: the function whose calls are traced, and how many of them.
-type options() :: #{watcher := pid(), limit_ms := pos_integer(), slices => {mfa(), pos_integer()}}.

%% Times are of the node's monotonic clock. wall, queues, active: as erlang:statistics/1 says them;
%% late: not all schedulers have answered. ticks: of each ticker how many wake-ups, the longest
%% delay and its histogram since the last reading. looked_at: of how many processes the scanner
%% asked some, when it does. held: who does not answer the scanner. dirty: NIFs that processes with
%% long slices were then seen in on a dirty thread.
-type reading() :: #{
    at_ns := integer(),
    wall := late | wall(),
    processes := non_neg_integer(),
    ticks := [tame_watch_ticker:seen()],
    holders := [{pid(), Name :: atom(), mfa() | garbage_collection, SinceNs :: integer()}],
    looked_at := none | {non_neg_integer(), non_neg_integer()},
    held := none | {pid(), SinceNs :: integer()},
    monitor := ok | {taken, pid() | port(), Name :: atom()},
    long := [long()],
    dirty := [mfa()],
    long_left_out := non_neg_integer(),
    calls := none | {tame_watch_tracer:state(), Calls :: non_neg_integer(), Events :: [tuple()]},
    cost_ns := non_neg_integer()
}.

-type long() :: {pid() | port(), Name :: atom(), non_neg_integer(), [mfa()]}.

-type wall() :: {
    AtNs :: integer(),
    Wall :: [{pos_integer(), non_neg_integer(), non_neg_integer()}],
    Queues :: [non_neg_integer()],
    Active :: [non_neg_integer()]
}.

-define(LONG_SCHEDULE_MS, 10).
%% The watcher asks once a second.
-define(SILENCE_MS, 15_000).
%% How long a reading waits for the schedulers' counters.
-define(WALL_MS, 300).
%% Of a second: how many long_schedule events are reported one by one, and how many of their
%% processes are asked.
-define(LONG, 100).
-define(ASKED, 20).
%% How often, and how far apart, a process that waits for its turn is asked whether it is dirty.
-define(DIRTY_LOOKS, 25).
-define(DIRTY_LOOK_MS, 20).
-define(HEAP_WORDS, 100_000).
-define(CALLBACKS, [
    {handle_call, 3}, {handle_cast, 2}, {handle_info, 2}, {handle_continue, 2}, {handle_event, 4}
]).
%% A step of ours that takes longer than this was interrupted, by the operating system or for
%% others' turns.
-define(STEP_NS, 1_000_000).

%% ---- for the watcher, by erpc ----------------------------------------------------------------

%% Then the watcher sends the keeper {tame_watch, ask, self(), Ref} and gets {Ref, reading()}, what
%% was seen since the last one; and {tame_watch, stop}. Nothing of this waits in code of ours, which
%% is going to be purged.

%% The modules to be sent for these options, this one last.
-spec modules(#{slices => term(), _ => _}) -> [module()].
modules(#{slices := _}) -> [tame_watch_tracer | modules(#{})];
modules(#{}) -> [tame_watch_ticker, tame_watch_scanner, ?MODULE].

-spec start(options()) -> {ok, pid()} | {error, term()}.
start(Options) ->
    Caller = self(),
    {Pid, Monitor} = spawn_monitor(fun() -> init(Caller, Options) end),
    receive
        {?MODULE, Pid, Answer} ->
            true = demonitor(Monitor, [flush]),
            Answer;
        {'DOWN', Monitor, process, Pid, Reason} ->
            {error, Reason}
    end.

%% ---- the keeper --------------------------------------------------------------------------------

init(Caller, Options) ->
    try register(?MODULE, self()) of
        true ->
            _ = process_flag(trap_exit, true),
            _ = process_flag(priority, high),
            keep(Caller, Options)
    catch
        error:badarg -> Caller ! {?MODULE, self(), {error, taken}}
    end.

%% It ends with the reason as its own, which the watcher sees.
-spec keep(pid(), options()) -> no_return().
keep(Caller, #{watcher := Watcher, limit_ms := LimitMs} = Options) ->
    Tickers = [
        {Ticks, spawn_at(N, fun() -> tame_watch_ticker:run(Ticks) end)}
     || {N, Ticks} <- [{N, tame_watch_ticker:new()} || N <- schedulers()]
    ],
    Ticks = [T || {T, _} <- Tickers],
    Scanner = spawn_opt(tame_watch_scanner, run, [Ticks], [link, {priority, high}]),
    Walls = spawn_opt(fun walls/0, [link, {priority, high}]),
    Tracer =
        case Options of
            #{slices := {Function, Calls}} ->
                SpawnOptions = [link, {priority, high}, {message_queue_data, off_heap}],
                spawn_opt(tame_watch_tracer, run, [Function, Calls], SpawnOptions);
            _ ->
                none
        end,
    Agent = spawn_opt(fun() -> agent(Ticks, Scanner, Walls, Tracer) end, [link, {priority, high}]),
    Helpers = [Agent, Scanner, Walls | [Pid || {_, Pid} <- Tickers]] ++ [Tracer || is_pid(Tracer)],
    Down = monitor(process, Watcher),
    Caller ! {?MODULE, self(), {ok, self()}},
    EndMs = erlang:monotonic_time(millisecond) + LimitMs,
    Why = wait(Agent, Down, EndMs, Helpers),
    _ = [exit(Pid, shutdown) || Pid <- Helpers],
    %% A ticker of a held scheduler ends when that is free.
    _ = [receive {'EXIT', Pid, _} -> ok end || Pid <- Helpers, not_gone(Pid, Why)],
    remove(modules(Options)),
    exit({shutdown, Why}).

schedulers() -> lists:seq(1, erlang:system_info(schedulers_online)).

%% {scheduler, N} is not documented. It keeps a process on that scheduler; without it the VM would
%% move it away from one that is held.
spawn_at(Scheduler, Fun) ->
    erlang:spawn_opt(Fun, [link | [{scheduler, N} || N <- [Scheduler]]]).

wait(Agent, Down, EndMs, Helpers) ->
    receive
        {?MODULE, ask, _, _} = Ask ->
            Agent ! Ask,
            wait(Agent, Down, EndMs, Helpers);
        {?MODULE, stop} ->
            stopped;
        {'DOWN', Down, process, _, _} ->
            watcher_gone;
        {'EXIT', Pid, Reason} ->
            case lists:member(Pid, Helpers) of
                true -> {failed, Pid, Reason};
                false -> wait(Agent, Down, EndMs, Helpers)
            end
    after min(?SILENCE_MS, max(0, EndMs - erlang:monotonic_time(millisecond))) ->
        time_is_up
    end.

not_gone(Pid, {failed, Pid, _}) -> false;
not_gone(_Pid, _Why) -> true.

%% The purges are made by processes that run no code of ours, because a purge ends those that do.
%% This one, which does, is the last whose module is purged.
remove(Modules) ->
    _ = [code:purge(Module) || Module <- Modules],
    _ = [code:delete(Module) || Module <- Modules],
    _ = [spawn(code, purge, [Module]) || Module <- Modules],
    ok.

%% ---- the schedulers' counters -------------------------------------------------------------------

%% A scheduler that is held does not answer, so nobody but this process waits for it. The flag is
%% taken back by the VM when the process ends.
walls() ->
    _ = erlang:system_flag(scheduler_wall_time, true),
    wall().

wall() ->
    receive
        {Agent, wall} ->
            Wall = erlang:statistics(scheduler_wall_time_all),
            Queues = erlang:statistics(run_queue_lengths_all),
            Active = erlang:statistics(active_tasks_all),
            Agent ! {self(), {erlang:monotonic_time(nanosecond), Wall, Queues, Active}},
            wall()
    end.

%% ---- the agent ----------------------------------------------------------------------------------

-record(agent, {
    ticks :: [atomics:atomics_ref()],
    scanner :: pid(),
    walls :: pid(),
    tracer :: none | pid(),
    session = none :: none | {module(), term()},
    %% A reading that waits for the counters; whether the walls still owe an answer.
    waiting = none :: none | {pid(), reference(), reference()},
    owed = false :: boolean(),
    long = [] :: [{reference(), long()}],
    dirty = #{} :: #{mfa() => []},
    long_len = 0 :: non_neg_integer(),
    left_out = 0 :: non_neg_integer(),
    cost_ns = 0 :: non_neg_integer()
}).

agent(Ticks, Scanner, Walls, Tracer) ->
    serve(monitored(#agent{ticks = Ticks, scanner = Scanner, walls = Walls, tracer = Tracer})).

%% From OTP 28 on a session has a monitor of its own. Before there is one for the node: it is not
%% taken from somebody.
monitored(State) ->
    Trace = trace,
    _ = code:ensure_loaded(Trace),
    case erlang:function_exported(Trace, system, 3) of
        true ->
            Session = Trace:session_create(?MODULE, self(), []),
            _ = Trace:system(Session, long_schedule, ?LONG_SCHEDULE_MS),
            State#agent{session = {Trace, Session}};
        false ->
            _ = erlang:system_monitor() =:= undefined andalso
                erlang:system_monitor(self(), [{long_schedule, ?LONG_SCHEDULE_MS}]),
            State
    end.

monitor_state(#agent{session = {_, _}}) ->
    ok;
monitor_state(_State) ->
    Agent = self(),
    case erlang:system_monitor() of
        {Agent, _} -> ok;
        {Other, _} -> {taken, Other, name(Other)};
        undefined -> {taken, Agent, undefined}
    end.

%% Only of one that does not have to answer: a process that is held would make us wait.
name(Pid) ->
    case [Name || Name <- registered(), whereis(Name) =:= Pid] of
        [Name | _] -> Name;
        [] -> undefined
    end.

serve(State) ->
    receive
        Message ->
            StartNs = erlang:monotonic_time(nanosecond),
            #agent{cost_ns = CostNs} = Served = serve(Message, State),
            SpentNs = min(?STEP_NS, erlang:monotonic_time(nanosecond) - StartNs),
            serve(Served#agent{cost_ns = CostNs + SpentNs})
    end.

serve({?MODULE, ask, From, Ref}, #agent{owed = true} = State) ->
    State#agent.scanner ! look,
    answer(From, Ref, late, State);
serve({?MODULE, ask, From, Ref}, #agent{walls = Walls} = State) ->
    Walls ! {self(), wall},
    State#agent.scanner ! look,
    Timer = erlang:start_timer(?WALL_MS, self(), wall),
    State#agent{waiting = {From, Ref, Timer}, owed = true};
serve({Walls, Wall}, #agent{walls = Walls, waiting = Waiting} = State) ->
    case Waiting of
        {From, Ref, Timer} ->
            _ = erlang:cancel_timer(Timer),
            answer(From, Ref, Wall, State#agent{waiting = none, owed = false});
        none ->
            State#agent{owed = false}
    end;
serve({timeout, Timer, wall}, #agent{waiting = {From, Ref, Timer}} = State) ->
    answer(From, Ref, late, State#agent{waiting = none});
serve({monitor, Who, long_schedule, Facts}, #agent{long_len = Len} = State) when Len < ?LONG ->
    {timeout, Ms} = lists:keyfind(timeout, 1, Facts),
    Functions = [F || Key <- [out, in], {_, {_, _, _} = F} <- [lists:keyfind(Key, 1, Facts)]],
    Id = make_ref(),
    _ = is_pid(Who) andalso Len < ?ASKED andalso asked(self(), Id, Who),
    Slice = {Who, undefined, Ms, Functions},
    State#agent{long = [{Id, Slice} | State#agent.long], long_len = Len + 1};
serve({monitor, _, long_schedule, _}, #agent{left_out = LeftOut} = State) ->
    State#agent{left_out = LeftOut + 1};
serve({dirty, Function}, #agent{dirty = Dirty} = State) ->
    State#agent{dirty = Dirty#{Function => []}};
serve({asked, Id, Name, More}, #agent{long = Long} = State) ->
    case lists:keyfind(Id, 1, Long) of
        {Id, {Who, _, Ms, Functions}} ->
            Slice = {Who, Name, Ms, Functions ++ More},
            State#agent{long = lists:keyreplace(Id, 1, Long, {Id, Slice})};
        false ->
            State
    end;
serve(_Late, State) ->
    State.

%% The process may be in its next long slice already, so somebody else waits for its answer. What it
%% has on its stack may be the function that called the NIF; of a gen_server that has returned to
%% its loop only its callbacks are left.
asked(Agent, Id, Pid) ->
    spawn_link(fun() ->
        First = dirty(Agent, Pid),
        _ = case erlang:process_info(Pid, [current_stacktrace, registered_name, total_heap_size]) of
            [{_, Stack}, {_, Name}, {_, Words}] ->
                OnStack = [{M, F, A} || {M, F, A, _} <- Stack, is_integer(A)],
                Known = case Name of [] -> undefined; _ -> Name end,
                Agent ! {asked, Id, Known, OnStack ++ callbacks(Pid, Words)};
            _ ->
                gone
        end,
        dirty_soon(First, Agent, Pid, ?DIRTY_LOOKS)
    end).

%% A slice ends where a dirty NIF is called, which then has no part in it, as it does where a NIF
%% hops. What tells them apart is where the process goes on; it may have to wait for a dirty thread.
dirty_soon(true, _Agent, _Pid, _Looks) ->
    ok;
dirty_soon(false, _Agent, _Pid, 0) ->
    ok;
dirty_soon(false, Agent, Pid, Looks) ->
    case erlang:process_info(Pid, status) of
        {status, runnable} ->
            receive after ?DIRTY_LOOK_MS -> ok end,
            dirty_soon(dirty(Agent, Pid), Agent, Pid, Looks - 1);
        _ ->
            ok
    end.

%% The BIF, which is not documented, reads a flag and waits for nobody. A process that is in native
%% code on a dirty thread answers at once; one whose heap is collected there is in none.
dirty(Agent, Pid) ->
    case
        erts_internal:is_process_executing_dirty(Pid) andalso
            erlang:process_info(Pid, [status, current_function])
    of
        [{status, running}, {current_function, {_, _, _} = Function}] ->
            Agent ! {dirty, Function},
            true;
        _ ->
            false
    end.

%% To read the dictionary copies all of it, so only of a small process.
callbacks(Pid, Words) when Words < ?HEAP_WORDS ->
    case erlang:process_info(Pid, dictionary) of
        {dictionary, Entries} ->
            case lists:keyfind('$initial_call', 1, Entries) of
                {_, {Module, init, 1}} -> [{Module, F, A} || {F, A} <- ?CALLBACKS];
                _ -> []
            end;
        undefined ->
            []
    end;
callbacks(_Pid, _Words) ->
    [].

answer(From, Ref, Wall, #agent{ticks = Ticks, scanner = Scanner} = State) ->
    NowNs = erlang:monotonic_time(nanosecond),
    #{holders := Holders, looked_at := LookedAt, held := Held, cost_ns := ScanNs} =
        tame_watch_scanner:seen(Scanner),
    Long = lists:reverse(State#agent.long),
    From !
        {Ref, #{
            at_ns => NowNs,
            wall => Wall,
            processes => erlang:system_info(process_count),
            ticks => [tame_watch_ticker:take(T, NowNs) || T <- Ticks],
            holders => [{Pid, name(Pid), What, SinceNs} || {Pid, What, SinceNs} <- Holders],
            looked_at => LookedAt,
            held => Held,
            monitor => monitor_state(State),
            long => [Slice || {_, Slice} <- Long],
            dirty => maps:keys(State#agent.dirty),
            long_left_out => State#agent.left_out,
            calls => calls(State#agent.tracer),
            cost_ns => lists:sum([
                State#agent.cost_ns, ScanNs | [tame_watch_ticker:cost_ns(T) || T <- Ticks]
            ])
        }},
    State#agent{long = [], long_len = 0, left_out = 0}.

calls(none) -> none;
calls(Tracer) -> tame_watch_tracer:take(Tracer).
