%% One host: the OS process in which a NIF library runs isolated (c_src/host), its control port, and
%% the ring of shared memory by which calls reach it.
%%
%%              hello, ring, all loaded            stop
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
%% It is told to stop in any state: crashed and failed end at once, starting and killing when the OS
%% process has. In draining and leaving the exit of the OS process ends it too, and a time limit
%% that passes leads to killing. A host that cannot load its library is refused, and not started
%% again, if no host has loaded that library yet: another try would fail the same way. Later every
%% failure is a crash: a program that cannot be started now, for lack of a file or of memory, is
%% started again after the back-off, like a program that died of a signal.
%%
%% Time limits: starting has start_ms, crashed its back-off (tame_backoff), draining ?DRAIN_MS,
%% leaving ?LEAVE_MS, killing ?GONE_MS. In up, tame_heartbeat looks at the ring each 100 ms. Nothing
%% here waits for the OS process in any other way: a frame that its port does not take at once goes
%% into the outbox, which is bounded in time and bytes.
%%
%% The OS process is killed by closing its port (tame_host_port). No signal
%% is sent to a pid that the host names.
%%
%% Its libraries are loaded one by one (tame_host_libraries). While it is up, one more is loaded, or
%% one unloaded, when tame_hosts says so; what it does not load then is tame_hosts' to judge.
%%
%% tame_hosts is told {tame_host, Pid, {up, Ring, Libraries} | down | {refused, Why} | failed |
%% {not_loaded, Key, Why}}.
-module(tame_host).
-behaviour(gen_statem).

-include("tame_host.hrl").

-export([start_link/1]).
-export([stop/1]).
-export([restart/1]).
-export([announce/1]).
-export([set_libraries/2]).
-export([give_up/2]).
-export([condemn/3]).
-export([request_info/1]).

%% Internal.
-export([callback_mode/0]).
-export([init/1]).
-export([handle_event/4]).
-export([terminate/3]).

-export_type([spec/0]).
-export_type([why/0]).

%% What a host is started with: the libraries that it is to have, in their order. first: no host of
%% the group has loaded a library yet.
-type spec() :: #{
    group := tame_group:group(),
    libraries := [tame_host_libraries:library()],
    first := boolean(),
    options := tame_isolate_options:options()
}.

%% Why a host is down, as callers see it.
-type why() :: #{
    signal => atom() | integer(),
    exit_status => non_neg_integer(),
    killed => term(),
    limit => tame_host_limits:reached()
}.

-define(DRAIN_MS, 5000).
-define(DRAIN_LOOK_MS, 10).
%% From the frame `stop' to the exit: the library's unload callback.
-define(LEAVE_MS, 2000).
-define(GONE_MS, 1000).
-define(OUTBOX_LOOK_MS, 1).
-spec start_link(spec()) -> gen_statem:start_ret().
start_link(Spec) ->
    gen_statem:start_link(?MODULE, Spec, []).

%% Ends when the calls in flight have been answered, at the latest after some seconds.
-spec stop(pid()) -> ok.
stop(Host) ->
    gen_statem:cast(Host, stop).

%% A host that has failed tries again; any other goes on.
-spec restart(pid()) -> ok.
restart(Host) ->
    gen_statem:cast(Host, restart).

%% Tells tame_hosts once more how it is.
-spec announce(pid()) -> ok.
announce(Host) ->
    gen_statem:cast(Host, announce).

%% The libraries that it is to have from now on. When it is up it loads and unloads them one by one,
%% and tells tame_hosts each time which it has.
-spec set_libraries(pid(), [tame_host_libraries:library()]) -> ok.
set_libraries(Host, Libraries) ->
    gen_statem:cast(Host, {libraries, Libraries}).

%% Ends its OS process, and starts another.
-spec give_up(pid(), term()) -> ok.
give_up(Host, Why) ->
    gen_statem:cast(Host, {give_up, Why}).

%% Ends the OS process behind this ring, if it is still the one, and starts another: it wrote what
%% no host may write.
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
    {ok, starting, #host{spec = Spec, requests = tame_host_requests:new(Spec)}}.

%% Where it was stopped, calls in flight have ended. In any case the port closes, callers are told.
-spec terminate(term(), atom(), #host{}) -> ok.
terminate(_Reason, _State, #host{port = Port} = Host) ->
    _ = ended(#{killed => stopped}, Host#host{port = tame_host_port:close(Port)}),
    ok.

-spec handle_event(gen_statem:event_type(), term(), atom(), #host{}) ->
    gen_statem:event_handler_result(atom()).

%% ---- starting -------------------------------------------------------------------------------

handle_event(enter, _From, starting, #host{spec = #{options := Options}} = Host0) ->
    Starts = Host0#host.starts + 1,
    Host = Host0#host{killed = none, ended = #{}, start_at = now_ms(), starts = Starts},
    case tame_host_port:open(Options) of
        {ok, Port} ->
            #{start_ms := StartMs} = Options,
            {keep_state, Host#host{port = Port}, {state_timeout, StartMs, late}};
        {error, Why, Text} ->
            {keep_state, Host, {state_timeout, 0, {cannot_start, Why, Text}}}
    end;
handle_event(state_timeout, {cannot_start, Why, Text}, starting, Host) ->
    refused_or_crashed(Why, Text, Host);
handle_event(state_timeout, late, starting, Host) ->
    kill(late_start, starting, Host);
handle_event(internal, {frames, Frames}, State, Host) ->
    frames(Frames, State, Host);
handle_event({timeout, outbox}, flush, State, Host) ->
    flushed(State, Host);
%% ---- up -------------------------------------------------------------------------------------

handle_event(enter, _From, up, #host{spec = Spec, os_pid = OsPid} = Host) ->
    #{options := #{answer_ms := AnswerMs}} = Spec,
    Now = now_ms(),
    tame_host_frames:tell(tame_host_frames:status(up, Host), Host),
    telemetry(up, #{start_ms => Now - Host#host.start_at}, #{os_pid => OsPid}, Host),
    Beat = tame_heartbeat:new(AnswerMs),
    {keep_state, Host#host{up_since = Now, spec = Spec#{first := false}, beat = Beat}, look()};
handle_event({timeout, look}, ring, up, Host) ->
    look(Host);
handle_event({timeout, look}, ring, _State, _Host) ->
    keep_state_and_data;
handle_event(cast, {condemn, Ring, Why}, State, #host{ring = Ring} = Host) when
    State =:= up; State =:= draining
->
    kill({bad_reply, Why}, State, Host);
handle_event(cast, {condemn, _Before, _Why}, _State, _Host) ->
    keep_state_and_data;
handle_event(cast, {give_up, Why}, up, Host) ->
    kill(Why, up, Host);
handle_event(cast, {give_up, _Why}, _State, _Host) ->
    keep_state_and_data;
handle_event(cast, {libraries, Libraries}, State, #host{spec = Spec} = Host0) ->
    Host = Host0#host{spec = Spec#{libraries := Libraries}},
    case State of
        up -> flushed(up, element(2, tame_host_frames:advanced(Host)));
        _ -> {keep_state, Host}
    end;
%% ---- killing --------------------------------------------------------------------------------

handle_event(enter, _From, killing, #host{port = Port} = Host) ->
    Closing = Host#host{port = tame_host_port:close(Port), drain_until = now_ms() + ?GONE_MS},
    {keep_state, Closing, {state_timeout, 1, is_gone}};
handle_event(state_timeout, is_gone, killing, #host{port = Port} = Host) ->
    GuardPid = tame_host_port:guard_pid(Port),
    case {tame_os_process:is_alive(GuardPid), now_ms() >= Host#host.drain_until} of
        {true, false} ->
            {keep_state_and_data, {state_timeout, 2, is_gone}};
        {_, IsLate} ->
            _ = IsLate andalso has_not_ended(GuardPid, Host),
            down(Host#host.killed_in, #{killed => Host#host.killed}, Host)
    end;
%% ---- crashed, failed ------------------------------------------------------------------------

handle_event(enter, _From, crashed, Host) ->
    tame_host_frames:tell(down, Host),
    {keep_state_and_data, {state_timeout, back_off_ms(Host), start}};
handle_event(state_timeout, start, crashed, Host) ->
    {next_state, starting, Host};
handle_event(enter, _From, failed, Host) ->
    tame_host_frames:tell(failed, Host),
    keep_state_and_data;
handle_event(cast, restart, failed, Host) ->
    {next_state, starting, Host#host{backoff = tame_backoff:new()}};
handle_event(cast, restart, _State, _Host) ->
    keep_state_and_data;
%% ---- draining, leaving ----------------------------------------------------------------------

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
    {keep_state, tame_host_frames:send(stop, Host), {state_timeout, ?LEAVE_MS, late}};
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
%% ---- in every state -------------------------------------------------------------------------

handle_event(cast, announce, State, Host) ->
    tame_host_frames:tell(tame_host_frames:status(State, Host), Host),
    keep_state_and_data;
handle_event({call, From}, info, State, #host{os_pid = OsPid, ring = Ring} = Host) ->
    Info = #{
        state => State,
        os_pid => OsPid,
        crashes_in_row => tame_backoff:in_row(Host#host.backoff),
        starts => Host#host.starts,
        libraries => map_size(tame_host_libraries:loaded_all(Host#host.libraries)),
        up_ms => if State =:= up -> now_ms() - Host#host.up_since; true -> 0 end,
        rss_bytes => tame_os_process:rss_bytes(OsPid),
        ring => if Ring =:= none -> #{}; true -> tame_ring:info(Ring) end
    },
    {keep_state_and_data, {reply, From, Info}};
handle_event(info, {'DOWN', Ref, process, _, _}, State, #host{requests = Requests} = Host) ->
    case tame_host_requests:down(Ref, Requests) of
        {Id, Others} ->
            flushed(State, tame_host_frames:send({down, Id}, Host#host{requests = Others}));
        error -> keep_state_and_data
    end;
handle_event(info, {tame_private, Ref, IsPrivate}, State, #host{requests = Requests} = Host) ->
    case tame_host_requests:answered(Ref, IsPrivate, Requests) of
        {Id, Answer, Later} ->
            Told = tame_host_frames:send({answer, Id, Answer}, Host#host{requests = Later}),
            flushed(State, Told);
        %% Of a host that has ended.
        error ->
            keep_state_and_data
    end;
handle_event(info, {tame_unread, Seen}, _State, #host{requests = Requests} = Host) ->
    {keep_state, Host#host{requests = tame_host_requests:looked(Seen, Requests)}};
%% Distribution started or stopped: pids and references are written with another name from now on.
handle_event(info, {Change, _, _}, State, Host) when Change =:= nodeup; Change =:= nodedown ->
    flushed(State, tame_host_frames:named(Host));
%% Until its heap is collected, this process keeps the resources that frames have named, and rings
%% that are closed, which are gigabytes of address space.
handle_event(info, let_go, _State, _Host) ->
    true = erlang:garbage_collect(),
    keep_state_and_data;
handle_event(info, Message, State, #host{port = Port} = Host) ->
    case tame_host_port:event(Message, Port) of
        {frames, Frames, Later} ->
            _ = lists:any(fun tame_host_frames:names_resources/1, Frames) andalso (self() ! let_go),
            frames(Frames, State, Host#host{port = Later});
        {kill, Why} -> kill(Why, State, Host);
        {down, Why, Later} -> down(State, reached(Why, Host), Host#host{port = Later});
        not_ours -> keep_state_and_data
    end.

in_flight(Ring) ->
    {_Answered, InUse, _UntakenMs} = tame_ring:pulse(Ring),
    InUse.

%% ---- the look at the ring -------------------------------------------------------------------

look() ->
    {{timeout, look}, tame_heartbeat:look_ms(), ring}.

look(#host{ring = Ring, beat = Beat, spec = #{options := #{grace_ms := GraceMs}}} = Host) ->
    IsLate = tame_host_libraries:is_late(now_ms(), Host#host.libraries),
    case tame_ring:abandoned(Ring, GraceMs) of
        {0, _Untouched} when IsLate ->
            kill(late_load, up, Host);
        {0, Untouched} ->
            {Answered, _InUse, UntakenMs} = tame_ring:pulse(Ring),
            {Actions, Later} = tame_heartbeat:look({Answered, UntakenMs, Untouched}, Beat),
            acted(Actions, Host#host{beat = Later});
        {_Taken, _} ->
            kill(overdue, up, Host)
    end.

acted([], Host) -> flushed(up, Host, [look()]);
acted([ping | Actions], Host) ->
    Told = tame_host_frames:send(tame_host_start:clock(), Host),
    acted(Actions, tame_host_frames:send({ping, 0}, Told));
acted([grow | Actions], Host) -> acted(Actions, tame_host_frames:send(grow, Host));
acted([{kill, Why} | _], Host) -> kill(Why, up, Host).

%% ---- what is sent ---------------------------------------------------------------------------

%% The end of each event that may have sent something: tries once more what the port has not taken,
%% and again soon.
flushed(State, Host) ->
    flushed(State, Host, []).

flushed(State, #host{port = Port} = Host, Actions) ->
    case tame_host_port:flush(Port) of
        {empty, Flushed} ->
            {keep_state, Host#host{port = Flushed}, Actions};
        {waits, Flushed} ->
            Again = {{timeout, outbox}, ?OUTBOX_LOOK_MS, flush},
            {keep_state, Host#host{port = Flushed}, [Again | Actions]};
        full ->
            kill(not_reading, State, Host)
    end.

%% ---- its end --------------------------------------------------------------------------------

kill(Why, State, Host) when
    State =:= starting; State =:= up; State =:= draining; State =:= leaving
->
    {next_state, killing, Host#host{killed = Why, killed_in = State}};
kill(_Why, _State, _Host) ->
    keep_state_and_data.

%% As kill/3, where the frame has changed what is known of the host.
killed(Why, State, Host) ->
    case kill(Why, State, Host) of
        keep_state_and_data -> {keep_state, Host};
        Next -> Next
    end.

has_not_ended(GuardPid, #host{spec = #{group := Group}}) ->
    Format = "tame: OS process ~b, which ran a host of ~tp, has not ended within ~b ms",
    logger:error(Format, [GuardPid, Group, ?GONE_MS]).

reached(Why, #host{ended = Ended, spec = #{options := #{limits := Limits}}}) ->
    tame_host_limits:reached(Why, Ended, Limits).

%% The OS process has ended, or its port has.
down(State, Why, #host{stopping = true} = Host) when State =/= killing ->
    {stop, normal, ended(Why, Host)};
down(starting, Why, #host{spec = #{first := true, options := Options}} = Host) ->
    refused_or_crashed(crashed, tame_host_start:not_loaded_text(Why, Options), Host);
down(State, Why, Host) when State =:= starting; State =:= up ->
    crashed(State, Why, Host);
down(_State, _Why, Host) ->
    {keep_state, Host}.

crashed(State, Why, #host{spec = #{group := Group, options := Options}} = Host0) ->
    Now = now_ms(),
    {When, UpMs} =
        case State of
            up -> {{up, Now - Host0#host.up_since}, Now - Host0#host.up_since};
            starting -> {starting, 0}
        end,
    telemetry(down, #{up_ms => UpMs}, #{why => Why, os_pid => Host0#host.os_pid}, Host0),
    Report = (Host0#host.ended)#{
        library => Group,
        os_pid => Host0#host.os_pid,
        why => Why,
        state => State,
        up_ms => UpMs,
        start => Host0#host.starts + 1
    },
    Host = ended(Why, Host0#host{
        reports = tame_crash_report:log(Report, Now, Host0#host.reports),
        backoff = tame_backoff:crashed(When, Now, Options, Host0#host.backoff)
    }),
    case tame_backoff:has_failed(Options, Host#host.backoff) of
        true -> {next_state, failed, Host};
        false -> {next_state, crashed, Host}
    end.

back_off_ms(#host{spec = #{options := Options}, backoff = Backoff}) ->
    tame_backoff:delay_ms(Options, Backoff).

%% Every caller that waits for it is told.
ended(Why, #host{ring = Ring, requests = Requests} = Host) ->
    _ = Ring =/= none andalso tame_ring:close(Ring, Why),
    _ = Ring =/= none andalso (self() ! let_go),
    Host#host{
        port = tame_host_port:none(),
        ring = none,
        libraries = tame_host_libraries:new(),
        beat = none,
        os_pid = 0,
        requests = tame_host_requests:closed(Requests),
        named = undefined
    }.

%% The host says that it cannot load the library, or has not come so far.
refused_or_crashed(Reason, Text, #host{spec = #{first := true}} = Host) ->
    tame_host_frames:tell({refused, #{reason => Reason, text => Text}}, Host),
    {stop, normal, Host};
refused_or_crashed(Reason, Text, #host{port = Port, ended = Ended} = Host0) ->
    Host = Host0#host{ended = Ended#{text => Text}},
    case tame_host_port:is_open(Port) of
        true -> kill(Reason, starting, Host);
        false -> crashed(starting, #{killed => Reason}, Host)
    end.

%% ---- frames ---------------------------------------------------------------------------------

%% Each frame is taken in the state that the one before it led to.
frames([], State, Host) ->
    flushed(State, Host);
frames([Frame | Frames], State, Host) ->
    case tame_host_frames:frame(Frame, State, Host) of
        {ok, Later} -> frames(Frames, State, Later);
        {up, Later} -> {next_state, up, Later, {next_event, internal, {frames, Frames}}};
        {refused, Reason, Text} -> refused_or_crashed(Reason, Text, Host);
        {bad, Sentence} -> kill({bad_frame, lists:flatten(Sentence)}, State, Host);
        {kill, Why, Later} -> killed(Why, State, Later)
    end.

%% ---- small things ---------------------------------------------------------------------------

telemetry(Name, Measurements, Metadata, #host{spec = #{group := Group}}) ->
    tame_telemetry:execute([tame, host, Name], Measurements, Metadata#{library => Group}).

now_ms() ->
    erlang:monotonic_time(millisecond).
