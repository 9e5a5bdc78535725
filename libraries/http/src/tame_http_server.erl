%% Owns a native server. When this process ends, however it does, its sockets and threads end.
%%
%% An isolated native half may end alone: the references that Erlang has are no good then. So this
%% looks whether it is still there, and ends if not, for the supervisor to start all anew.
%%
%% The table of servers ends with the application tame_http. A server that somebody else supervises
%% ends with it, since nobody finds it any more.
-module(tame_http_server).
-behaviour(gen_server).

-export([start_link/2]).
-export([close/2]).
-export([look/1]).
-export([has_acceptor/2]).
%% Internal.
-export([init/1]).
-export([handle_call/3]).
-export([handle_cast/2]).
-export([handle_info/2]).
-export([terminate/2]).

%% More than a server has at a time.
-define(ACCEPTORS, 256).

-record(state, {
    sup :: pid(),
    handle :: tame_http_nif:server(),
    table :: reference(),
    %% Those that live, and those that have left a process, for the time when the table is gone.
    acceptors = [] :: [pid()],
    %% When there are more, it looks which of them are needed.
    most = ?ACCEPTORS :: pos_integer(),
    %% Who waits for the end of the threads; ended when they have.
    closing = [] :: [gen_server:from()] | ended
}).

%% Threads look at their orders between two events; this is for a machine that is overloaded.
-define(CLOSE_SLACK_MS, 5000).

-define(LOOK_MS, 1000).

%% Less than a supervisor waits for its children.
-define(END_MS, 2000).

%% A server that starts anew may find the port of the one before still open, for as long as its
%% threads take to end.
-define(TRIES, 100).
-define(TRY_MS, 50).

-spec start_link(pid(), tame_http_options:checked()) -> {ok, pid()} | {error, term()}.
start_link(Sup, Options) -> gen_server:start_link(?MODULE, {Sup, Options}, []).

%% No new connection; those there end with their requests, and all of them after that number of
%% milliseconds.
-spec close(pid(), non_neg_integer()) -> ok.
close(Server, GraceMs) -> gen_server:call(Server, {close, GraceMs}, GraceMs + ?CLOSE_SLACK_MS).

%% Looks now whether the native half is there, and ends if it is not.
-spec look(pid()) -> ok.
look(Server) ->
    Server ! look,
    ok.

%% Known to the table as well from then on, before it starts anything.
-spec has_acceptor(pid(), pid()) -> ok.
has_acceptor(Server, Acceptor) -> gen_server:call(Server, {has_acceptor, Acceptor}, infinity).

-spec init({pid(), tame_http_options:checked()}) -> {ok, #state{}} | {stop, term()}.
init({Sup, Options}) ->
    process_flag(trap_exit, true),
    case tame_http_servers:monitor() of
        {ok, Table} -> init(Sup, Options, Table);
        error -> {stop, {not_started, tame_http}}
    end.

init(Sup, Options, Table) ->
    %% What an owner that was killed, or a whole server, has left.
    {Acceptors, Ports} = tame_http_servers:take_dead(),
    ok = tame_http_requests:end_all(tame_http_servers:take_acceptors(Sup) ++ Acceptors),
    #{port := Wanted} = Options,
    Tries =
        case tame_http_servers:find(Sup) =/= error orelse lists:member(Wanted, Ports) of
            true -> ?TRIES;
            false -> 1
        end,
    case open(Options, Tries) of
        {ok, Handle, Port} ->
            #{static := Static} = Options,
            ok = tame_http_nif:set_static(Handle, tame_http_options:static(Static)),
            Entry = #{sup => Sup, owner => self(), handle => Handle, port => Port},
            ok = tame_http_servers:insert(Entry),
            {ok, _} = timer:send_interval(?LOOK_MS, look),
            {ok, #state{sup = Sup, handle = Handle, table = Table}};
        {error, Reason} ->
            {stop, Reason}
    end.

open(Options, Tries) ->
    case open(Options) of
        {error, {listen, eaddrinuse, _}} when Tries > 1 ->
            timer:sleep(?TRY_MS),
            open(Options, Tries - 1);
        Result ->
            Result
    end.

open(Options) ->
    case tame_http_options:native(Options) of
        {ok, Native} ->
            case tame_http_nif:open(Native) of
                {ok, Handle, Port} -> {ok, Handle, Port};
                {error, {tls, Text}} -> {error, {tls, Text}};
                {error, {Errno, Text}} -> {error, {listen, tame_http_options:posix(Errno), Text}}
            end;
        {error, Reason} ->
            {error, Reason}
    end.

-spec handle_call(term(), gen_server:from(), #state{}) ->
    {reply, ok, #state{}} | {noreply, #state{}}.
handle_call({has_acceptor, Acceptor}, _From, #state{sup = Sup, acceptors = Acceptors} = State) ->
    ok = tame_http_servers:insert_acceptor(Sup, Acceptor),
    {reply, ok, forget_ended(State#state{acceptors = [Acceptor | Acceptors]})};
handle_call({close, _}, _From, #state{closing = ended} = State) ->
    {reply, ok, State};
handle_call({close, GraceMs}, From, #state{handle = Handle, closing = Waiting} = State) ->
    ok = close_native(Handle, GraceMs),
    {noreply, State#state{closing = [From | Waiting]}}.

%% Seldom, however often they end: it looks at each process of the VM.
forget_ended(#state{acceptors = Acceptors, most = Most} = State) when length(Acceptors) =< Most ->
    State;
forget_ended(#state{acceptors = Acceptors} = State) ->
    {Needed, Others} = tame_http_requests:needed(Acceptors),
    ok = tame_http_servers:delete_acceptors(Others),
    State#state{acceptors = Needed, most = max(?ACCEPTORS, 2 * length(Needed))}.

close_native(Handle, GraceMs) ->
    try
        tame_http_nif:close(Handle, GraceMs)
    catch
        %% Its threads are gone already.
        error:_ ->
            self() ! {tame_http, stopped},
            ok
    end.

%% Other errors are those of a host that is about to start, and pass.
is_there(Handle) ->
    try tame_http_nif:info(Handle) of
        _ -> true
    catch
        error:badarg -> false;
        error:_ -> true
    end.

-spec handle_cast(term(), #state{}) -> {noreply, #state{}}.
handle_cast(_, State) -> {noreply, State}.

-spec handle_info(term(), #state{}) -> {noreply, #state{}} | {stop, term(), #state{}}.
handle_info(look, #state{handle = Handle, closing = []} = State) ->
    case is_there(Handle) of
        true -> {noreply, State};
        false -> {stop, native_half_gone, State}
    end;
handle_info({'DOWN', Table, process, _, _}, #state{sup = Sup, table = Table} = State) ->
    ok = tame_http_server_sup:stop(Sup, {shutdown, {not_started, tame_http}}),
    {noreply, State};
handle_info({tame_http, stopped}, #state{closing = Waiting} = State) when Waiting =/= [] ->
    _ = is_list(Waiting) andalso [gen_server:reply(From, ok) || From <- Waiting],
    {noreply, State#state{closing = ended}};
handle_info({tame_http, stopped}, State) ->
    {stop, io_threads_ended, State#state{closing = ended}};
handle_info({tame_http, panicked, Text}, State) ->
    {stop, {io_thread_panicked, Text}, State};
handle_info({tame_http, contained, Text}, State) ->
    Format = "tame_http: a request was answered 500 for a defect of the native half: ~ts",
    logger:error(Format, [Text]),
    {noreply, State};
handle_info(_, State) ->
    {noreply, State}.

-spec terminate(term(), #state{}) -> ok.
terminate(native_half_gone, _State) ->
    ok;
terminate(Reason, #state{sup = Sup, handle = Handle, acceptors = Acceptors} = State) ->
    ok = close_native(Handle, 0),
    case Reason =/= shutdown andalso is_process_alive(Sup) of
        true ->
            %% It starts anew, and its place in the table says so. Its acceptors end first.
            ok;
        false ->
            %% As long as the table has it, the next one waits for its port.
            ok = threads_end(State),
            ok = tame_http_servers:delete(Sup),
            tame_http_requests:end_all(Acceptors)
    end.

threads_end(#state{closing = ended}) ->
    ok;
threads_end(_) ->
    receive
        {tame_http, stopped} -> ok
    after ?END_MS -> ok
    end.
