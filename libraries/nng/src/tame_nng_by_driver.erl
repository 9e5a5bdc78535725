%% nng as a port driver on tame/driver.h: a call that would wait stands in the port's line, and
%% the driver sends the message itself when the descriptor is ready. c_src/drv/commands.h has the
%% commands.
-module(tame_nng_by_driver).
-behaviour(tame_nng_way).

-export([load/0]).
-export([open/1, close/2, control/3]).
-export([recv/2, send/3]).
-export([set_active/2, active/1]).
-export([give/2, owner/1]).
-export([context_open/1, context_set/3, context_recv/3, context_send/4, context_close/2]).

-import(tame_nng_way, [left/1]).

-define(DRIVER, "tame_nng_drv").

-define(OPEN, 16#4e4e4701).
-define(CLOSE, 16#4e4e4702).
-define(CONTROL, 16#4e4e4703).
-define(RECV, 16#4e4e4704).
-define(SEND, 16#4e4e4705).
-define(CANCEL, 16#4e4e4706).
-define(CREDIT, 16#4e4e4707).
-define(PASSIVE, 16#4e4e4708).
-define(ACTIVE, 16#4e4e4709).
-define(CONTEXT_OPEN, 16#4e4e470a).
-define(CONTEXT_RECV, 16#4e4e470b).
-define(CONTEXT_CLOSE, 16#4e4e470c).
-define(CONTEXT_SET, 16#4e4e470d).

%% From this size on a message goes by reference and is copied outside; a smaller one is copied
%% once more, by port_control/3, which answers at once.
-define(BY_REFERENCE, 65536).

%% A busy port does not say when it is so no more.
-define(BUSY_MS, 5).

%% The caller has the driver loaded until it dies.
-spec load() -> ok.
load() ->
    case erl_ddll:load(code:priv_dir(tame_nng), ?DRIVER) of
        ok -> ok;
        {error, Reason} -> error({?DRIVER, lists:flatten(erl_ddll:format_error(Reason))})
    end.

-spec open(atom()) -> {ok, port()} | {error, atom()}.
open(Protocol) ->
    Port = open_port(),
    case tame_nng_control:reply(command(Port, ?OPEN, atom_to_binary(Protocol, latin1))) of
        ok ->
            {ok, Port};
        {error, _} = Error ->
            close_port(Port),
            Error
    end.

open_port() ->
    try open_port({spawn_driver, ?DRIVER}, [binary])
    catch
        error:badarg ->
            ok = load(),
            open_port({spawn_driver, ?DRIVER}, [binary])
    end.

-spec close(port(), tame_nng_way:deadline()) -> tame_nng_way:result().
close(Port, Deadline) ->
    Id = id(),
    case command(Port, ?CLOSE, <<Id:64>>) of
        <<4>> -> close_wait(Port, Id, Deadline);
        <<0>> -> close_port(Port);
        {error, closed} -> ok
    end.

%% A thread of nng's closes; the port may be closed meanwhile by its owner's death.
close_wait(Port, Id, Deadline) ->
    Monitor = erlang:monitor(port, Port),
    Result =
        receive
            {tame_nng, Port, Id, closed} -> ok;
            {'DOWN', Monitor, port, _, _} -> ok
        after left(Deadline) -> {error, timeout}
        end,
    _ = erlang:demonitor(Monitor, [flush]),
    ok = close_port(Port),
    Result.

%% The owner's link would bring it a message.
close_port(Port) ->
    true = unlink(Port),
    try port_close(Port) of
        true -> ok
    catch
        error:badarg -> ok
    end.

-spec control(port(), pos_integer(), binary()) -> binary() | {error, atom()}.
control(Port, Code, Bytes) ->
    Id = id(),
    Monitor = erlang:monitor(port, Port),
    case command(Port, ?CONTROL, <<Id:64, Code, Bytes/binary>>) of
        {error, _} = Error ->
            _ = erlang:demonitor(Monitor, [flush]),
            Error;
        %% It is outside.
        Nothing when Nothing =:= []; Nothing =:= <<>> ->
            receive
                {Port, {data, <<Id:64, Reply/binary>>}} ->
                    _ = erlang:demonitor(Monitor, [flush]),
                    Reply;
                {Port, {error, busy}} ->
                    _ = erlang:demonitor(Monitor, [flush]),
                    {error, ebusy};
                {'DOWN', Monitor, port, _, _} ->
                    {error, closed}
            end
    end.

%% ---- messages -----------------------------------------------------------------------------------

-spec recv(port(), tame_nng_way:deadline()) -> {ok, binary()} | {error, atom()}.
recv(Port, Deadline) ->
    Id = id(),
    case command(Port, ?RECV, <<Id:64>>) of
        <<2, Bytes/binary>> -> {ok, Bytes};
        <<4>> -> await(Port, Id, recv, Deadline);
        <<4, Ms:64>> -> await_survey(Port, Id, Deadline, Ms);
        Reply -> tame_nng_control:reply(Reply)
    end.

%% Nobody says that the survey has ended, but the socket knows.
await_survey(Port, Id, Deadline, Ms) ->
    case await(Port, Id, recv, min(Deadline, tame_nng_way:now_ms() + Ms)) of
        {error, estate} ->
            {error, timeout};
        {error, timeout} ->
            case left(Deadline) > 0 andalso recv(Port, Deadline) of
                false -> {error, timeout};
                {error, estate} -> {error, timeout};
                Other -> Other
            end;
        Other ->
            Other
    end.

-spec send(port(), [binary()], tame_nng_way:deadline()) -> tame_nng_way:result().
send(Port, Message, Deadline) ->
    Id = id(),
    sent(Port, Id, 0, Message, Deadline).

%% Of a context, or of the socket: 0. What was told to wait and has had some time is dropped when
%% that is over, wherever it is; what has none is tried.
sent(Port, Id, Context, Message, Deadline) ->
    Cancel = case left(Deadline) of 0 -> try_send; _ -> drop_send end,
    case send_bytes(Port, <<Id:64, Context:32, (deadline(Deadline))/binary>>, Message, Deadline) of
        <<4>> -> await(Port, Id, Cancel, Deadline);
        Reply -> tame_nng_control:reply(Reply)
    end.

deadline(infinity) -> <<(1 bsl 63 - 1):64>>;
deadline(Deadline) -> <<Deadline:64>>.

%% The reply; <<4>>: it comes.
send_bytes(Port, Header, Message, Deadline) ->
    case iolist_size(Message) < ?BY_REFERENCE of
        true -> command(Port, ?SEND, [Header | Message]);
        false -> by_reference(Port, [Header | Message], Deadline)
    end.

%% A port that is busy would suspend who has a deadline for longer.
by_reference(Port, Bytes, Deadline) ->
    Options = case Deadline of infinity -> []; _ -> [nosuspend] end,
    try port_command(Port, Bytes, Options) of
        true -> <<4>>;
        false -> by_reference_later(Port, Bytes, Deadline, left(Deadline))
    catch
        error:badarg -> {error, closed}
    end.

by_reference_later(_, _, _, 0) ->
    {error, timeout};
by_reference_later(Port, Bytes, Deadline, Left) ->
    receive after min(Left, ?BUSY_MS) -> by_reference(Port, Bytes, Deadline) end.

%% The port may end and nobody may answer, so the port is monitored while somebody waits.
await(Port, Id, Cancel, Deadline) ->
    Monitor = erlang:monitor(port, Port),
    receive
        {tame_nng, Port, Id, Result} ->
            _ = erlang:demonitor(Monitor, [flush]),
            Result;
        {'DOWN', Monitor, port, _, _} ->
            told(Port, Id)
    after left(Deadline) ->
        _ = erlang:demonitor(Monitor, [flush]),
        cancel(Port, Id, Cancel)
    end.

told(Port, Id) ->
    receive {tame_nng, Port, Id, Result} -> Result
    after 0 -> {error, closed}
    end.

%% What came meanwhile counts, and is not lost.
cancel(Port, Id, Cancel) ->
    Code = case Cancel of recv -> 0; try_send -> 1; drop_send -> 2 end,
    case command(Port, ?CANCEL, <<Id:64, Code>>) of
        <<0>> -> {error, timeout};
        <<4>> -> await(Port, Id, Cancel, infinity);
        {error, closed} -> told(Port, Id)
    end.

%% ---- messages for credit ------------------------------------------------------------------------

-spec set_active(port(), boolean() | once | integer()) -> tame_nng_way:result().
set_active(Port, false) ->
    case command(Port, ?PASSIVE, <<>>) of
        %% A large message is copied outside; after it nothing comes any more.
        <<4>> -> receive after 1 -> set_active(Port, false) end;
        Reply -> done(Reply)
    end;
set_active(Port, true) -> done(command(Port, ?CREDIT, <<0, 0:32>>));
set_active(Port, once) -> done(command(Port, ?CREDIT, <<1, 0:32>>));
set_active(Port, More) -> done(command(Port, ?CREDIT, <<2, More:32>>)).

done(Reply) -> tame_nng_control:reply(Reply).

-spec active(port()) -> boolean() | once | pos_integer() | {error, atom()}.
active(Port) ->
    case tame_nng_control:reply(command(Port, ?ACTIVE, <<>>)) of
        {ok, 0} -> false;
        {ok, -1} -> true;
        {ok, 65536} -> once;
        {ok, Messages} -> Messages;
        Error -> Error
    end.

%% ---- the owner ----------------------------------------------------------------------------------

-spec give(port(), pid()) -> tame_nng_way:result().
give(Port, Pid) ->
    try erlang:port_connect(Port, Pid) of
        true ->
            true = unlink(Port),
            ok
    catch
        error:badarg ->
            case erlang:port_info(Port, connected) of
                undefined -> {error, closed};
                _ -> {error, badarg}
            end
    end.

-spec owner(port()) -> {ok, pid()} | {error, closed}.
owner(Port) ->
    case erlang:port_info(Port, connected) of
        {connected, Pid} -> {ok, Pid};
        undefined -> {error, closed}
    end.

%% ---- contexts -----------------------------------------------------------------------------------

-spec context_open(port()) -> {ok, pos_integer()} | {error, atom()}.
context_open(Port) ->
    tame_nng_control:reply(command(Port, ?CONTEXT_OPEN, <<>>)).

-spec context_set(port(), pos_integer(), binary()) -> binary() | {error, atom()}.
context_set(Port, Context, Bytes) ->
    command(Port, ?CONTEXT_SET, <<Context:32, Bytes/binary>>).

%% nng keeps the deadline, and ends each operation by one callback.
-spec context_recv(port(), pos_integer(), tame_nng_way:deadline()) ->
    {ok, binary()} | {error, atom()}.
context_recv(Port, Context, Deadline) ->
    Id = id(),
    case command(Port, ?CONTEXT_RECV, <<Id:64, Context:32, (deadline(Deadline))/binary>>) of
        <<4>> -> await(Port, Id, recv, infinity);
        Reply -> tame_nng_control:reply(Reply)
    end.

%% A message that nng has by the deadline ends as nng says, which keeps it as well.
-spec context_send(port(), pos_integer(), [binary()], tame_nng_way:deadline()) ->
    tame_nng_way:result().
context_send(Port, Context, Message, Deadline) ->
    sent(Port, id(), Context, Message, Deadline).

-spec context_close(port(), pos_integer()) -> ok.
context_close(Port, Context) ->
    _ = command(Port, ?CONTEXT_CLOSE, <<Context:32>>),
    ok.

%% ---- what all use -------------------------------------------------------------------------------

id() -> erlang:unique_integer([positive]) band 16#ffffffffffffffff.

%% A port that is closed, or an argument that is none.
command(Port, Command, Bytes) ->
    try port_control(Port, Command, Bytes)
    catch
        error:badarg ->
            case erlang:port_info(Port, name) of
                undefined -> {error, closed};
                _ -> error(badarg)
            end
    end.
