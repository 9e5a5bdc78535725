%% The native functions; their comments are in c_src/nif. A `wait' of a socket is followed by one
%% message, {tame_fd, Ref, ready | closed}, unless cancel/2 answers done; that of close/2 and of a
%% context by {tame_nng, Ref, Result}.
-module(tame_nng_nif).
-behaviour(tame_fd_readers).

-export([open/1, close/2, control/3]).
-export([recv/2, send/3, cancel/2]).
-export([push/1, credit/3, passive/2, active/1]).
-export([give/2, owner/1]).
-export([context_open/1, context_set/2, context_recv/3, context_send/4, context_close/1]).

-nifs([open/1, close/2, control/3]).
-nifs([recv/2, send/3, cancel/2]).
-nifs([push/1, credit/3, passive/2, active/1]).
-nifs([give/2, owner/1]).
-nifs([context_open/1, context_set/2, context_recv/3, context_send/4, context_close/1]).
-on_load(load/0).

-type socket() :: reference().
-type context() :: reference().
%% A message that waits to be sent.
-type held() :: reference().
-type failure() :: {error, atom()}.

-export_type([socket/0, context/0]).

-spec open(atom()) -> {ok, socket()} | failure().
open(_) -> erlang:nif_error(not_loaded).

-spec close(socket(), reference()) -> ok | wait.
close(_, _) -> erlang:nif_error(not_loaded).

-spec control(socket(), pos_integer(), binary()) -> binary().
control(_, _, _) -> erlang:nif_error(not_loaded).

-spec recv(socket(), reference()) -> {ok, binary()} | wait | {wait, pos_integer()} | failure().
recv(_, _) -> erlang:nif_error(not_loaded).

-spec send(socket(), [binary()] | held(), reference()) -> ok | {wait, held()} | failure().
send(_, _, _) -> erlang:nif_error(not_loaded).

-spec cancel(socket(), recv | send) -> done | sent.
cancel(_, _) -> erlang:nif_error(not_loaded).

-spec push(socket()) -> ok.
push(_) -> erlang:nif_error(not_loaded).

-spec credit(socket(), true | once | integer(), pid()) -> ok | failure().
credit(_, _, _) -> erlang:nif_error(not_loaded).

-spec passive(socket(), pid()) -> ok | again.
passive(_, _) -> erlang:nif_error(not_loaded).

-spec active(socket()) -> boolean() | once | pos_integer() | {error, closed}.
active(_) -> erlang:nif_error(not_loaded).

-spec give(socket(), pid()) -> ok | failure().
give(_, _) -> erlang:nif_error(not_loaded).

-spec owner(socket()) -> {ok, pid()} | {error, closed}.
owner(_) -> erlang:nif_error(not_loaded).

-spec context_open(socket()) -> {ok, context()} | failure().
context_open(_) -> erlang:nif_error(not_loaded).

-spec context_set(context(), binary()) -> binary().
context_set(_, _) -> erlang:nif_error(not_loaded).

-spec context_recv(context(), tame_nng_way:deadline(), reference()) -> wait | failure().
context_recv(_, _, _) -> erlang:nif_error(not_loaded).

-spec context_send(context(), [binary()], tame_nng_way:deadline(), reference()) ->
    wait | failure().
context_send(_, _, _, _) -> erlang:nif_error(not_loaded).

-spec context_close(context()) -> ok.
context_close(_) -> erlang:nif_error(not_loaded).

load() ->
    erlang:load_nif(filename:join(code:priv_dir(tame_nng), "tame_nng_nif"), 0).
