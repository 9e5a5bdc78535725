%% The native functions; their comments are in c_src/. Every `wait' is followed by one message,
%% {tame_fd, Ref, ready | closed}, unless cancel/2 answers done.
-module(tame_tcp_nif).
-behaviour(tame_fd_readers).

-export([open/1, bind/2, listen/2, accept/2, connect/3, connected/2]).
-export([recv/3, send/3, sendfile/5, file_open/1, file_dup/1]).
-export([push/1, credit/3, passive/2]).
-export([setopt/3, getopt/2, setraw/4, getraw/4, name/2]).
-export([cancel/2, shutdown/2, close/2, give/2, owner/1]).

-nifs([open/1, bind/2, listen/2, accept/2, connect/3, connected/2]).
-nifs([recv/3, send/3, sendfile/5, file_open/1, file_dup/1]).
-nifs([push/1, credit/3, passive/2]).
-nifs([setopt/3, getopt/2, setraw/4, getraw/4, name/2]).
-nifs([cancel/2, shutdown/2, close/2, give/2, owner/1]).
-on_load(load/0).

-type socket() :: reference().
-type file() :: reference().
-type failure() :: {error, atom()}.
-type address() ::
    {inet, inet:ip4_address(), inet:port_number()}
    | {inet6, inet:ip6_address(), inet:port_number(), ScopeId :: non_neg_integer()}
    | {local, binary()}.

-export_type([socket/0, file/0, address/0]).

-spec open(inet | inet6 | local) -> {ok, socket()} | failure().
open(_) -> erlang:nif_error(not_loaded).

-spec bind(socket(), address()) -> ok | failure().
bind(_, _) -> erlang:nif_error(not_loaded).

-spec listen(socket(), non_neg_integer()) -> ok | failure().
listen(_, _) -> erlang:nif_error(not_loaded).

-spec accept(socket(), reference()) -> {ok, socket(), Active :: integer()} | wait | failure().
accept(_, _) -> erlang:nif_error(not_loaded).

-spec connect(socket(), address(), reference()) -> ok | wait | again | failure().
connect(_, _, _) -> erlang:nif_error(not_loaded).

-spec connected(socket(), reference()) -> ok | wait | failure().
connected(_, _) -> erlang:nif_error(not_loaded).

-spec recv(socket(), non_neg_integer(), reference()) -> {ok, binary()} | wait | failure().
recv(_, _, _) -> erlang:nif_error(not_loaded).

-spec send(socket(), [binary()], reference()) ->
    ok | wait | {wait, non_neg_integer()} | failure().
send(_, _, _) -> erlang:nif_error(not_loaded).

-spec sendfile(socket(), file(), non_neg_integer(), non_neg_integer(), reference()) ->
    ok | eof | wait | {wait, non_neg_integer()} | failure().
sendfile(_, _, _, _, _) -> erlang:nif_error(not_loaded).

-spec file_open(binary()) -> {ok, file()} | failure().
file_open(_) -> erlang:nif_error(not_loaded).

-spec file_dup(binary()) -> {ok, file()} | failure().
file_dup(_) -> erlang:nif_error(not_loaded).

-spec push(socket()) -> ok.
push(_) -> erlang:nif_error(not_loaded).

%% listens: it has what those that it accepts begin with, as an option.
-spec credit(socket(), true | once | integer(), pid()) -> ok | listens | failure().
credit(_, _, _) -> erlang:nif_error(not_loaded).

-spec passive(socket(), pid()) -> ok | listens | again.
passive(_, _) -> erlang:nif_error(not_loaded).

-spec setopt(socket(), atom(), term()) -> ok | failure().
setopt(_, _, _) -> erlang:nif_error(not_loaded).

-spec getopt(socket(), atom()) -> {ok, term()} | failure().
getopt(_, _) -> erlang:nif_error(not_loaded).

-spec setraw(socket(), integer(), integer(), binary()) -> ok | failure().
setraw(_, _, _, _) -> erlang:nif_error(not_loaded).

-spec getraw(socket(), integer(), integer(), non_neg_integer()) -> {ok, binary()} | failure().
getraw(_, _, _, _) -> erlang:nif_error(not_loaded).

-spec name(socket(), sockname | peername) -> {ok, tame_tcp:address()} | failure().
name(_, _) -> erlang:nif_error(not_loaded).

-spec cancel(socket(), read | write) -> done | sent.
cancel(_, _) -> erlang:nif_error(not_loaded).

-spec shutdown(socket(), read | write | read_write) -> ok | failure().
shutdown(_, _) -> erlang:nif_error(not_loaded).

-spec close(socket(), reference()) -> ok | wait.
close(_, _) -> erlang:nif_error(not_loaded).

-spec give(socket(), pid()) -> ok | failure().
give(_, _) -> erlang:nif_error(not_loaded).

-spec owner(socket()) -> {ok, pid()} | failure().
owner(_) -> erlang:nif_error(not_loaded).

load() ->
    erlang:load_nif(filename:join(code:priv_dir(tame_tcp), "tame_tcp_nif"), 0).
