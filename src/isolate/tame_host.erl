%% One host: the OS process in which a NIF library runs isolated (c_src/host), its control port, and
%% the ring of shared memory by which calls reach it.
%%
%%              hello, ring, loaded                stop
%%   starting ────────────────────▶ up ───────────────────▶ draining ─ no call in flight ─▶ leaving
%%     ▲  │ start_ms, bad frame      │ overdue, not answering,  │ drain_ms                    │ exit
%%     │  │                          │ bad frame, bad reply     ▼                             ▼
%%     │  └──────────▶ killing ◀─────┴──────────────────────── killing ─────── gone ───────▶ ends
%%     │ exit            │ gone
%%     │  ▼              ▼         exit, in up
%%     └─ crashed ◀──────┴──────────────────────
%%   back off │ intensity exceeded
%%            ▼
%%          failed ──restart──▶ starting
%%
%% It is told to stop in any state: crashed and failed end at once, starting and killing when the OS process has.
%% A host that has never loaded its library, and whose pool has not seen it loaded either, is refused: another
%% try would come to the same. After that every failure is a crash: a program that cannot be started now, for lack
%% of a file or of memory, is started again after the back-off, as one that died of a signal.
%%
%% Time limits: starting has start_ms, crashed its back-off, which grows from crash to crash up to a ceiling and
%% begins anew after a second up, draining ?DRAIN_MS, leaving ?LEAVE_MS, killing ?GONE_MS. In up, tame_heartbeat
%% looks at the ring each 100 ms. Nothing here waits for the OS process in any other way: a frame that its port does
%% not take at once stands in the outbox, which is bounded in time and bytes.
%%
%% The OS process is killed by closing its port: its guard, a process that runs no code of the library, sees that
%% and ends it with SIGKILL. What the host says of itself, its pid first, is never what a signal is sent by.
%%
%% The pool of its module is told {tame_host, Pid, {up, Ring, Loaded} | down | {refused, Why} | failed}.
-module(tame_host).
-behaviour(gen_statem).

-export([start_link/1]).
-export([stop/1]).
-export([restart/1]).
-export([announce/1]).
-export([condemn/3]).
-export([request_info/1]).

%% Internal.
-export([callback_mode/0]).
-export([init/1]).
-export([handle_event/4]).
-export([terminate/3]).

-export_type([spec/0]).
-export_type([loaded/0]).
-export_type([why/0]).

%% What a host is started with. functions are those of the library's table as they were probed; the module was
%% bound to them by number. first: no host has loaded this library yet.
-type spec() :: #{
    module := module(),
    functions := [{atom(), arity()}],
    path := file:filename_all(),
    load_info := term(),
    first := boolean(),
    options := tame_isolation:options()
}.

%% The library as it is loaded. wants_caller: it asks who calls it, so each call says so. sends: it may send
%% messages, so it is noted which processes it was given. resources: a call may have to go to a certain host.
-type loaded() :: #{wants_caller := boolean(), sends := boolean(), resources := boolean()}.

%% Why a host is down, as callers see it.
-type why() :: #{signal => atom() | integer(), exit_status => non_neg_integer(), killed => term()}.

-define(LEASES, 256).
%% The most that a ring takes besides its areas: 1024 slots of 64 KiB, and its header.
-define(SLOTS_BYTES, 1 bsl 27).
-define(DRAIN_MS, 5000).
-define(DRAIN_LOOK_MS, 10).
%% From the frame `stop' to the exit: the library's unload callback.
-define(LEAVE_MS, 2000).
-define(GONE_MS, 1000).
%% A host that was up for this long has shown that it can be.
-define(STEADY_MS, 1000).
-define(START_AGAIN_MS, 20).
-define(OUTBOX_LOOK_MS, 1).
%% What the port has brought and nobody has read yet: messages, of up to 64 KiB each, and about how many bytes, if
%% they are like the one that is being read.
-define(FLOOD_LEN, 20000).
-define(FLOOD_BYTES, 1 bsl 27).
-define(MONITORS_MAX, 100000).
%% Lines of a host's log, in each second.
-define(LOGS_MAX, 10).
%% The tables of signals of Linux.
-define(SIGNALS, #{
    1 => sighup, 2 => sigint, 3 => sigquit, 4 => sigill, 5 => sigtrap, 6 => sigabrt, 7 => sigbus,
    8 => sigfpe, 9 => sigkill, 11 => sigsegv, 13 => sigpipe, 14 => sigalrm, 15 => sigterm,
    24 => sigxcpu, 25 => sigxfsz, 31 => sigsys
}).

-record(host, {
    spec :: spec(),
    port = none :: none | port(),
    %% The guard, as the VM knows it. 0: there is none.
    guard_pid = 0 :: non_neg_integer(),
    reader = tame_control:new() :: tame_control:reader(),
    outbox = tame_outbox:new() :: tame_outbox:outbox(),
    %% As the host says; a child of the guard.
    os_pid = 0 :: non_neg_integer(),
    ring = none :: none | tame_ring:ring(),
    loaded = none :: none | loaded(),
    beat = none :: none | tame_heartbeat:state(),
    monitors = #{} :: #{reference() => integer(), integer() => reference()},
    %% The name that the host knows this node by.
    named :: undefined | {node(), non_neg_integer()},
    %% When it crashed, in ms, newest first, no older than the intensity looks back; and in a row.
    crashes = [] :: [integer()],
    crashes_in_row = 0 :: non_neg_integer(),
    crashed_in = up :: starting | up,
    starts = 0 :: non_neg_integer(),
    start_at = 0 :: integer(),
    up_since = never :: never | integer(),
    drain_until = 0 :: integer(),
    stopping = false :: boolean(),
    %% Why it is being killed, and in which state that was.
    killed = none :: term(),
    killed_in = starting :: starting | up | draining | leaving,
    %% What the guard said of its end.
    ended = #{} :: map(),
    reports = tame_crash_report:new() :: tame_crash_report:state(),
    logs = {0, 0} :: {Second :: integer(), Count :: non_neg_integer()}
}).

-spec start_link(spec()) -> gen_statem:start_ret().
start_link(Spec) ->
    gen_statem:start_link(?MODULE, Spec, []).

%% Ends when the calls in flight have been answered, at the latest after some seconds.
-spec stop(pid()) -> ok.
stop(Host) ->
    gen_statem:cast(Host, stop).

%% One that has failed tries again; any other goes on.
-spec restart(pid()) -> ok.
restart(Host) ->
    gen_statem:cast(Host, restart).

%% Tells the pool once more how it is.
-spec announce(pid()) -> ok.
announce(Host) ->
    gen_statem:cast(Host, announce).

%% Ends the OS process behind this ring, if it is still the one, and starts another: it wrote what none may write.
-spec condemn(pid(), tame_ring:ring(), term()) -> ok.
condemn(Host, Ring, Why) ->
    gen_statem:cast(Host, {condemn, Ring, Why}).

%% What tame:info/0 says of it, by gen_statem:receive_response/2.
-spec request_info(pid()) -> gen_statem:request_id().
request_info(Host) ->
    gen_statem:send_request(Host, info).

-spec callback_mode() -> [handle_event_function | state_enter].
callback_mode() ->
    [handle_event_function, state_enter].

-spec init(spec()) -> gen_statem:init_result(atom()).
init(Spec) ->
    process_flag(trap_exit, true),
    ok = net_kernel:monitor_nodes(true, [{node_type, all}, nodedown_reason]),
    {ok, starting, #host{spec = Spec}}.

%% An orderly end lets calls in flight end, as `draining' does. Whatever the reason, the port closes and callers are
%% told.
-spec terminate(term(), atom(), #host{}) -> ok.
terminate(Reason, State, Host) when State =:= up; State =:= draining; State =:= leaving ->
    _ = is_orderly(Reason) andalso drain(Host, now_ms() + ?DRAIN_MS),
    finish(Host);
terminate(_Reason, _State, Host) ->
    finish(Host).

is_orderly(normal) -> true;
is_orderly(shutdown) -> true;
is_orderly({shutdown, _}) -> true;
is_orderly(_) -> false.

drain(#host{port = none}, _Until) ->
    ok;
drain(#host{ring = Ring, port = Port} = Host, Until) ->
    case in_flight(Ring) > 0 andalso now_ms() < Until of
        true ->
            receive
                {Port, {exit_status, _}} -> ok
            after ?DRAIN_LOOK_MS -> drain(Host, Until)
            end;
        false ->
            _ = send(stop, Host),
            receive
                {Port, {exit_status, _}} -> ok
            after ?LEAVE_MS -> ok
            end
    end.

finish(Host) ->
    close_port(Host),
    _ = ended(Host, #{killed => stopped}),
    ok.

-spec handle_event(gen_statem:event_type(), term(), atom(), #host{}) ->
    gen_statem:event_handler_result(atom()).

%% ---- starting -----------------------------------------------------------------------------------

handle_event(enter, _From, starting, #host{spec = #{options := Options}} = Host0) ->
    Host = Host0#host{killed = none, ended = #{}, start_at = now_ms(), starts = Host0#host.starts + 1},
    case open(Options) of
        {ok, Port, GuardPid} ->
            #{start_ms := StartMs} = Options,
            {keep_state, Host#host{port = Port, guard_pid = GuardPid, reader = tame_control:new()},
                {state_timeout, StartMs, late}};
        {error, Why} ->
            {keep_state, Host, {state_timeout, 0, {cannot_start, Why}}}
    end;
handle_event(state_timeout, {cannot_start, Why}, starting, #host{spec = #{options := Options}} = Host) ->
    refused_or_crashed(Why, cannot_start_text(Why, program(Options)), Host);
handle_event(state_timeout, late, starting, Host) ->
    kill(late_start, starting, Host);
%% ---- the port -----------------------------------------------------------------------------------

handle_event(info, {Port, {data, Data}}, State, #host{port = Port, reader = Reader} = Host) ->
    case is_flood(Data) of
        true ->
            kill(flood, State, Host);
        false ->
            case tame_control:feed(Data, Reader) of
                {ok, Frames, More} -> frames(Frames, State, Host#host{reader = More});
                {bad, Frames, Sentence} -> frames(Frames ++ [{bad, Sentence}], State, Host)
            end
    end;
handle_event(internal, {frames, Frames}, State, Host) ->
    frames(Frames, State, Host);
handle_event(info, {Port, {exit_status, Status}}, State, #host{port = Port} = Host) ->
    down(State, why(Status), Host#host{port = none});
handle_event(info, {'EXIT', Port, _}, State, #host{port = Port} = Host) ->
    down(State, #{exit_status => 0}, Host#host{port = none});
handle_event(info, {has_not_ended, Port}, State, #host{port = Port} = Host) ->
    kill({bad_frame, "that it has ended, and had not"}, State, Host);
handle_event({timeout, outbox}, flush, State, Host) ->
    kept(State, Host);
%% ---- up -------------------------------------------------------------------------------------------

handle_event(enter, _From, up, #host{spec = Spec, os_pid = OsPid} = Host) ->
    #{options := #{answer_ms := AnswerMs, workers := Workers}} = Spec,
    Now = now_ms(),
    tell(status(up, Host), Host),
    telemetry(up, #{start_ms => Now - Host#host.start_at}, #{os_pid => OsPid}, Host),
    Beat = tame_heartbeat:new(AnswerMs, Workers),
    {keep_state, Host#host{up_since = Now, spec = Spec#{first := false}, beat = Beat}, look()};
handle_event({timeout, look}, ring, up, Host) ->
    look(Host);
handle_event({timeout, look}, ring, _State, _Host) ->
    keep_state_and_data;
handle_event(cast, {condemn, Ring, Why}, State, #host{ring = Ring} = Host) when State =:= up; State =:= draining ->
    kill({bad_reply, Why}, State, Host);
handle_event(cast, {condemn, _Before, _Why}, _State, _Host) ->
    keep_state_and_data;
%% ---- killing --------------------------------------------------------------------------------------

handle_event(enter, _From, killing, Host) ->
    close_port(Host),
    {keep_state, Host#host{port = none, drain_until = now_ms() + ?GONE_MS}, {state_timeout, 1, is_gone}};
handle_event(state_timeout, is_gone, killing, #host{guard_pid = GuardPid, drain_until = Until} = Host) ->
    Late = now_ms() >= Until,
    case Late orelse not is_process(GuardPid) of
        true ->
            _ = Late andalso
                logger:error("tame: OS process ~b, which ran a host of ~tp, has not ended within ~b ms", [
                    GuardPid, map_get(module, Host#host.spec), ?GONE_MS
                ]),
            down(Host#host.killed_in, #{killed => Host#host.killed}, Host);
        false ->
            {keep_state_and_data, {state_timeout, 2, is_gone}}
    end;
%% ---- crashed, failed ------------------------------------------------------------------------------

handle_event(enter, _From, crashed, Host) ->
    tell(down, Host),
    {keep_state_and_data, {state_timeout, back_off(Host), start}};
handle_event(state_timeout, start, crashed, Host) ->
    {next_state, starting, Host};
handle_event(enter, _From, failed, Host) ->
    tell(failed, Host),
    keep_state_and_data;
handle_event(cast, restart, failed, Host) ->
    {next_state, starting, Host#host{crashes = [], crashes_in_row = 0}};
handle_event(cast, restart, _State, _Host) ->
    keep_state_and_data;
%% ---- draining, leaving ------------------------------------------------------------------------------

handle_event(enter, _From, draining, Host) ->
    {keep_state, Host#host{drain_until = now_ms() + ?DRAIN_MS}, {state_timeout, 0, in_flight}};
handle_event(state_timeout, in_flight, draining, #host{ring = Ring, drain_until = Until} = Host) ->
    case in_flight(Ring) of
        0 ->
            {next_state, leaving, Host};
        _ ->
            case now_ms() >= Until of
                true -> kill(late_stop, draining, Host);
                false -> {keep_state_and_data, {state_timeout, ?DRAIN_LOOK_MS, in_flight}}
            end
    end;
handle_event(enter, _From, leaving, Host) ->
    {keep_state, send(stop, Host), {state_timeout, ?LEAVE_MS, late}};
handle_event(state_timeout, late, leaving, Host) ->
    kill(late_stop, leaving, Host);
handle_event(cast, stop, State, Host) when State =:= crashed; State =:= failed ->
    {stop, normal, Host};
handle_event(cast, stop, up, Host) ->
    {next_state, draining, Host#host{stopping = true}};
handle_event(cast, stop, starting, Host) ->
    kill(stopped, starting, Host#host{stopping = true});
handle_event(cast, stop, _State, Host) ->
    {keep_state, Host#host{stopping = true}};
%% ---- in every state -----------------------------------------------------------------------------------

handle_event(cast, announce, State, Host) ->
    tell(status(State, Host), Host),
    keep_state_and_data;
handle_event({call, From}, info, State, #host{os_pid = OsPid, ring = Ring} = Host) ->
    Info = #{
        state => State,
        os_pid => OsPid,
        crashes_in_row => Host#host.crashes_in_row,
        starts => Host#host.starts,
        rss_bytes => rss_bytes(OsPid),
        ring => if Ring =:= none -> #{}; true -> tame_ring:info(Ring) end
    },
    {keep_state_and_data, {reply, From, Info}};
handle_event(info, {'DOWN', Ref, process, _, _}, State, #host{monitors = Monitors} = Host) ->
    case maps:take(Ref, Monitors) of
        {Id, Others} -> kept(State, send({down, Id}, Host#host{monitors = maps:remove(Id, Others)}));
        error -> keep_state_and_data
    end;
%% Distribution started or stopped: pids and references are written with another name from now on.
handle_event(info, {Change, _, _}, State, Host) when Change =:= nodeup; Change =:= nodedown ->
    kept(State, named(Host));
handle_event(info, _Late, _State, _Host) ->
    keep_state_and_data.

is_flood(Data) ->
    {message_queue_len, Len} = process_info(self(), message_queue_len),
    Len > ?FLOOD_LEN orelse Len * byte_size(Data) > ?FLOOD_BYTES.

status(up, #host{ring = Ring, loaded = Loaded}) -> {up, Ring, Loaded};
status(failed, _Host) -> failed;
status(_State, _Host) -> down.

in_flight(Ring) ->
    {_Answered, InUse, _OldestMs} = tame_ring:pulse(Ring),
    InUse.

%% ---- the look at the ring -----------------------------------------------------------------------------

look() ->
    {{timeout, look}, tame_heartbeat:look_ms(), ring}.

look(#host{ring = Ring, beat = Beat, spec = #{options := #{grace_ms := GraceMs}}} = Host) ->
    case tame_ring:abandoned(Ring, GraceMs) of
        {0, Untouched} ->
            {Answered, InUse, OldestMs} = tame_ring:pulse(Ring),
            {Actions, Later} = tame_heartbeat:look({Answered, InUse, OldestMs, Untouched}, Beat),
            acted(Actions, Host#host{beat = Later});
        {_Taken, _} ->
            kill(overdue, up, Host)
    end.

acted([], Host) -> kept(up, Host, [look()]);
acted([ping | Actions], Host) -> acted(Actions, send({ping, 0}, Host));
acted([grow | Actions], Host) -> acted(Actions, send(grow, Host));
acted([{kill, Why} | _], Host) -> kill(Why, up, Host).

%% ---- the OS process ---------------------------------------------------------------------------------

program(Options) ->
    maps:get(host, Options, tame_native:path("tame_host")).

open(#{workers := Workers} = Options) ->
    Args = ["--workers", integer_to_list(Workers)],
    Program = program(Options),
    try tame_native:runnable(Program) andalso open_port({spawn_executable, Program}, [
        nouse_stdio, binary, exit_status, {args, Args}
    ]) of
        Port ->
            case erlang:port_info(Port, os_pid) of
                {os_pid, GuardPid} -> {ok, Port, GuardPid};
                %% It has ended already; its exit status is on the way.
                undefined -> {ok, Port, 0}
            end
    catch
        error:Why when is_atom(Why) -> {error, Why};
        error:_ -> {error, system_limit}
    end.

cannot_start_text(enoent, Program) ->
    io_lib:format("there is no ~ts: ~ts", [Program, tame_native:how_to_build()]);
cannot_start_text(Why, Program) ->
    io_lib:format("~ts does not start: ~ts", [Program, file:format_error(Why)]).

%% Hands a frame to the port, or to the outbox while the port takes none: the host does not read. Nothing
%% is done here about an outbox that is full; kept/3 sees that.
send(_Frame, #host{port = none} = Host) ->
    Host;
send(Frame, #host{port = Port, outbox = Outbox} = Host) ->
    Host#host{outbox = tame_outbox:send(tame_control:encode(Frame), Port, Outbox)}.

%% How each event ends that may have sent something: what stands in the outbox is tried again now, and soon.
kept(State, Host) ->
    kept(State, Host, []).

kept(State, #host{port = Port, outbox = Outbox} = Host, Actions) ->
    case tame_outbox:flush(Port, Outbox) of
        {empty, Flushed} -> {keep_state, Host#host{outbox = Flushed}, Actions};
        {waits, Flushed} -> {keep_state, Host#host{outbox = Flushed}, [{{timeout, outbox}, ?OUTBOX_LOOK_MS, flush} | Actions]};
        full -> kill(not_reading, State, Host)
    end.

%% By force, so that a port whose host does not read closes too. Its guard ends the OS process then.
close_port(#host{port = none}) ->
    ok;
close_port(#host{port = Port}) ->
    true = exit(Port, kill),
    ok.

kill(Why, State, Host) when State =:= starting; State =:= up; State =:= draining; State =:= leaving ->
    {next_state, killing, Host#host{killed = Why, killed_in = State}};
kill(_Why, _State, _Host) ->
    keep_state_and_data.

%% Where there is no /proc it is taken for gone.
is_process(OsPid) ->
    OsPid > 0 andalso element(1, file:read_link_info(proc(OsPid, ""), [raw])) =:= ok.

%% Whether the process that a host says it is is the guard's child, or the guard itself where there is none.
is_child(OsPid, GuardPid) ->
    case read_proc(proc(OsPid, "/stat")) of
        {ok, Stat} ->
            %% 5 (a name with ) in it) S 4 ...
            [After | _] = lists:reverse(binary:split(Stat, <<") ">>, [global])),
            [_State, Parent | _] = binary:split(After, <<" ">>, [global]),
            OsPid =:= GuardPid orelse Parent =:= integer_to_binary(GuardPid);
        {error, _} ->
            not filelib:is_dir("/proc/self")
    end.

proc(OsPid, Name) ->
    "/proc/" ++ integer_to_list(OsPid) ++ Name.

read_proc(Path) ->
    case file:open(Path, [read, raw, binary]) of
        {ok, File} ->
            Read = file:read(File, 4096),
            ok = file:close(File),
            if Read =:= eof -> {error, eof}; true -> Read end;
        Error ->
            Error
    end.

%% The second field, in pages. 0 where there is no /proc, or no such process.
rss_bytes(OsPid) ->
    case read_proc(proc(OsPid, "/statm")) of
        {ok, Text} ->
            [_, Pages | _] = binary:split(Text, <<" ">>, [global]),
            binary_to_integer(Pages) * 4096;
        {error, _} ->
            0
    end.

%% ---- its end --------------------------------------------------------------------------------------------

why(Status) when Status > 128 -> #{signal => maps:get(Status - 128, ?SIGNALS, Status - 128)};
why(Status) -> #{exit_status => Status}.

%% The OS process has ended, or its port has.
down(State, Why, #host{stopping = true} = Host) when State =/= killing ->
    {stop, normal, ended(Host, Why)};
down(starting, Why, #host{spec = #{first := true}} = Host) ->
    refused_or_crashed(crashed, not_loaded_text(Why, Host), Host);
down(State, Why, Host) when State =:= starting; State =:= up ->
    crashed(State, Why, Host);
down(_State, _Why, Host) ->
    {keep_state, Host}.

crashed(State, Why, Host0) ->
    Now = now_ms(),
    UpMs = if State =:= up -> Now - Host0#host.up_since; true -> 0 end,
    telemetry(down, #{up_ms => UpMs}, #{why => Why, os_pid => Host0#host.os_pid}, Host0),
    Report = (Host0#host.ended)#{
        library => map_get(module, Host0#host.spec),
        os_pid => Host0#host.os_pid,
        why => Why,
        state => State,
        up_ms => UpMs,
        start => Host0#host.starts + 1
    },
    Reported = Host0#host{reports = tame_crash_report:log(Report, Now, Host0#host.reports)},
    Host = counted(State, ended(Reported, Why)),
    case is_failed(Host) of
        true -> {next_state, failed, Host};
        false -> {next_state, crashed, Host}
    end.

not_loaded_text(#{killed := late_start}, #host{spec = #{options := #{start_ms := StartMs}}}) ->
    io_lib:format("the host did not load the library within ~b ms (start_ms)", [StartMs]);
not_loaded_text(#{killed := {bad_frame, Sentence}}, _Host) ->
    io_lib:format("the host wrote ~ts", [Sentence]);
not_loaded_text(Why, _Host) ->
    io_lib:format("the host ended while it loaded the library: ~0p", [Why]).

%% Everybody who waits for it is told.
ended(#host{ring = Ring, monitors = Monitors} = Host, Why) ->
    _ = Ring =/= none andalso tame_ring:close(Ring, Why),
    _ = [demonitor(Ref, [flush]) || {Ref, _} <- maps:to_list(Monitors), is_reference(Ref)],
    Host#host{
        ring = none,
        loaded = none,
        beat = none,
        os_pid = 0,
        guard_pid = 0,
        monitors = #{},
        named = undefined,
        outbox = tame_outbox:new()
    }.

counted(State, #host{spec = #{options := Options}, crashes_in_row = InRow, crashes = Crashes} = Host) ->
    Now = now_ms(),
    Steady = State =:= up andalso Now - Host#host.up_since >= ?STEADY_MS,
    Recent =
        case Options of
            #{intensity := {_, Ms}} -> [At || At <- Crashes, Now - At < Ms];
            #{intensity := infinity} -> []
        end,
    Host#host{
        crashes = [Now | Recent],
        crashes_in_row = if Steady -> 1; true -> InRow + 1 end,
        crashed_in = State
    }.

is_failed(#host{spec = #{options := #{intensity := infinity}}}) -> false;
is_failed(#host{spec = #{options := #{intensity := {Most, _}}}, crashes = Crashes}) ->
    length(Crashes) > Most.

%% None after the first crash, then twice as long each time. What does not even start is not tried in a loop, whatever
%% the options say.
back_off(#host{crashes_in_row = InRow}) when InRow =< 1 ->
    0;
back_off(#host{crashed_in = starting} = Host) ->
    max(?START_AGAIN_MS, back_off(Host#host{crashed_in = up}));
back_off(#host{crashes_in_row = InRow, spec = #{options := #{backoff_ms := {First, Ceiling}}}}) ->
    min(Ceiling, First bsl min(InRow - 2, 20)).

%% The host says that it cannot load the library, or has not come so far.
refused_or_crashed(Reason, Text, #host{spec = #{first := true}} = Host) ->
    tell({refused, #{reason => Reason, text => Text}}, Host),
    {stop, normal, Host};
refused_or_crashed(Reason, _Text, #host{port = none} = Host) ->
    crashed(starting, #{killed => Reason}, Host);
refused_or_crashed(Reason, _Text, Host) ->
    kill(Reason, starting, Host).

%% ---- frames -------------------------------------------------------------------------------------------

%% Each frame is taken in the state that the one before it led to.
frames([], State, Host) ->
    kept(State, Host);
frames([Frame | Frames], State, Host) ->
    case frame(Frame, State, Host) of
        {ok, Later} -> frames(Frames, State, Later);
        {up, Later} -> {next_state, up, Later, {next_event, internal, {frames, Frames}}};
        {refused, Reason, Text} -> refused_or_crashed(Reason, Text, Host);
        {bad, Sentence} -> kill({bad_frame, lists:flatten(Sentence)}, State, Host)
    end.

frame({hello, OsPid}, starting, #host{os_pid = 0, spec = Spec, guard_pid = GuardPid} = Host) ->
    #{options := #{area_bytes := AreaBytes} = Options} = Spec,
    case is_child(OsPid, GuardPid) of
        true ->
            Geometry = maps:with([slots, slot_bytes, workers], Options),
            Ring = {ring, Geometry#{request_bytes => AreaBytes, reply_bytes => AreaBytes}},
            {ok, send(Ring, named(Host#host{os_pid = OsPid}))};
        false ->
            {bad, io_lib:format("hello as OS process ~b, which is not the one that was started", [OsPid])}
    end;
frame({ring, Fd}, starting, #host{os_pid = OsPid, ring = none, spec = Spec} = Host) when OsPid > 0 ->
    #{path := Path, module := Module, load_info := LoadInfo, options := Options} = Spec,
    #{area_bytes := AreaBytes} = Options,
    RingOptions = maps:with([max_waiting, spin_us, max_reply_bytes], Options),
    case tame_ring:open(OsPid, Fd, RingOptions#{max_bytes => 2 * AreaBytes + ?SLOTS_BYTES}) of
        {ok, Ring} ->
            Lent = send({leases, tame_ring:leases(Ring, ?LEASES)}, Host),
            {ok, send({load, path_binary(Path), Module, LoadInfo, settings()}, Lent#host{ring = Ring})};
        {error, Why} ->
            {refused, no_ring, io_lib:format("its memory: ~p", [Why])}
    end;
frame({ring_refused, Text}, starting, _Host) ->
    {refused, no_ring, tame_control:printable(Text, 1000)};
frame({loaded, Rows, Loaded}, starting, #host{ring = Ring, spec = #{functions := Functions}} = Host) when
    Ring =/= none
->
    case Rows =:= [{atom_to_binary(Name), Arity} || {Name, Arity} <- Functions] of
        true ->
            {up, Host#host{loaded = Loaded, reader = tame_control:loaded(Host#host.reader)}};
        false ->
            {refused, changed,
                "its functions are not those that it had when the module was isolated: restore it and isolate it anew"}
    end;
frame({refused, Reason, Text}, starting, _Host) ->
    {refused, Reason, tame_control:printable(Text, 4000)};
frame({query, Id, What}, State, Host0) when State =/= killing ->
    %% The first to have heard of a new name may be who asks.
    case answer(What, named(Host0)) of
        {bad, Sentence} -> {bad, Sentence};
        {Answer, Host} -> {ok, send({answer, Id, Answer}, Host)}
    end;
frame({send, Pid, Message, Leases}, _State, #host{ring = Ring, spec = #{module := Module}} = Host0) ->
    Host =
        case node(Pid) =:= node() andalso tame_given:is_given(Module, Pid) of
            true ->
                Pid ! Message,
                Host0;
            false ->
                log("a message to ~p, which it was not given, is dropped", [Pid], Host0)
        end,
    _ = Ring =/= none andalso tame_ring:used(Ring, Leases),
    {ok, Host};
frame({log, Text}, _State, Host) ->
    {ok, log("~ts", [tame_control:printable(Text, 1000)], Host)};
frame({pong, _}, _State, #host{beat = Beat} = Host) when Beat =/= none ->
    {ok, Host#host{beat = tame_heartbeat:pong(Beat)}};
frame({pong, _}, _State, Host) ->
    {ok, Host};
frame({ended, Ended}, _State, #host{port = Port} = Host) ->
    %% The guard's last word: its exit status is on the way, if it is the guard's.
    _ = erlang:send_after(?GONE_MS, self(), {has_not_ended, Port}),
    {ok, Host#host{ended = Ended}};
frame({bad, Sentence}, _State, _Host) ->
    {bad, Sentence};
frame(Frame, State, _Host) ->
    {bad, io_lib:format("~tp, which may not come in the state ~p", [element(1, Frame), State])}.

%% A host's lines come at most ?LOGS_MAX times a second.
log(Format, Args, #host{spec = #{module := Module}, logs = {Second, Count}} = Host) ->
    case erlang:monotonic_time(second) of
        Second when Count >= ?LOGS_MAX ->
            Host;
        Second ->
            logger:warning("tame_host of ~tp: " ++ Format, [Module | Args]),
            Host#host{logs = {Second, Count + 1}};
        Now ->
            logger:warning("tame_host of ~tp: " ++ Format, [Module | Args]),
            Host#host{logs = {Now, 1}}
    end.

named(#host{port = none} = Host) ->
    Host;
named(#host{named = Named} = Host) ->
    case {node(), erlang:system_info(creation)} of
        Named -> Host;
        {Node, Creation} = Name -> send({node, Node, Creation}, Host#host{named = Name})
    end.

path_binary(Path) ->
    unicode:characters_to_binary(Path, unicode, file:native_name_encoding()).

settings() ->
    #{
        otp_release => list_to_binary(erlang:system_info(otp_release)),
        erts => list_to_binary(erlang:system_info(version)),
        schedulers => erlang:system_info(schedulers),
        async_threads => erlang:system_info(thread_pool_size),
        time_offset_ns => erlang:time_offset(nanosecond),
        monotonic_offset_ns => erlang:monotonic_time(nanosecond) - os:perf_counter(nanosecond)
    }.

%% ---- queries ------------------------------------------------------------------------------------------

answer({existing_atom, Name}, Host) ->
    {existing_atom(Name) =/= none, Host};
answer({new_atoms, Names}, Host) ->
    {new_atoms(Names, Host), Host};
answer({phash2, Term}, Host) ->
    {erlang:phash2(Term), Host};
answer({whereis, Name}, #host{spec = #{module := Module}} = Host) ->
    {whereis_given(existing_atom(Name), Module), Host};
answer({alive, Pid}, Host) when is_pid(Pid) ->
    {node(Pid) =:= node() andalso is_process_alive(Pid), Host};
answer({alive, Port}, Host) ->
    {node(Port) =:= node() andalso erlang:port_info(Port, id) =/= undefined, Host};
answer({port_command, Port, Data}, #host{spec = #{module := Module}} = Host) ->
    {tame_given:is_given(Module, Port) andalso commanded(Port, Data), Host};
answer({monitor, Id, _Pid}, #host{monitors = Monitors}) when
    map_size(Monitors) >= 2 * ?MONITORS_MAX; is_map_key(Id, Monitors)
->
    {bad, io_lib:format("monitor ~b, which it has already, or after ~b others", [Id, map_size(Monitors) div 2])};
answer({monitor, Id, Pid}, #host{monitors = Monitors} = Host) ->
    %% The answer decides: of a process that is dead already no `down' follows.
    case node(Pid) =:= node() andalso is_process_alive(Pid) of
        true ->
            Ref = monitor(process, Pid),
            {true, Host#host{monitors = Monitors#{Ref => Id, Id => Ref}}};
        false ->
            {false, Host}
    end;
answer({demonitor, Id}, #host{monitors = Monitors} = Host) ->
    case Monitors of
        #{Id := Ref} -> {demonitor(Ref, [flush, info]), Host#host{monitors = maps:without([Id, Ref], Monitors)}};
        #{} -> {false, Host}
    end;
answer(leases, #host{ring = Ring} = Host) when Ring =/= none ->
    {ok, send({leases, tame_ring:leases(Ring, ?LEASES)}, Host)};
%% As references, which live from when the frame was read.
answer({hold, _Call, Refs}, #host{ring = Ring} = Host) when Ring =/= none ->
    {tame_ring:hold(Ring, Refs), Host};
answer(sync, Host) ->
    {ok, Host};
answer(make_ref, Host) ->
    {make_ref(), Host};
answer({unique_integer, Modifiers}, Host) ->
    {erlang:unique_integer(Modifiers), Host};
answer(_Early, _Host) ->
    {bad, "a query that may not come before its ring"}.

existing_atom(Name) ->
    try
        binary_to_existing_atom(Name, utf8)
    catch
        error:_ -> none
    end.

%% Atoms are never collected: a library that makes them without end must not fill the VM's table. Those that exist
%% already cost nothing.
new_atoms(Names, #host{spec = #{module := Module, options := #{max_atoms := Most}}}) ->
    New = [Name || Name <- Names, existing_atom(Name) =:= none],
    case tame_registry:count_atoms(Module, length(New)) > Most of
        true ->
            _ = tame_registry:count_atoms(Module, -length(New)),
            false;
        false ->
            _ = [binary_to_atom(Name, utf8) || Name <- New],
            ok
    end.

%% What is found is given, unless it is the system's own.
whereis_given(none, _Module) ->
    undefined;
whereis_given(Name, Module) ->
    case whereis(Name) of
        Pid when is_pid(Pid) ->
            case tame_given:is_private(Pid) of
                true ->
                    undefined;
                false ->
                    ok = tame_given:note(Module, Pid),
                    Pid
            end;
        Other ->
            ok = tame_given:note(Module, Other),
            Other
    end.

%% Nothing here waits for a port: one that is busy takes nothing.
commanded(Port, Data) ->
    try
        port_command(Port, Data, [nosuspend])
    catch
        error:_ -> false
    end.

%% ---- small things -------------------------------------------------------------------------------------

%% A pool that is being replaced asks again (announce/1).
tell(What, #host{spec = #{module := Module}}) ->
    tame_pool:tell(Module, {?MODULE, self(), What}).

%% Tells telemetry.
telemetry(Name, Measurements, Metadata, #host{spec = #{module := Module}}) ->
    tame_telemetry:execute([tame, host, Name], Measurements, Metadata#{library => Module}).

now_ms() ->
    erlang:monotonic_time(millisecond).
