%% Is told of requests in batches, and has each handled in a process of its own, which takes it, or
%% takes and handles them here, one after the other.
%%
%% A request that nobody refers to any more is answered 500 by the garbage collector. So where this
%% one takes them, and a process that sends an answer for it was killed, it collects its garbage: it
%% may be the last that refers to the request.
-module(tame_http_acceptor).

-export([start_link/2]).
%% Internal.
-export([init/3]).
-export([loop/1]).
-export([system_continue/3]).
-export([system_terminate/4]).
-export([system_code_change/4]).

-record(state, {
    parent :: pid(),
    acceptor :: tame_http_nif:acceptor(),
    run :: process | acceptor,
    handler :: tame_http:handler()
}).

%% After this long without a request, bodies that are garbage go.
-define(IDLE_MS, 2000).

%% Room for the terms of some hundred requests: with the VM's own first heap it would collect its
%% garbage at every second one.
-define(HEAP_WORDS, 16384).

-spec start_link(pid(), tame_http_options:checked()) -> {ok, pid()} | {error, term()}.
start_link(Sup, Options) -> proc_lib:start_link(?MODULE, init, [self(), Sup, Options]).

-spec init(pid(), pid(), tame_http_options:checked()) -> no_return().
init(Parent, Sup, #{run := Run, handler := Handler}) ->
    %% One that sends an answer is linked: it ends with this, and if it is killed, that is seen.
    process_flag(trap_exit, true),
    _ = process_flag(min_heap_size, ?HEAP_WORDS),
    {ok, #{handle := Handle, owner := Owner}} = tame_http_servers:find(Sup),
    ok = tame_http_server:has_acceptor(Owner, self()),
    Acceptor = join(Handle, Owner),
    proc_lib:init_ack(Parent, {ok, self()}),
    loop(#state{parent = Parent, acceptor = Acceptor, run = Run, handler = Handler}).

%% Where the native half is gone, the owner ends when it knows, and we with it: to fail sooner would
%% only use up what restarts a supervisor allows.
join(Handle, Owner) ->
    try
        tame_http_nif:join(Handle)
    catch
        error:_ ->
            Monitor = monitor(process, Owner),
            ok = tame_http_server:look(Owner),
            receive
                {'DOWN', Monitor, process, Owner, Reason} -> exit(Reason)
            end
    end.

-spec loop(#state{}) -> no_return().
loop(#state{parent = Parent, acceptor = Acceptor} = State) ->
    receive
        {tame_http, requests, N} ->
            batch(N, State),
            ?MODULE:loop(State);
        {'EXIT', Parent, Reason} ->
            exit(Reason);
        {'EXIT', _, normal} ->
            loop(State);
        {'EXIT', _, _} ->
            killed(Parent),
            loop(State);
        {system, From, Request} ->
            sys:handle_system_msg(Request, From, Parent, ?MODULE, [], State);
        _ ->
            loop(State)
    after ?IDLE_MS ->
        batch(0, State),
        case tame_http_nif:credit(Acceptor, 0) of
            0 -> proc_lib:hibernate(?MODULE, loop, [State]);
            %% The VM may have no process for it yet.
            _ -> loop(State)
        end
    end.

batch(N, #state{acceptor = Acceptor} = State) ->
    Events = tame_telemetry:is_loaded(),
    ok = batch(N, Events, State),
    %% A process that was killed before it could take its request has left it here.
    batch(tame_http_nif:credit(Acceptor, N), Events, State).

batch(0, _Events, _State) ->
    ok;
batch(N, Events, #state{run = process, acceptor = Acceptor, handler = Handler} = State) ->
    _ = tame_http_requests:spawn(fun() -> tame_http_answer:handle(Acceptor, Handler, Events) end),
    batch(N - 1, Events, State);
batch(N, Events, #state{run = acceptor, acceptor = Acceptor, handler = Handler} = State) ->
    ok = tame_http_answer:handle_here(Acceptor, Handler, Events),
    batch(N - 1, Events, State).

%% Many may have been: one collection for those that are known.
killed(Parent) ->
    receive
        {'EXIT', Pid, Reason} when Reason =/= normal, Pid =/= Parent -> killed(Parent)
    after 0 ->
        true = erlang:garbage_collect(),
        ok
    end.

-spec system_continue(pid(), [sys:dbg_opt()], #state{}) -> no_return().
system_continue(_Parent, _Debug, State) -> loop(State).

-spec system_terminate(term(), pid(), [sys:dbg_opt()], #state{}) -> no_return().
system_terminate(Reason, _Parent, _Debug, _State) -> exit(Reason).

-spec system_code_change(#state{}, module(), term(), term()) -> {ok, #state{}}.
system_code_change(State, _Module, _OldVsn, _Extra) -> {ok, State}.
