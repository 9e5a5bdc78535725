%% The messages of a library that nobody is known to have read. A process of the VM is given what is
%% sent to it whether it reads or not; so a host that may send to it could fill the VM's memory.
%%
%% What is sent is counted by who gets it, and from time to time, never for one message alone, each
%% receiver is asked how many messages wait for it. As many of ours, the largest of them, may be
%% unread. It is asked by a process of its own, because the answer waits until the receiver runs,
%% which one in a long NIF does not; until it comes, all that was sent counts.
%%
%% flood: more are unread than a host may have, all receivers together, and none of them was read
%% for a second. The count goes on over hosts of one tame_host, so a host that ends for it is not
%% followed by another that does the same.
-module(tame_unread).

-export([new/0]).
-export([sent/3]).
-export([looked/2]).

%% Internal.
-export([look/2]).

-export_type([unread/0]).
-export_type([seen/0]).

-define(MESSAGES_MAX, 500000).
-define(BYTES_MAX, 1 bsl 30).
%% Receivers are looked at after so many messages or bytes, and more where there are many receivers.
-define(LOOK_MESSAGES, 1000).
-define(LOOK_MESSAGES_MAX, 100000).
-define(LOOK_BYTES, 1 bsl 23).
-define(LOOK_BYTES_MAX, 1 bsl 28).
-define(LOOK_PER_BOX, 4).
-define(LOOK_BYTES_PER_BOX, 1 bsl 16).
%% How long receivers have to read a message when it is too much: one that reads may have to wait
%% for a scheduler that long where many processes, or others on the machine, want one.
-define(LAST_MS, 1000).
-define(AGAIN_MS, 10).
%% What the host writes meanwhile comes into our mailbox, in messages of up to 64 KiB: 128 MiB at
%% most.
-define(BEHIND_MAX, 2048).

%% What was sent to one receiver; how much of it before it was asked, if it is.
-record(box, {
    messages = 0 :: non_neg_integer(),
    bytes = 0 :: non_neg_integer(),
    largest = 0 :: non_neg_integer(),
    asked = none :: none | {Messages :: pos_integer(), Bytes :: non_neg_integer()}
}).

-record(unread, {
    boxes = #{} :: #{pid() => #box{}},
    messages = 0 :: non_neg_integer(),
    bytes = 0 :: non_neg_integer(),
    %% Since receivers were looked at.
    new_messages = 0 :: non_neg_integer(),
    new_bytes = 0 :: non_neg_integer()
}).

-opaque unread() :: #unread{}.

%% Comes as a message {tame_unread, seen()}: how many messages wait for a receiver.
-type seen() :: {pid(), Waiting :: non_neg_integer()}.

-spec new() -> unread().
new() ->
    #unread{}.

%% Whether a message of so many bytes at most may be sent. ok: it is counted. Receivers are asked
%% before, so that what they have counts, and not what is on its way.
-spec sent(pid(), non_neg_integer(), unread()) -> {ok | flood, unread()}.
sent(Pid, Bytes, Unread) ->
    case is_flood(counted(Pid, Bytes, Unread)) of
        false ->
            {ok, counted(Pid, Bytes, looking(Unread))};
        true ->
            Until = erlang:monotonic_time(millisecond) + ?LAST_MS,
            judged(Pid, Bytes, asked(Unread), {Until, waiting() + ?BEHIND_MAX})
    end.

counted(Pid, Bytes, #unread{boxes = Boxes} = Unread) ->
    Box = maps:get(Pid, Boxes, #box{}),
    Unread#unread{
        boxes = Boxes#{
            Pid => Box#box{
                messages = Box#box.messages + 1,
                bytes = Box#box.bytes + Bytes,
                largest = max(Box#box.largest, Bytes)
            }
        },
        messages = Unread#unread.messages + 1,
        bytes = Unread#unread.bytes + Bytes,
        new_messages = Unread#unread.new_messages + 1,
        new_bytes = Unread#unread.new_bytes + Bytes
    }.

%% Before it is a flood, answers are taken that stand in our mailbox behind what the host has
%% written since, and those on their way. Until the time is over, or too much has come into our
%% mailbox, receivers are asked again when no answer has come for a while.
judged(Pid, Bytes, Unread, {Until, MaxWaiting} = Limits) ->
    Counted = counted(Pid, Bytes, Unread),
    LeftMs = Until - erlang:monotonic_time(millisecond),
    case is_flood(Counted) of
        false ->
            {ok, Counted};
        true ->
            receive
                {?MODULE, Seen} -> judged(Pid, Bytes, looked(Seen, Unread), Limits)
            after max(0, min(LeftMs, ?AGAIN_MS)) ->
                case LeftMs =< 0 orelse waiting() > MaxWaiting of
                    true -> {flood, Unread};
                    false -> judged(Pid, Bytes, asked(Unread), Limits)
                end
            end
    end.

waiting() ->
    {message_queue_len, Len} = process_info(self(), message_queue_len),
    Len.

is_flood(#unread{messages = Messages, bytes = Bytes}) ->
    Messages > ?MESSAGES_MAX orelse Bytes > ?BYTES_MAX.

%% A receiver has been looked at.
-spec looked(seen(), unread()) -> unread().
looked({Pid, Waiting}, #unread{boxes = Boxes} = Unread) ->
    case Boxes of
        #{Pid := #box{asked = {Messages, Bytes}} = Box} ->
            #box{messages = AllMessages, bytes = AllBytes, largest = Largest} = Box,
            LeftMessages = AllMessages - Messages + min(Messages, Waiting),
            LeftBytes = AllBytes - Bytes + min(Bytes, Waiting * Largest),
            Left = Box#box{messages = LeftMessages, bytes = LeftBytes, asked = none},
            Others = maps:remove(Pid, Boxes),
            Unread#unread{
                boxes = if LeftMessages =:= 0 -> Others; true -> Others#{Pid => Left} end,
                messages = Unread#unread.messages - (AllMessages - LeftMessages),
                bytes = Unread#unread.bytes - (AllBytes - LeftBytes)
            };
        #{} ->
            Unread
    end.

looking(#unread{boxes = Boxes, new_messages = Messages, new_bytes = Bytes} = Unread) ->
    Count = map_size(Boxes),
    IsTime =
        Messages >= min(?LOOK_MESSAGES_MAX, max(?LOOK_MESSAGES, ?LOOK_PER_BOX * Count)) orelse
            Bytes >= min(?LOOK_BYTES_MAX, max(?LOOK_BYTES, ?LOOK_BYTES_PER_BOX * Count)),
    if IsTime -> asked(Unread); true -> Unread end.

asked(#unread{boxes = Boxes} = Unread) ->
    Unread#unread{boxes = maps:map(fun asked/2, Boxes), new_messages = 0, new_bytes = 0}.

asked(Pid, #box{asked = none, messages = Messages, bytes = Bytes} = Box) ->
    _ = spawn(?MODULE, look, [self(), Pid]),
    Box#box{asked = {Messages, Bytes}};
asked(_Pid, Box) ->
    Box.

%% Waits until the receiver runs, or has died.
-spec look(pid(), pid()) -> ok.
look(Owner, Pid) ->
    Waiting =
        case process_info(Pid, message_queue_len) of
            {message_queue_len, Len} -> Len;
            undefined -> 0
        end,
    Owner ! {?MODULE, {Pid, Waiting}},
    ok.
