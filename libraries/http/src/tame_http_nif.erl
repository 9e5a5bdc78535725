%% The native half. What its functions take is checked in the modules above.
-module(tame_http_nif).

-export([open/1, accept/1, close/2]).
-export([join/1, take/1, credit/2]).
-export([set_static/2, info/1]).
-export([reply/4, start/3, chunk/2, finish/2]).
-export([read/2, unread/1, watch/1, id/1, is_alive/1]).

-export_type([server/0, acceptor/0, request/0, ref/0, id/0, headers/0]).

-nifs([open/1, accept/1, close/2, join/1, take/1, credit/2, set_static/2, info/1]).
-nifs([reply/4, start/3, chunk/2, finish/2, read/2, unread/1, watch/1, id/1, is_alive/1]).
-on_load(load/0).

-opaque server() :: reference().
-opaque acceptor() :: reference().
%% A request that can be answered once. If nobody refers to it any more, it is answered 500.
-opaque ref() :: reference().
-type id() :: non_neg_integer().
-type headers() :: [{iodata(), iodata()}].
-type request() ::
    {
        ref(),
        Method :: binary(),
        Path :: binary(),
        Query :: binary(),
        [{binary(), binary()}],
        {inet:ip_address(), inet:port_number()},
        'HTTP/1.0' | 'HTTP/1.1' | 'HTTP/2',
        Scheme :: http | https,
        Body :: binary() | stream,
        Trailers :: [{binary(), binary()}]
    }.
-type late() :: {error, closed}.

%% {ok, Server, Port}; the caller owns the server, and gets {tame_http, stopped} when its threads
%% have ended.
-spec open(map()) ->
    {ok, server(), inet:port_number()} | {error, {tls, binary()} | {non_neg_integer(), binary()}}.
open(_) -> erlang:nif_error(not_loaded).

-spec accept(server()) -> ok.
accept(_) -> erlang:nif_error(not_loaded).

-spec close(server(), non_neg_integer()) -> ok.
close(_, _) -> erlang:nif_error(not_loaded).

%% The caller gets {tame_http, requests, N} for as long as it has credit: that many may be taken.
-spec join(server()) -> acceptor().
join(_) -> erlang:nif_error(not_loaded).

%% None where clients have left meanwhile, or others took them.
-spec take(acceptor()) -> request() | none.
take(_) -> erlang:nif_error(not_loaded).

%% Says how many were to be taken for a second, and were not: who should have has died.
-spec credit(acceptor(), non_neg_integer()) -> Overdue :: non_neg_integer().
credit(_, _) -> erlang:nif_error(not_loaded).

-spec set_static(server(), [{binary(), 200..599, headers(), binary()}]) -> ok.
set_static(_, _) -> erlang:nif_error(not_loaded).

-spec info(server()) -> [{atom(), non_neg_integer()}].
info(_) -> erlang:nif_error(not_loaded).

-spec reply(ref(), 200..599, headers(), binary()) -> ok | late().
reply(_, _, _, _) -> erlang:nif_error(not_loaded).

-spec start(ref(), 200..599, headers()) -> ok | late().
start(_, _, _) -> erlang:nif_error(not_loaded).

%% After wait the caller gets {tame_http, room, Id}.
-spec chunk(ref(), binary()) -> ok | wait | late().
chunk(_, _) -> erlang:nif_error(not_loaded).

-spec finish(ref(), headers()) -> ok | late().
finish(_, _) -> erlang:nif_error(not_loaded).

%% The caller gets {tame_http, body, Id, {more, Data} | {done, Data, Trailers} | {error, Reason}}.
-spec read(ref(), pos_integer()) -> id() | late().
read(_, _) -> erlang:nif_error(not_loaded).

%% The caller gets {tame_http, unread, Id}, and nothing of the body behind it.
-spec unread(ref()) -> id() | late().
unread(_) -> erlang:nif_error(not_loaded).

%% The caller gets {tame_http, gone, Id} if the client leaves.
-spec watch(ref()) -> id() | late().
watch(_) -> erlang:nif_error(not_loaded).

-spec id(ref()) -> id().
id(_) -> erlang:nif_error(not_loaded).

-spec is_alive(ref()) -> boolean().
is_alive(_) -> erlang:nif_error(not_loaded).

load() ->
    erlang:load_nif(filename:join(code:priv_dir(tame_http), "tame_http"), 0).
