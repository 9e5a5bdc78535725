%% Frames for a port that is busy. A port is busy while its program does not read; a process that
%% writes to a busy port is suspended. So what the port does not take at once waits here. The outbox
%% is full when it has more than ?BYTES_MAX, or when the port has taken nothing for ?MS_MAX.
-module(tame_outbox).

-export([new/0]).
-export([send/3]).
-export([flush/2]).

-export_type([outbox/0]).

-define(BYTES_MAX, 1 bsl 24).
-define(MS_MAX, 5000).

%% Oldest first; since when the port has taken nothing.
-record(outbox, {
    frames = queue:new() :: queue:queue([binary()]),
    bytes = 0 :: non_neg_integer(),
    since = none :: none | integer()
}).

-opaque outbox() :: #outbox{}.

-spec new() -> outbox().
new() ->
    #outbox{}.

%% In order: behind what waits already.
-spec send([binary()], port(), outbox()) -> outbox().
send(Frame, Port, #outbox{frames = Frames, bytes = Bytes, since = Since} = Outbox) ->
    case queue:is_empty(Frames) andalso taken(Port, Frame) of
        true ->
            Outbox;
        false ->
            Outbox#outbox{
                frames = queue:in(Frame, Frames),
                bytes = Bytes + iolist_size(Frame),
                since = if Since =:= none -> now_ms(); true -> Since end
            }
    end.

%% Hands over what the port takes now.
-spec flush(none | port(), outbox()) -> {empty | waits, outbox()} | full.
flush(Port, #outbox{frames = Frames, bytes = Bytes, since = Since} = Outbox) ->
    case queue:peek(Frames) of
        empty ->
            {empty, Outbox#outbox{since = none}};
        {value, Frame} ->
            case Port =:= none orelse taken(Port, Frame) of
                true ->
                    flush(Port, Outbox#outbox{
                        frames = queue:drop(Frames),
                        bytes = Bytes - iolist_size(Frame),
                        since = now_ms()
                    });
                false when Bytes > ?BYTES_MAX ->
                    full;
                false ->
                    case now_ms() - Since > ?MS_MAX of
                        true -> full;
                        false -> {waits, Outbox}
                    end
            end
    end.

%% Never waits.
taken(Port, Frame) ->
    try
        port_command(Port, Frame, [nosuspend])
    catch
        %% It has just ended; its exit status is on the way.
        error:badarg -> true
    end.

now_ms() ->
    erlang:monotonic_time(millisecond).
