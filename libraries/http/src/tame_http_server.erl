%% Owns a native server. When this process ends, however it does, its sockets and threads end.
-module(tame_http_server).
-behaviour(gen_server).

-export([start_link/2]).
-export([close/2]).
%% Internal.
-export([init/1]).
-export([handle_call/3]).
-export([handle_cast/2]).
-export([handle_info/2]).
-export([terminate/2]).

-record(state, {
    sup :: pid(),
    handle :: tame_http_nif:server(),
    %% Who waits for the end of the threads; ended when they have.
    closing = [] :: [gen_server:from()] | ended
}).

%% Threads look at their orders between two events; this is for a machine that is overloaded.
-define(CLOSE_SLACK_MS, 5000).

-spec start_link(pid(), tame_http_options:checked()) -> {ok, pid()} | {error, term()}.
start_link(Sup, Options) -> gen_server:start_link(?MODULE, {Sup, Options}, []).

%% No new connection; those there end with their requests, and all of them after that number of
%% milliseconds.
-spec close(pid(), non_neg_integer()) -> ok.
close(Server, GraceMs) -> gen_server:call(Server, {close, GraceMs}, GraceMs + ?CLOSE_SLACK_MS).

-spec init({pid(), tame_http_options:checked()}) -> {ok, #state{}} | {stop, term()}.
init({Sup, Options}) ->
    process_flag(trap_exit, true),
    case open(Options) of
        {ok, Handle, Port} ->
            #{static := Static} = Options,
            ok = tame_http_nif:set_static(Handle, tame_http_options:static(Static)),
            Entry = #{sup => Sup, owner => self(), handle => Handle, port => Port},
            ok = tame_http_servers:insert(Entry),
            {ok, #state{sup = Sup, handle = Handle}};
        {error, Reason} ->
            {stop, Reason}
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
handle_call({close, _}, _From, #state{closing = ended} = State) ->
    {reply, ok, State};
handle_call({close, GraceMs}, From, #state{handle = Handle, closing = Waiting} = State) ->
    ok = tame_http_nif:close(Handle, GraceMs),
    {noreply, State#state{closing = [From | Waiting]}}.

-spec handle_cast(term(), #state{}) -> {noreply, #state{}}.
handle_cast(_, State) -> {noreply, State}.

-spec handle_info(term(), #state{}) -> {noreply, #state{}} | {stop, term(), #state{}}.
handle_info({tame_http, stopped}, #state{closing = Waiting} = State) when Waiting =/= [] ->
    _ = is_list(Waiting) andalso [gen_server:reply(From, ok) || From <- Waiting],
    {noreply, State#state{closing = ended}};
handle_info({tame_http, stopped}, State) ->
    {stop, io_threads_ended, State};
handle_info({tame_http, panicked, Text}, State) ->
    {stop, {io_thread_panicked, Text}, State};
handle_info({tame_http, contained, Text}, State) ->
    Format = "tame_http: a request was answered 500 for a defect of the native half: ~ts",
    logger:error(Format, [Text]),
    {noreply, State};
handle_info(_, State) ->
    {noreply, State}.

-spec terminate(term(), #state{}) -> ok.
terminate(_Reason, #state{sup = Sup, handle = Handle}) ->
    ok = tame_http_servers:delete(Sup),
    ok = tame_http_nif:close(Handle, 0).
