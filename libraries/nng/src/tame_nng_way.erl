%% The two ways to nng, behind tame_nng: tame_nng_by_nif and tame_nng_by_driver. A deadline is a
%% time of erlang:monotonic_time(millisecond), or infinity.
-module(tame_nng_way).

-export([deadline/1, left/1, now_ms/0]).

-export_type([socket/0, context/0, deadline/0, result/0]).

-type socket() :: reference() | port().
-type context() :: reference() | pos_integer().
-type deadline() :: integer() | infinity.
-type result() :: ok | {error, atom()}.

-callback open(atom()) -> {ok, socket()} | {error, atom()}.
-callback close(socket(), deadline()) -> result().
%% A code and bytes of tame_nng_control, and its reply.
-callback control(socket(), pos_integer(), binary()) -> binary() | {error, atom()}.
-callback recv(socket(), deadline()) -> {ok, binary()} | {error, atom()}.
-callback send(socket(), [binary()], deadline()) -> result().
-callback set_active(socket(), boolean() | once | integer()) -> result().
-callback active(socket()) -> boolean() | once | pos_integer() | {error, atom()}.
%% Only the owner gives, and its messages are of no concern here.
-callback give(socket(), pid()) -> result().
-callback owner(socket()) -> {ok, pid()} | {error, closed}.
-callback context_open(socket()) -> {ok, context()} | {error, atom()}.
%% Bytes of tame_nng_control:set/2, and the reply.
-callback context_set(socket(), context(), binary()) -> binary() | {error, atom()}.
-callback context_recv(socket(), context(), deadline()) -> {ok, binary()} | {error, atom()}.
-callback context_send(socket(), context(), [binary()], deadline()) -> result().
-callback context_close(socket(), context()) -> ok.

-spec deadline(timeout()) -> deadline().
deadline(infinity) -> infinity;
deadline(Ms) -> now_ms() + Ms.

-spec left(deadline()) -> timeout().
left(infinity) -> infinity;
left(Deadline) -> max(0, Deadline - now_ms()).

-spec now_ms() -> integer().
now_ms() -> erlang:monotonic_time(millisecond).
