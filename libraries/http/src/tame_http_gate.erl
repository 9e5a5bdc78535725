%% Lets connections in once the acceptors are there, and at the end lets requests finish: it starts
%% last and ends first.
-module(tame_http_gate).
-behaviour(gen_server).

-export([start_link/2]).
%% Internal.
-export([init/1]).
-export([handle_call/3]).
-export([handle_cast/2]).
-export([terminate/2]).

-spec start_link(pid(), non_neg_integer()) -> {ok, pid()} | {error, term()}.
start_link(Sup, ShutdownMs) -> gen_server:start_link(?MODULE, {Sup, ShutdownMs}, []).

-spec init({pid(), non_neg_integer()}) -> {ok, {pid(), non_neg_integer()}}.
init({Sup, ShutdownMs}) ->
    process_flag(trap_exit, true),
    {ok, #{owner := Owner, handle := Handle}} = tame_http_servers:find(Sup),
    ok = tame_http_nif:accept(Handle),
    {ok, {Owner, ShutdownMs}}.

-spec handle_call(term(), gen_server:from(), State) -> {noreply, State}.
handle_call(_, _From, State) -> {noreply, State}.

-spec handle_cast(term(), State) -> {noreply, State}.
handle_cast(_, State) -> {noreply, State}.

-spec terminate(term(), {pid(), non_neg_integer()}) -> ok.
terminate(Reason, {Owner, ShutdownMs}) when Reason =:= shutdown; Reason =:= normal ->
    try
        tame_http_server:close(Owner, ShutdownMs)
    catch
        %% The owner is gone, and everything with it.
        exit:_ -> ok
    end;
terminate(_, _) ->
    ok.
