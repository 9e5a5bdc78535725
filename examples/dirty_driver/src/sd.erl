%% CRC-64 (of XZ) by a port driver in C. The data may be of any size: no call holds a scheduler.
-module(sd).

-export([open/0, close/1, crc64/2, send/2, crc64_next/1]).

-define(CRC64, 1).

%% A port, which belongs to the calling process. What is asked of one port is done in order; so a
%% process opens one for itself, and several processes use several cores.
-spec open() -> port().
open() ->
    ok = load(),
    open_port({spawn_driver, "sd_drv"}, [binary]).

-spec close(port()) -> true.
close(Port) ->
    port_close(Port).

%% By port_control/3: the data is copied once when it is large. A small answer is there at once, and a
%% large one comes by message.
-spec crc64(port(), iodata()) -> non_neg_integer().
crc64(Port, Data) ->
    case port_control(Port, ?CRC64, Data) of
        [] -> crc64_next(Port);
        Bytes -> binary:decode_unsigned(list_to_binary(Bytes))
    end.

%% By port_command/2: nothing is copied, and the owner of the port gets the answer.
-spec send(port(), iodata()) -> true.
send(Port, Data) ->
    port_command(Port, Data).

%% The next answer, of those that were sent for.
-spec crc64_next(port()) -> non_neg_integer().
crc64_next(Port) ->
    receive
        {Port, {data, <<Crc:64>>}} -> Crc;
        {Port, {error, Reason}} -> error(Reason);
        {'EXIT', Port, Reason} -> exit(Reason)
    end.

load() ->
    case erl_ddll:load(code:priv_dir(sd), "sd_drv") of
        ok -> ok;
        {error, Reason} -> error({sd_drv, erl_ddll:format_error(Reason)})
    end.
