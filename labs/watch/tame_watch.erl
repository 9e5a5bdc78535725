%% What `mix tame.watch' puts into a running node: it looks on, answers once a second, and takes itself away.
%%
%% It is one module that needs nothing but kernel and stdlib, because it is sent over distribution to a node that has
%% neither tame nor Elixir. start/1 makes a keeper, whose name is tame_watch, and these, all linked to it:
%%
%%   tickers   one on each normal scheduler, waking every 100 ms: how late is neighbour delay
%%   scanner   asks processes what they do while a dirty scheduler is busy or a ticker overdue
%%   walls     asks the schedulers for their counters, and waits where one is held
%%   agent     takes long_schedule events, answers the watcher
%%   tracer    only for slices: the calls of one function, so many and no more
%%
%% The keeper ends all of them, and deletes and purges this module, when the watcher says so, dies, loses the connection
%% or does not ask for 15 s, when the time is up, and when one of them fails. What they changed in the VM (the counters
%% of wall time, the system monitor, tracing) hangs on their lives.
%%
%% Nothing here grows with what happens in the node: events are counted beyond a bound, scanning takes at most 0.5 % of a
%% core, and no process that answers the watcher waits for a process or scheduler that is held.
-module(tame_watch).

-export([start/1]).
-export([nifs/0]).

%% Internal.
-export([bucket/1]).

-export_type([options/0]).
-export_type([report/0]).

%% slices: the function whose calls are traced, and how many of them.
-type options() :: #{watcher := pid(), limit_ms := pos_integer(), slices => {mfa(), pos_integer()}}.

%% Times are of the node's monotonic clock. wall, queues, active: as erlang:statistics/1 says them; late: not all
%% schedulers have answered. ticks: of each ticker how many wake-ups, the longest delay and its histogram since the last
%% report. looked_at: of how many processes the scanner asked some, when it does. held: who does not answer the scanner.
-type report() :: #{
    at_ns := integer(),
    wall := late | {integer(), [{pos_integer(), non_neg_integer(), non_neg_integer()}], [non_neg_integer()], [non_neg_integer()]},
    processes := non_neg_integer(),
    ticks := [{Count :: non_neg_integer(), LongestNs :: non_neg_integer(), [{Bucket :: non_neg_integer(), Count :: pos_integer()}]}],
    holders := [{pid(), Name :: atom(), mfa() | garbage_collection, SinceNs :: integer()}],
    looked_at := none | {non_neg_integer(), non_neg_integer()},
    held := none | {pid(), SinceNs :: integer()},
    monitor := ok | {taken, pid() | port(), Name :: atom()},
    long := [{pid() | port(), Name :: atom(), non_neg_integer(), [mfa()]}],
    long_left_out := non_neg_integer(),
    calls := none | {tracing | done | {refused, term()}, Calls :: non_neg_integer(), Events :: [tuple()]},
    cost_ns := non_neg_integer()
}.

%% Each wake-up of an idle VM costs a scheduler a round of busy waiting besides, some 0.2 ms: at 20 ms that was 2.3 % of a
%% core with two schedulers.
-define(TICK_MS, 100).
-define(LONG_SCHEDULE_MS, 10).
%% The watcher asks once a second.
-define(SILENCE_MS, 15_000).
%% How long a report waits for the schedulers' counters.
-define(WALL_MS, 300).
%% Of a second: so many long_schedule events are told one by one, and so many of their processes asked.
-define(LONG, 100).
-define(ASKED, 20).
-define(HEAP_WORDS, 100_000).
-define(CALLBACKS, [{handle_call, 3}, {handle_cast, 2}, {handle_info, 2}, {handle_continue, 2}, {handle_event, 4}]).
%% The scanner looks whether there is work each 200 ms; while there is, it works for at most 0.5 ms at a time, and rests 200
%% times as long as it has worked.
-define(IDLE_MS, 200).
-define(SCAN_MS, 100).
-define(SCAN_NS, 500_000).
-define(REST, 200).
%% A process that takes longer to answer is at work in native code; that is its time and not ours.
-define(ANSWER_NS, 20_000).
%% A step of ours that takes longer than this was interrupted, by the operating system or for others' turns.
-define(STEP_NS, 1_000_000).
-define(TICK_NS, 20_000).
-define(NIFS_NS, 5_000_000_000).
%% A process that is charged more in a ms turns on a normal scheduler; one that is in a dirty NIF is charged nothing.
-define(DIRTY_REDUCTIONS, 400).
-define(OVERDUE_NS, 50_000_000).
-define(HOLDERS, 50).
%% A call of which nobody sees the end, or one that hops on and on, must not fill the memory.
-define(TRACE_EVENTS, 20_000).

%% Of a ticker's atomics: when it wakes next, its longest delay, its time; then the histogram.
-define(NEXT, 1).
-define(LONGEST, 2).
-define(COST, 3).
-define(BUCKETS, 3).
-define(BUCKET_COUNT, 120).

%% ---- for the watcher, by erpc ----------------------------------------------------------------

%% Then the watcher sends the keeper {tame_watch, ask, self(), Ref} and gets {Ref, report()}, what was seen since the last
%% one; and {tame_watch, stop}. Nothing of this waits in code of ours, which is going to be purged.

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

%% Every NIF that is loaded.
-spec nifs() -> [mfa()].
nifs() ->
    [{Module, Name, Arity} || Module <- erlang:loaded(), {Name, Arity} <- nifs_of(Module)].

nifs_of(Module) ->
    try erlang:get_module_info(Module, nifs) catch error:badarg -> [] end.

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
        {Ticks, spawn_at(N, fun() -> ticker(Ticks) end)}
     || {N, Ticks} <- [{N, atomics:new(?BUCKETS + ?BUCKET_COUNT, [])} || N <- schedulers()]
    ],
    Ticks = [T || {T, _} <- Tickers],
    Scanner = spawn_opt(fun() -> scanner(Ticks) end, [link, {priority, high}]),
    Walls = spawn_opt(fun walls/0, [link, {priority, high}]),
    Tracer =
        case Options of
            #{slices := {Function, Calls}} ->
                spawn_opt(fun() -> tracer(Function, Calls) end, [link, {priority, high}, {message_queue_data, off_heap}]);
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
    remove(),
    exit({shutdown, Why}).

schedulers() -> lists:seq(1, erlang:system_info(schedulers_online)).

%% {scheduler, N} is not documented. It keeps a process on that scheduler; without it the VM would move it away from
%% one that is held.
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

%% By a process that runs no code of ours, because to purge ends those that do.
remove() ->
    _ = code:purge(?MODULE),
    _ = code:delete(?MODULE),
    _ = spawn(code, purge, [?MODULE]),
    ok.

%% ---- neighbours ----------------------------------------------------------------------------------

ticker(Ticks) ->
    tick((erlang:monotonic_time(millisecond) + 1 + ?TICK_MS) * 1_000_000, Ticks).

tick(PlannedNs, Ticks) ->
    ok = atomics:put(Ticks, ?NEXT, PlannedNs),
    Timer = erlang:start_timer(PlannedNs div 1_000_000, self(), tick, [{abs, true}]),
    receive {timeout, Timer, tick} -> ok end,
    NowNs = erlang:monotonic_time(nanosecond),
    ok = record_longest(Ticks, NowNs - PlannedNs),
    NextNs = record(Ticks, PlannedNs, NowNs),
    ok = atomics:add(Ticks, ?COST, min(?TICK_NS, erlang:monotonic_time(nanosecond) - NowNs)),
    tick(NextNs, Ticks).

record_longest(Ticks, LateNs) ->
    case atomics:get(Ticks, ?LONGEST) of
        LongestNs when LongestNs >= LateNs -> ok;
        _ -> atomics:put(Ticks, ?LONGEST, LateNs)
    end.

%% A wake-up that was missed counts too, with its own lateness.
record(Ticks, PlannedNs, NowNs) when PlannedNs > NowNs ->
    _ = Ticks,
    PlannedNs;
record(Ticks, PlannedNs, NowNs) ->
    ok = atomics:add(Ticks, ?BUCKETS + 1 + bucket((NowNs - PlannedNs) div 1000), 1),
    record(Ticks, PlannedNs + ?TICK_MS * 1_000_000, NowNs).

%% Four buckets for each doubling of a time in µs: the lowest of bucket B is B up to 4, then
%% (4 + B rem 4) bsl (B div 4 - 1). Pure.
-spec bucket(non_neg_integer()) -> non_neg_integer().
bucket(Us) when Us < 4 -> Us;
bucket(Us) -> bucket(Us, 0).

bucket(Us, Shift) when Us >= 8 -> bucket(Us bsr 1, Shift + 1);
bucket(Us, Shift) -> min(?BUCKET_COUNT - 1, 4 * Shift + Us).

%% What a ticker saw since the last time. A wake-up that is overdue counts with its delay so far, as longest.
taken(Ticks, NowNs) ->
    LongestNs = atomics:exchange(Ticks, ?LONGEST, 0),
    OverdueNs = max(0, NowNs - atomics:get(Ticks, ?NEXT)),
    Buckets = [
        {B, Count}
     || B <- lists:seq(0, ?BUCKET_COUNT - 1),
        Count <- [atomics:exchange(Ticks, ?BUCKETS + 1 + B, 0)],
        Count > 0
    ],
    {lists:sum([Count || {_, Count} <- Buckets]), max(LongestNs, OverdueNs), Buckets}.

%% ---- who holds a dirty scheduler -------------------------------------------------------------------

%% No BIF says who runs on one, so processes are asked; only those that run are asked twice, and one that waits for a dirty
%% thread is not running. Who is in a dirty NIF answers at once, with that NIF as current function. Who is in a NIF on a normal scheduler does not answer
%% before its slice ends, and then names the function that called it: so `asks' in the dictionary, which the agent reads,
%% says who holds a normal scheduler.
-record(scan, {
    ticks :: [atomics:atomics_ref()],
    %% Those still to be asked of all the processes that there were.
    walk = [] :: [pid()],
    %% Those that were in a dirty NIF before, and are asked each time.
    often = [] :: [pid()],
    holders = #{} :: #{pid() => {mfa() | garbage_collection, SinceNs :: integer(), non_neg_integer(), SeenNs :: integer(), boolean()}},
    nifs = #{} :: #{mfa() => []},
    nifs_at_ns = undefined :: undefined | integer(),
    loaded = 0 :: non_neg_integer()
}).

scanner(Ticks) ->
    _ = put(cost_ns, 0),
    _ = put(holders, []),
    scan(#scan{ticks = Ticks}, ?IDLE_MS).

scan(State, RestMs) ->
    %% The timers of a held scheduler stand still, so the agent wakes us too.
    receive look -> ok after RestMs -> ok end,
    StartNs = erlang:monotonic_time(nanosecond),
    _ = put(waited_ns, 0),
    {Scanned, LeastMs} =
        case work_is_there(State) of
            true ->
                {look(known(State, StartNs), StartNs), ?SCAN_MS};
            false ->
                _ = put(looked_at, none),
                {State#scan{holders = #{}, walk = [], often = []}, ?IDLE_MS}
        end,
    _ = put(holders, certain(Scanned)),
    SpentNs = min(10 * ?STEP_NS, max(0, erlang:monotonic_time(nanosecond) - StartNs - get(waited_ns))),
    _ = put(cost_ns, get(cost_ns) + SpentNs),
    scan(Scanned, max(LeastMs, SpentNs * ?REST div 1_000_000)).

work_is_there(#scan{ticks = Ticks}) ->
    [Io, Cpu | _] = lists:reverse(erlang:statistics(active_tasks_all)),
    NowNs = erlang:monotonic_time(nanosecond),
    Io + Cpu > 0 orelse lists:any(fun(T) -> NowNs - atomics:get(T, ?NEXT) > ?OVERDUE_NS end, Ticks).

%% The NIFs, anew when modules have come or gone.
known(#scan{nifs_at_ns = AtNs} = State, NowNs) when AtNs =:= undefined; NowNs - AtNs > ?NIFS_NS ->
    case length(erlang:loaded()) of
        Loaded when Loaded =:= State#scan.loaded -> State#scan{nifs_at_ns = NowNs};
        Loaded -> State#scan{nifs_at_ns = NowNs, loaded = Loaded, nifs = maps:from_list([{Nif, []} || Nif <- nifs()])}
    end;
known(State, _Now_ns) ->
    State.

%% Those that were seen once first, then as many of the others as there is time for.
look(#scan{holders = Before, often = Often} = State, StartNs) ->
    Again = lists:foldl(fun(Pid, Acc) -> look_at({Pid, Before}, Acc) end, State#scan{holders = #{}}, Often),
    {Walk, All} =
        case State#scan.walk of
            [] -> Pids = processes(), {Pids, length(Pids)};
            Rest -> {Rest, erlang:system_info(process_count)}
        end,
    {Walked, Left} = walk(Walk, Before, Again, StartNs, 0),
    _ = put(looked_at, {length(Walk) - length(Left), All}),
    New = [Pid || Pid <- maps:keys(Walked#scan.holders), not lists:member(Pid, Often)],
    Walked#scan{walk = Left, often = lists:sublist(New ++ Often, ?HOLDERS)}.

walk([Pid | Rest], Before, #scan{holders = Holders, often = Often} = State, StartNs, N) when N rem 20 =/= 19 ->
    case lists:member(Pid, Often) orelse map_size(Holders) >= ?HOLDERS of
        true -> walk(Rest, Before, State, StartNs, N + 1);
        false -> walk(Rest, Before, look_at({Pid, Before}, State), StartNs, N + 1)
    end;
walk(Pids, Before, State, StartNs, N) ->
    case Pids =/= [] andalso erlang:monotonic_time(nanosecond) - StartNs - get(waited_ns) < ?SCAN_NS of
        true -> walk(Pids, Before, State, StartNs, N + 1);
        false -> {State, Pids}
    end.

look_at({Pid, Before}, #scan{holders = Holders} = State) ->
    case does(Pid, erlang:monotonic_time(nanosecond), State) of
        nothing -> State;
        Does -> State#scan{holders = Holders#{Pid => holder(Does, Before, Pid, erlang:monotonic_time(nanosecond))}}
    end.

%% Seen in the same function again, it is certain once it was charged nothing in between. Later it may be, for a call that
%% has ended.
holder({What, Reductions}, Before, Pid, NowNs) ->
    case Before of
        #{Pid := {What, SinceNs, ReductionsBefore, SeenNs, Certain}} ->
            Quiet = (Reductions - ReductionsBefore) * 1_000_000 =< ?DIRTY_REDUCTIONS * (NowNs - SeenNs),
            case Certain orelse Quiet of
                true -> {What, SinceNs, Reductions, NowNs, true};
                false -> {What, NowNs, Reductions, NowNs, false}
            end;
        _ ->
            {What, NowNs, Reductions, NowNs, false}
    end.

does(Pid, _Asked_ns, _State) when Pid =:= self() ->
    nothing;
does(Pid, AskedNs, State) ->
    _ = put(asks, {Pid, AskedNs}),
    Does =
        case erlang:process_info(Pid, status) of
            {status, garbage_collecting} -> {garbage_collection, 0};
            {status, running} -> at_work(Pid, State);
            _ -> nothing
        end,
    _ = erase(asks),
    TookNs = erlang:monotonic_time(nanosecond) - AskedNs,
    _ = put(waited_ns, get(waited_ns) + max(0, TookNs - ?ANSWER_NS)),
    Does.

at_work(Pid, State) ->
    case erlang:process_info(Pid, [current_function, reductions]) of
        [{current_function, {_, _, _} = Function}, {reductions, Reductions}] ->
            case is_native(Function, State) of
                true -> {Function, Reductions};
                false -> nothing
            end;
        _ ->
            nothing
    end.

%% A NIF, or what a NIF has scheduled under a name of its own, which its module does not have.
is_native({Module, Name, Arity} = Function, #scan{nifs = Nifs}) ->
    is_map_key(Function, Nifs) orelse
        (nifs_of(Module) =/= [] andalso
            not lists:member({Name, Arity}, erlang:get_module_info(Module, functions))).

certain(#scan{holders = Holders}) ->
    [{Pid, What, SinceNs} || {Pid, {What, SinceNs, _, _, true}} <- maps:to_list(Holders)].

%% ---- the schedulers' counters ------------------------------------------------------------------------

%% A scheduler that is held does not answer, so nobody but this process waits for it. The flag is taken back by the VM
%% when the process ends.
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

%% ---- the agent -----------------------------------------------------------------------------------------

-record(agent, {
    ticks :: [atomics:atomics_ref()],
    scanner :: pid(),
    walls :: pid(),
    tracer :: none | pid(),
    session = none :: none | {module(), term()},
    %% A report that waits for the counters; whether the walls still owe an answer.
    waiting = none :: none | {pid(), reference(), reference()},
    owed = false :: boolean(),
    long = [] :: [{reference(), pid() | port(), atom(), non_neg_integer(), [mfa()]}],
    long_len = 0 :: non_neg_integer(),
    left_out = 0 :: non_neg_integer(),
    cost_ns = 0 :: non_neg_integer()
}).

agent(Ticks, Scanner, Walls, Tracer) ->
    serve(monitored(#agent{ticks = Ticks, scanner = Scanner, walls = Walls, tracer = Tracer})).

%% From OTP 28 on a session has a monitor of its own. Before there is one for the node: it is not taken from somebody.
monitored(State) ->
    Trace = trace,
    case code:ensure_loaded(Trace) =:= {module, Trace} andalso erlang:function_exported(Trace, system, 3) of
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
            serve(Served#agent{cost_ns = CostNs + min(?STEP_NS, erlang:monotonic_time(nanosecond) - StartNs)})
    end.

serve({?MODULE, ask, From, Ref}, #agent{owed = true} = State) ->
    State#agent.scanner ! look,
    report(From, Ref, late, State);
serve({?MODULE, ask, From, Ref}, #agent{walls = Walls} = State) ->
    Walls ! {self(), wall},
    State#agent.scanner ! look,
    Timer = erlang:start_timer(?WALL_MS, self(), wall),
    State#agent{waiting = {From, Ref, Timer}, owed = true};
serve({Walls, Wall}, #agent{walls = Walls, waiting = Waiting} = State) ->
    case Waiting of
        {From, Ref, Timer} ->
            _ = erlang:cancel_timer(Timer),
            report(From, Ref, Wall, State#agent{waiting = none, owed = false});
        none ->
            State#agent{owed = false}
    end;
serve({timeout, Timer, wall}, #agent{waiting = {From, Ref, Timer}} = State) ->
    report(From, Ref, late, State#agent{waiting = none});
serve({monitor, Who, long_schedule, Facts}, #agent{long_len = Len} = State) when Len < ?LONG ->
    {timeout, Ms} = lists:keyfind(timeout, 1, Facts),
    Functions = [F || Key <- [out, in], {_, {_, _, _} = F} <- [lists:keyfind(Key, 1, Facts)]],
    Id = make_ref(),
    _ = is_pid(Who) andalso Len < ?ASKED andalso asked(self(), Id, Who),
    State#agent{long = [{Id, Who, undefined, Ms, Functions} | State#agent.long], long_len = Len + 1};
serve({monitor, _, long_schedule, _}, #agent{left_out = LeftOut} = State) ->
    State#agent{left_out = LeftOut + 1};
serve({asked, Id, Name, More}, #agent{long = Long} = State) ->
    case lists:keyfind(Id, 1, Long) of
        {Id, Who, _, Ms, Functions} ->
            State#agent{long = lists:keyreplace(Id, 1, Long, {Id, Who, Name, Ms, Functions ++ More})};
        false ->
            State
    end;
serve(_Late, State) ->
    State.

%% The process may be in its next long slice already, so somebody else waits for its answer. What it has on its stack
%% may be the function that called the NIF; of a gen_server that has returned to its loop only its callbacks are left.
asked(Agent, Id, Pid) ->
    spawn_link(fun() ->
        case erlang:process_info(Pid, [current_stacktrace, registered_name, total_heap_size]) of
            [{_, Stack}, {_, Name}, {_, Words}] ->
                Functions = [{M, F, A} || {M, F, A, _} <- Stack, is_integer(A)] ++ callbacks(Pid, Words),
                Agent ! {asked, Id, case Name of [] -> undefined; _ -> Name end, Functions};
            _ ->
                gone
        end
    end).

%% To read the dictionary copies all of it, so only of a small process.
callbacks(Pid, Words) when Words < ?HEAP_WORDS ->
    case erlang:process_info(Pid, dictionary) of
        {dictionary, Entries} ->
            case lists:keyfind('$initial_call', 1, Entries) of
                {_, {Module, init, 1}} -> [{Module, Callback, Arity} || {Callback, Arity} <- ?CALLBACKS];
                _ -> []
            end;
        undefined ->
            []
    end;
callbacks(_Pid, _Words) ->
    [].

report(From, Ref, Wall, #agent{ticks = Ticks, scanner = Scanner} = State) ->
    NowNs = erlang:monotonic_time(nanosecond),
    {dictionary, Seen} = erlang:process_info(Scanner, dictionary),
    Get = fun(Key, Default) -> proplists:get_value(Key, Seen, Default) end,
    From !
        {Ref, #{
            at_ns => NowNs,
            wall => Wall,
            processes => erlang:system_info(process_count),
            ticks => [taken(T, NowNs) || T <- Ticks],
            holders => [{Pid, name(Pid), What, SinceNs} || {Pid, What, SinceNs} <- Get(holders, [])],
            looked_at => Get(looked_at, none),
            held => held(Get(asks, none), NowNs),
            monitor => monitor_state(State),
            long => [{Who, Name, Ms, Functions} || {_, Who, Name, Ms, Functions} <- lists:reverse(State#agent.long)],
            long_left_out => State#agent.left_out,
            calls => calls(State#agent.tracer),
            cost_ns => State#agent.cost_ns + Get(cost_ns, 0) + lists:sum([atomics:get(T, ?COST) || T <- Ticks])
        }},
    State#agent{long = [], long_len = 0, left_out = 0}.

held({Pid, AskedNs}, NowNs) when NowNs - AskedNs > ?OVERDUE_NS -> {Pid, AskedNs};
held(_, _Now_ns) -> none.

%% ---- slices ------------------------------------------------------------------------------------------------

%% A call of the function switches on the `running' events of its caller, and nobody else's; its return, or the bound,
%% ends them. The events are judged by the watcher.
-record(calls, {
    function :: mfa(),
    left :: non_neg_integer(),
    state = tracing :: tracing | done | {refused, term()},
    session = none :: none | {module(), term()},
    closing = false :: boolean(),
    callers = #{} :: #{pid() => []},
    seen = 0 :: non_neg_integer(),
    events = [] :: [tuple()],
    len = 0 :: non_neg_integer()
}).

%% Arguments and values are not told: they may be of any size.
-define(CALLS, [call, arity, return_to, scheduler_id, monotonic_timestamp]).

calls(none) ->
    none;
calls(Tracer) ->
    Tracer ! {self(), calls},
    receive {Tracer, Calls} -> Calls after 1000 -> {tracing, 0, []} end.

tracer(Function, Calls) ->
    _ = process_flag(trap_exit, true),
    trace(trace_on(#calls{function = Function, left = Calls})).

trace(#calls{callers = Callers} = State) ->
    receive
        {'EXIT', _, _} ->
            trace_off(State);
        {Agent, calls} when is_pid(Agent) ->
            Agent ! {self(), {State#calls.state, State#calls.seen, lists:reverse(State#calls.events)}},
            trace(State#calls{events = [], len = 0, seen = 0});
        %% One that is called within itself is one call.
        {trace_ts, Pid, call, _, Scheduler, Time} when State#calls.left > 0, not is_map_key(Pid, Callers) ->
            Counted = State#calls{left = State#calls.left - 1, seen = State#calls.seen + 1, callers = Callers#{Pid => []}},
            trace(bounded(keep_event({call, Pid, Scheduler, Time}, Counted)));
        {trace_ts, Pid, call, _, _, _} ->
            _ = is_map_key(Pid, Callers) orelse running_off(Pid, State),
            trace(State);
        {trace_ts, Pid, return_to, Function, Scheduler, Time} when is_map_key(Pid, Callers), Function =/= State#calls.function ->
            running_off(Pid, State),
            Returned = State#calls{callers = maps:remove(Pid, Callers)},
            trace(bounded(keep_event({return, Pid, Scheduler, Time}, Returned)));
        {trace_ts, Pid, Event, _, Scheduler, Time} when is_map_key(Pid, Callers), Event =:= in orelse Event =:= out ->
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

%% In a session of its own from OTP 27 on. Before, a process has one tracer and a function one pattern: what somebody
%% else traces is left alone.
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

%% Without sessions process by process: on OTP 25 to switch off a set of processes (all, existing, new) ends the VM with
%% a segmentation fault when one of them is in a dirty NIF. New processes get the flag of `all' no more with the tracer's
%% death, which is this one's.
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
