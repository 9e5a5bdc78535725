%% The scanner of `mix tame.watch': asks the processes of the watched node what they do, while a
%% dirty scheduler is busy or a ticker is overdue.
%%
%% No BIF says who runs on a dirty scheduler, so processes are asked. Only those that run are asked
%% twice; one that waits for a dirty thread is not running. A process in a dirty NIF answers at
%% once, with that NIF as its current function. A process in a NIF on a normal scheduler answers
%% when its slice is over, and then names the function that called the NIF. So the scanner writes
%% into its dictionary whom it `asks', and the agent reads there who holds a normal scheduler.
%%
%% Scanning takes at most 0.5 % of a core.
-module(tame_watch_scanner).

-export([nifs/0]).
-export([run/1]).
-export([seen/1]).

-export_type([holder/0]).

-type holder() :: {pid(), mfa() | garbage_collection, SinceNs :: integer()}.

%% The scanner looks for work every 200 ms. While there is some, it works for at most 0.5 ms at a
%% time, and rests for 200 times as long as it has worked.
-define(IDLE_MS, 200).
-define(SCAN_MS, 100).
-define(SCAN_NS, 500_000).
-define(REST, 200).
%% A process that takes longer to answer is at work in native code; that is its time and not ours.
-define(ANSWER_NS, 20_000).
%% A scan that takes longer than this was interrupted; the rest of its time is not ours.
-define(MOST_NS, 10_000_000).
%% How old the list of NIFs may be.
-define(NIFS_NS, 5_000_000_000).
%% A process that is charged more in a ms takes turns on a normal scheduler; one in a dirty NIF is
%% charged nothing.
-define(DIRTY_REDUCTIONS, 400).
-define(OVERDUE_NS, 50_000_000).
-define(HOLDERS, 50).

-type held() :: {
    mfa() | garbage_collection,
    SinceNs :: integer(),
    Reductions :: non_neg_integer(),
    SeenNs :: integer(),
    Certain :: boolean()
}.

-record(scan, {
    ticks :: [atomics:atomics_ref()],
    %% Those still to be asked of all the processes that there were.
    walk = [] :: [pid()],
    %% Those that were in a dirty NIF before, and are asked each time.
    often = [] :: [pid()],
    holders = #{} :: #{pid() => held()},
    nifs = #{} :: #{mfa() => []},
    nifs_at_ns = undefined :: undefined | integer(),
    loaded = 0 :: non_neg_integer()
}).

%% Every NIF that is loaded.
-spec nifs() -> [mfa()].
nifs() ->
    [{Module, Name, Arity} || Module <- erlang:loaded(), {Name, Arity} <- nifs_of(Module)].

nifs_of(Module) ->
    try erlang:get_module_info(Module, nifs) catch error:badarg -> [] end.

%% Scans for as long as the process lives. `look' wakes it early.
-spec run([atomics:atomics_ref()]) -> no_return().
run(Ticks) ->
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
    SpentNs = min(?MOST_NS, max(0, erlang:monotonic_time(nanosecond) - StartNs - get(waited_ns))),
    _ = put(cost_ns, get(cost_ns) + SpentNs),
    scan(Scanned, max(LeastMs, SpentNs * ?REST div 1_000_000)).

work_is_there(#scan{ticks = Ticks}) ->
    [Io, Cpu | _] = lists:reverse(erlang:statistics(active_tasks_all)),
    NowNs = erlang:monotonic_time(nanosecond),
    Io + Cpu > 0 orelse lists:any(
        fun(T) -> tame_watch_ticker:overdue_ns(T, NowNs) > ?OVERDUE_NS end, Ticks
    ).

%% The NIFs, listed again when modules have come or gone.
known(#scan{nifs_at_ns = AtNs} = State, NowNs) when AtNs =:= undefined; NowNs - AtNs > ?NIFS_NS ->
    case length(erlang:loaded()) of
        Loaded when Loaded =:= State#scan.loaded -> State#scan{nifs_at_ns = NowNs};
        Loaded ->
            Nifs = maps:from_list([{Nif, []} || Nif <- nifs()]),
            State#scan{nifs_at_ns = NowNs, loaded = Loaded, nifs = Nifs}
    end;
known(State, _Now_ns) ->
    State.

%% Those that were seen once first, then as many of the others as there is time for.
look(#scan{holders = Before, often = Often} = State, StartNs) ->
    LookAt = fun(Pid, Acc) -> look_at({Pid, Before}, Acc) end,
    Again = lists:foldl(LookAt, State#scan{holders = #{}}, Often),
    {Walk, All} =
        case State#scan.walk of
            [] -> Pids = processes(), {Pids, length(Pids)};
            Rest -> {Rest, erlang:system_info(process_count)}
        end,
    {Walked, Left} = walk(Walk, Before, Again, StartNs, 0),
    _ = put(looked_at, {length(Walk) - length(Left), All}),
    New = [Pid || Pid <- maps:keys(Walked#scan.holders), not lists:member(Pid, Often)],
    Walked#scan{walk = Left, often = lists:sublist(New ++ Often, ?HOLDERS)}.

walk([Pid | Rest], Before, #scan{holders = Holders, often = Often} = State, StartNs, N) when
    N rem 20 =/= 19
->
    case lists:member(Pid, Often) orelse map_size(Holders) >= ?HOLDERS of
        true -> walk(Rest, Before, State, StartNs, N + 1);
        false -> walk(Rest, Before, look_at({Pid, Before}, State), StartNs, N + 1)
    end;
walk(Pids, Before, State, StartNs, N) ->
    SpentNs = erlang:monotonic_time(nanosecond) - StartNs - get(waited_ns),
    case Pids =/= [] andalso SpentNs < ?SCAN_NS of
        true -> walk(Pids, Before, State, StartNs, N + 1);
        false -> {State, Pids}
    end.

look_at({Pid, Before}, #scan{holders = Holders} = State) ->
    case does(Pid, erlang:monotonic_time(nanosecond), State) of
        nothing -> State;
        Does ->
            Holder = holder(Does, Before, Pid, erlang:monotonic_time(nanosecond)),
            State#scan{holders = Holders#{Pid => Holder}}
    end.

%% Seen in the same function again, it is certain once it was charged nothing in between. Later it
%% may be, for a call that has ended.
holder({What, Reductions}, Before, Pid, NowNs) ->
    case Before of
        #{Pid := {What, SinceNs, ReductionsBefore, SeenNs, Certain}} ->
            Charged = Reductions - ReductionsBefore,
            Quiet = Charged * 1_000_000 =< ?DIRTY_REDUCTIONS * (NowNs - SeenNs),
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

%% ---- for the agent -----------------------------------------------------------------------------

%% What a scanner has seen, without waiting for it. looked_at: how many of how many processes it
%% asked in its last round; held: who has not answered it for 50 ms, and since when.
-spec seen(pid()) ->
    #{
        holders := [holder()],
        looked_at := none | {non_neg_integer(), non_neg_integer()},
        held := none | {pid(), SinceNs :: integer()},
        cost_ns := non_neg_integer()
    }.
seen(Scanner) ->
    {dictionary, Seen} = erlang:process_info(Scanner, dictionary),
    Get = fun(Key, Default) -> proplists:get_value(Key, Seen, Default) end,
    #{
        holders => Get(holders, []),
        looked_at => Get(looked_at, none),
        held => held(Get(asks, none), erlang:monotonic_time(nanosecond)),
        cost_ns => Get(cost_ns, 0)
    }.

held({Pid, AskedNs}, NowNs) when NowNs - AskedNs > ?OVERDUE_NS -> {Pid, AskedNs};
held(_, _NowNs) -> none.
