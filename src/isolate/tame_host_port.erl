%% A host's control port: its program is started behind it, frames come and go over it, and the OS
%% process ends with it. Messages of a port that was closed are ignored.
%%
%% The OS process is killed by closing the port: its guard, a process that runs no code of the
%% library, sees that and ends it with SIGKILL. A port that has output left and is linked to a
%% process that dies ends when all is written, which a host that does not read puts off for ever,
%% and then it cannot be closed by force any more. So the port is linked to a process that does
%% nothing else, its closer, which closes it by force when the owner dies. When the port is closed
%% and the guard goes on, the closer lets it continue: the library may have stopped it.
-module(tame_host_port).

-export([none/0]).
-export([open/1]).
-export([event/2]).
-export([long/1]).
-export([expect_end/2]).
-export([send/2]).
-export([flush/1]).
-export([close/1]).
-export([is_open/1]).
-export([guard_pid/1]).
%% Internal.
-export([closer/2, close_behind/3, look_behind/1]).

-export_type([state/0]).
-export_type([event/0]).

%% How long a host may go on after it said that it has ended.
-define(END_MS, 1000).
%% After how long a guard whose port is closed is taken for stopped; less than tame_host waits.
-define(STOPPED_MS, 300).
%% The most messages of the port that may wait to be read, of up to 64 KiB each, and the most bytes,
%% estimated by the message that is being read.
-define(FLOOD_LEN, 20000).
-define(FLOOD_BYTES, 1 bsl 27).

-record(port, {
    port = none :: none | port(),
    %% By which signal the guard says that the host ended; 0: it exited. Statuses alone do not tell.
    signal = unknown :: unknown | non_neg_integer(),
    %% The guard, as the VM knows it. 0: there is none.
    guard_pid = 0 :: non_neg_integer(),
    reader = tame_control:new() :: tame_control:reader(),
    outbox = tame_outbox:new() :: tame_outbox:outbox()
}).

-opaque state() :: #port{}.

-type event() ::
    {frames, [tame_control:frame() | {bad, string()}], state()}
    | {kill, Why :: term()}
    | {down, tame_host:why(), state()}
    | not_ours.

-spec none() -> state().
none() ->
    #port{}.

-spec open(tame_isolate_options:options()) -> {ok, state()} | {error, atom(), iodata()}.
open(#{workers := Workers, limits := Limits} = Options) ->
    Program = maps:get(host, Options, tame_native:path("tame_host")),
    Args = ["--workers", integer_to_list(Workers) | tame_host_limits:args(Limits)],
    try
        tame_native:runnable(Program) andalso
            open_port({spawn_executable, Program}, [
                nouse_stdio, binary, exit_status, {args, Args}
            ])
    of
        Port ->
            ok = hand_to_closer(Port),
            case erlang:port_info(Port, os_pid) of
                {os_pid, GuardPid} -> {ok, #port{port = Port, guard_pid = GuardPid}};
                %% It has ended already; its exit status is on the way.
                undefined -> {ok, #port{port = Port}}
            end
    catch
        error:Why when is_atom(Why) -> {error, Why, cannot_start_text(Why, Program)};
        error:_ -> {error, system_limit, cannot_start_text(system_limit, Program)}
    end.

%% The owner is told by a monitor from then on.
hand_to_closer(Port) ->
    _ = monitor(port, Port),
    {Closer, Monitor} = spawn_monitor(?MODULE, closer, [self(), Port]),
    receive
        {Closer, linked} ->
            true = demonitor(Monitor, [flush]),
            true = unlink(Port),
            ok;
        %% The port has ended already; what it had to say is on the way.
        {'DOWN', Monitor, process, Closer, _} ->
            ok
    end.

-spec closer(pid(), port()) -> no_return().
closer(Owner, Port) ->
    _ = process_flag(trap_exit, true),
    true = link(Port),
    _ = monitor(process, Owner),
    _ = monitor(port, Port),
    Owner ! {self(), linked},
    case erlang:port_info(Port, os_pid) of
        {os_pid, GuardPid} -> await_owner(Owner, Port, GuardPid);
        undefined -> exit(normal)
    end.

%% Waits outside of all code: that of this module may be loaded anew.
await_owner(Owner, Port, GuardPid) ->
    erlang:hibernate(?MODULE, close_behind, [Owner, Port, GuardPid]).

-spec close_behind(pid(), port(), pos_integer()) -> no_return().
close_behind(Owner, Port, GuardPid) ->
    receive
        {'DOWN', _, process, Owner, _} ->
            true = exit(Port, kill),
            await_guard(GuardPid);
        {'DOWN', _, port, Port, _} ->
            await_guard(GuardPid);
        _ ->
            await_owner(Owner, Port, GuardPid)
    end.

await_guard(GuardPid) ->
    _ = erlang:send_after(?STOPPED_MS, self(), look),
    erlang:hibernate(?MODULE, look_behind, [GuardPid]).

-spec look_behind(pos_integer()) -> ok.
look_behind(GuardPid) ->
    receive
        look ->
            _ = tame_os_process:is_alive(GuardPid) andalso tame_os_process:continue(GuardPid),
            ok;
        _ ->
            erlang:hibernate(?MODULE, look_behind, [GuardPid])
    end.

cannot_start_text(enoent, Program) ->
    io_lib:format("there is no ~ts: ~ts", [Program, tame_native:how_to_build()]);
cannot_start_text(Why, Program) ->
    io_lib:format("~ts does not start: ~ts", [Program, file:format_error(Why)]).

%% What a message to this process means, if it came from the port.
-spec event(term(), state()) -> event().
event({Port, {data, Data}}, #port{port = Port, reader = Reader} = State) ->
    case is_flood(Data) of
        true ->
            {kill, flood};
        false ->
            case tame_control:feed(Data, Reader) of
                {ok, Frames, More} -> {frames, Frames, State#port{reader = More}};
                {bad, Frames, Sentence} -> {frames, Frames ++ [{bad, Sentence}], State}
            end
    end;
event({Port, {exit_status, Status}}, #port{port = Port, signal = Signal} = State) when
    Status > 128, Signal =/= 0
->
    {down, #{signal => tame_signal:name(Status - 128)}, State#port{port = none}};
event({Port, {exit_status, Status}}, #port{port = Port} = State) ->
    {down, #{exit_status => Status}, State#port{port = none}};
event({'DOWN', _, port, Port, _}, #port{port = Port} = State) ->
    {down, #{exit_status => 0}, State#port{port = none}};
event({has_not_ended, Port}, #port{port = Port}) ->
    {kill, {bad_frame, "that it has ended, and had not"}};
event(_Message, _State) ->
    not_ours.

is_flood(Data) ->
    {message_queue_len, Len} = process_info(self(), message_queue_len),
    Len > ?FLOOD_LEN orelse Len * byte_size(Data) > ?FLOOD_BYTES.

%% Code of a library is to run: from now on frames may be as long as messages are.
-spec long(state()) -> state().
long(#port{reader = Reader} = State) ->
    State#port{reader = tame_control:long(Reader)}.

%% The host said that it has ended; its exit status is to follow.
-spec expect_end(#{signal := non_neg_integer(), _ => _}, state()) -> state().
expect_end(#{signal := Signal}, #port{port = Port} = State) ->
    _ = erlang:send_after(?END_MS, self(), {has_not_ended, Port}),
    State#port{signal = Signal}.

%% Hands a frame to the port, or to the outbox while the port takes none: the host does not read.
%% Nothing is done here about an outbox that is full; flush/1 says so.
-spec send(term(), state()) -> state().
send(_Frame, #port{port = none} = State) ->
    State;
send(Frame, #port{port = Port, outbox = Outbox} = State) ->
    State#port{outbox = tame_outbox:send(tame_control:encode(Frame), Port, Outbox)}.

%% waits: there is more, which the port does not take yet.
-spec flush(state()) -> {empty | waits, state()} | full.
flush(#port{port = Port, outbox = Outbox} = State) ->
    case tame_outbox:flush(Port, Outbox) of
        {Left, Flushed} -> {Left, State#port{outbox = Flushed}};
        full -> full
    end.

%% By force, so that a port whose host does not read closes too.
-spec close(state()) -> state().
close(#port{port = none} = State) ->
    State;
close(#port{port = Port} = State) ->
    true = exit(Port, kill),
    State#port{port = none}.

-spec is_open(state()) -> boolean().
is_open(#port{port = Port}) ->
    Port =/= none.

%% 0: none was started, or it had ended before it was asked for.
-spec guard_pid(state()) -> non_neg_integer().
guard_pid(#port{guard_pid = GuardPid}) ->
    GuardPid.
