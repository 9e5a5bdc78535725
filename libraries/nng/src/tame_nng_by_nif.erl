%% nng as a NIF on tame/fd.h: a call tries, and waits for the descriptor in `receive'.
-module(tame_nng_by_nif).
-behaviour(tame_nng_way).

-export([open/1, close/2, control/3]).
-export([recv/2, send/3]).
-export([set_active/2, active/1]).
-export([give/2, owner/1]).
-export([context_open/1, context_set/3, context_recv/3, context_send/4, context_close/2]).

-import(tame_nng_way, [left/1]).

-spec open(atom()) -> {ok, tame_nng_nif:socket()} | {error, atom()}.
open(Protocol) ->
    tame_nng_nif:open(Protocol).

-spec close(tame_nng_nif:socket(), tame_nng_way:deadline()) -> tame_nng_way:result().
close(Socket, Deadline) ->
    Ref = make_ref(),
    case tame_nng_nif:close(Socket, Ref) of
        ok ->
            ok;
        wait ->
            receive {tame_nng, Ref, closed} -> ok
            after left(Deadline) -> {error, timeout}
            end
    end.

-spec control(tame_nng_nif:socket(), pos_integer(), binary()) -> binary().
control(Socket, Code, Bytes) ->
    tame_nng_nif:control(Socket, Code, Bytes).

%% ---- messages -----------------------------------------------------------------------------------

-spec recv(tame_nng_nif:socket(), tame_nng_way:deadline()) -> {ok, binary()} | {error, atom()}.
recv(Socket, Deadline) ->
    Ref = make_ref(),
    case tame_nng_nif:recv(Socket, Ref) of
        wait -> recv_wait(Socket, Ref, Deadline, infinity);
        {wait, Ms} -> recv_wait(Socket, Ref, Deadline, Ms);
        Other -> Other
    end.

recv_wait(Socket, Ref, Deadline, Survey) ->
    receive
        {tame_fd, Ref, ready} when Survey =:= infinity -> recv(Socket, Deadline);
        {tame_fd, Ref, ready} -> survey_over(recv(Socket, Deadline));
        {tame_fd, Ref, closed} -> {error, closed}
    after min(left(Deadline), Survey) ->
        ok = cancel(Socket, recv, Ref),
        case left(Deadline) of
            0 -> {error, timeout};
            _ -> survey_over(recv(Socket, Deadline))
        end
    end.

%% Nobody says that the survey has ended, but the socket knows.
survey_over({error, estate}) -> {error, timeout};
survey_over(Other) -> Other.

-spec send(tame_nng_nif:socket(), [binary()], tame_nng_way:deadline()) -> tame_nng_way:result().
send(Socket, Message, Deadline) ->
    send_held(Socket, Message, Deadline).

%% A message that has to wait is copied already, and held as a term.
send_held(Socket, Message, Deadline) ->
    Ref = make_ref(),
    case tame_nng_nif:send(Socket, Message, Ref) of
        {wait, Held} ->
            receive
                {tame_fd, Ref, ready} -> send_held(Socket, Held, Deadline);
                {tame_fd, Ref, closed} -> {error, closed}
            after left(Deadline) ->
                ok = cancel(Socket, send, Ref),
                {error, timeout}
            end;
        Other ->
            Other
    end.

%% The wait ends; when its message is on its way, it is received.
cancel(Socket, Direction, Ref) ->
    case tame_nng_nif:cancel(Socket, Direction) of
        done -> ok;
        sent -> receive {tame_fd, Ref, _} -> ok end
    end.

%% ---- messages for credit ------------------------------------------------------------------------

-spec set_active(tame_nng_nif:socket(), boolean() | once | integer()) -> tame_nng_way:result().
set_active(Socket, false) ->
    case tame_fd_readers:of_fd(tame_nng_nif, Socket) of
        undefined -> ok;
        Reader -> set_passive(Socket, Reader)
    end;
set_active(Socket, Active) ->
    case tame_fd_readers:of_fd(tame_nng_nif, Socket) of
        undefined -> {error, not_started};
        Reader -> tame_nng_nif:credit(Socket, Active, Reader)
    end.

set_passive(Socket, Reader) ->
    case tame_nng_nif:passive(Socket, Reader) of
        ok ->
            ok;
        %% A receive for credit is at work: after it nothing comes any more.
        again ->
            true = erlang:yield(),
            set_passive(Socket, Reader)
    end.

-spec active(tame_nng_nif:socket()) -> boolean() | once | pos_integer() | {error, closed}.
active(Socket) ->
    tame_nng_nif:active(Socket).

%% ---- the owner ----------------------------------------------------------------------------------

-spec give(tame_nng_nif:socket(), pid()) -> tame_nng_way:result().
give(Socket, Pid) ->
    tame_nng_nif:give(Socket, Pid).

-spec owner(tame_nng_nif:socket()) -> {ok, pid()} | {error, closed}.
owner(Socket) ->
    tame_nng_nif:owner(Socket).

%% ---- contexts -----------------------------------------------------------------------------------

-spec context_open(tame_nng_nif:socket()) -> {ok, tame_nng_nif:context()} | {error, atom()}.
context_open(Socket) ->
    tame_nng_nif:context_open(Socket).

-spec context_set(tame_nng_nif:socket(), tame_nng_nif:context(), binary()) -> binary().
context_set(_, Context, Bytes) ->
    tame_nng_nif:context_set(Context, Bytes).

-spec context_recv(tame_nng_nif:socket(), tame_nng_nif:context(), tame_nng_way:deadline()) ->
    {ok, binary()} | {error, atom()}.
context_recv(_, Context, Deadline) ->
    Ref = make_ref(),
    context_result(tame_nng_nif:context_recv(Context, Deadline, Ref), Ref).

-spec context_send(
    tame_nng_nif:socket(), tame_nng_nif:context(), [binary()], tame_nng_way:deadline()
) -> tame_nng_way:result().
context_send(_, Context, Message, Deadline) ->
    Ref = make_ref(),
    context_result(tame_nng_nif:context_send(Context, Message, Deadline, Ref), Ref).

%% nng keeps the deadline, and ends each operation by one callback.
context_result(wait, Ref) -> receive {tame_nng, Ref, Result} -> Result end;
context_result(Error, _) -> Error.

-spec context_close(tame_nng_nif:socket(), tame_nng_nif:context()) -> ok.
context_close(_, Context) ->
    tame_nng_nif:context_close(Context).
