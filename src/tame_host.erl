%% One host: the OS process in which a NIF library runs isolated (c_src/host), its control port, and
%% the ring of shared memory by which calls reach it.
%%
%%               hello, loaded                      stop
%%   starting ───────────────────▶ up ───────────────────────▶ draining ──▶ ends
%%     ▲  │ exit, start_ms          │ exit, overdue call           exit, drain_ms
%%     │  ▼                         ▼
%%     └─ crashed ◀─────────────────┘
%%     back off │ intensity exceeded
%%              ▼
%%            failed ──restart──▶ starting
%%
%% Each arrow that is no event is a state time-out: starting has start_ms, crashed its back-off, which grows
%% from crash to crash up to a ceiling and begins anew after a second up, draining has drain_ms. A
%% generic time-out, `overdue', looks in `up' for calls that nobody waits for any more and that go on for
%% longer than grace_ms: such a host is killed, because a NIF cannot be stopped in any other way.
%%
%% The pool that started it is told {tame_host, Pid, {up, Ring, Loaded} | down | {refused, Why} | failed}.
-module(tame_host).
-behaviour(gen_statem).

-export([start_link/1]).
-export([stop/1]).
-export([restart/1]).
-export([info/1]).

%% Internal.
-export([words/0]).
-export([callback_mode/0]).
-export([init/1]).
-export([handle_event/4]).
-export([terminate/3]).

-export_type([spec/0]).
-export_type([loaded/0]).
-export_type([why/0]).

%% What a host is started with. `pool' is told; the rest is as in tame_isolation:options().
-type spec() :: #{
    pool := pid(),
    module := module(),
    path := file:filename_all(),
    load_info := term(),
    options := tame_isolation:options()
}.

%% The library as it is loaded. wants_caller: it asks who calls it, so each call says so.
-type loaded() :: #{functions := [{atom(), arity()}], wants_caller := boolean()}.

%% Why a host is down, as callers see it.
-type why() :: #{signal => atom(), exit_status => non_neg_integer(), killed => atom()}.

-define(LEASES, 256).
%% The most that a ring takes besides its areas: 1024 slots of 64 KiB, and a page.
-define(SLOTS_BYTES, 1 bsl 27).
-define(DRAIN_MS, 5000).
%% A host that was up for so long has shown that it can be.
-define(STEADY_MS, 1000).
%% The tables of signals of Linux.
-define(SIGNALS, #{
    1 => sighup, 2 => sigint, 3 => sigquit, 4 => sigill, 5 => sigtrap, 6 => sigabrt, 7 => sigbus,
    8 => sigfpe, 9 => sigkill, 11 => sigsegv, 13 => sigpipe, 14 => sigalrm, 15 => sigterm,
    24 => sigxcpu, 25 => sigxfsz, 31 => sigsys
}).

-record(host, {
    spec :: spec(),
    port = none :: none | port(),
    os_pid = 0 :: non_neg_integer(),
    ring = none :: none | tame_ring:ring(),
    loaded = none :: none | loaded(),
    monitors = #{} :: #{reference() => integer(), integer() => reference()},
    atoms = 0 :: non_neg_integer(),
    %% The name that the host knows this node by.
    named :: undefined | {node(), non_neg_integer()},
    %% When it crashed, in ms, newest first, no older than the intensity looks back; and in a row.
    crashes = [] :: [integer()],
    row = 0 :: non_neg_integer(),
    start_at = 0 :: integer(),
    up_since = never :: never | integer(),
    killed = none :: atom()
}).

-spec start_link(spec()) -> gen_statem:start_ret().
start_link(Spec) ->
    gen_statem:start_link(?MODULE, Spec, []).

%% Ends when the calls in flight have been answered, at the latest after 5 s.
-spec stop(pid()) -> ok.
stop(Host) ->
    gen_statem:cast(Host, stop).

%% One that has failed tries again; any other goes on.
-spec restart(pid()) -> ok.
restart(Host) ->
    gen_statem:cast(Host, restart).

%% What tame:info/0 says of it.
-spec info(pid()) -> map().
info(Host) ->
    gen_statem:call(Host, info).

-spec callback_mode() -> [handle_event_function | state_enter].
callback_mode() ->
    [handle_event_function, state_enter].

-spec init(spec()) -> gen_statem:init_result(atom()).
init(Spec) ->
    process_flag(trap_exit, true),
    ok = net_kernel:monitor_nodes(true, [{node_type, all}, nodedown_reason]),
    {ok, starting, #host{spec = Spec}}.

-spec terminate(term(), atom(), #host{}) -> ok.
terminate(_Reason, _State, Host) ->
    _ = ended(Host, #{killed => stopped}),
    ok.

-spec handle_event(gen_statem:event_type(), term(), atom(), #host{}) ->
    gen_statem:event_handler_result(atom()).

%% ---- starting -----------------------------------------------------------------------------------

handle_event(enter, _From, starting, #host{spec = #{options := Options}} = Host) ->
    case open(Options) of
        {ok, Port} ->
            #{start_ms := StartMs} = Options,
            {keep_state, Host#host{port = Port, killed = none, start_at = now_ms()},
                {state_timeout, StartMs, late}};
        {error, Why} ->
            {keep_state, Host, {state_timeout, 0, {cannot_start, Why}}}
    end;
handle_event(state_timeout, {cannot_start, Why}, starting, Host) ->
    refused(#{reason => Why, text => cannot_start_text(Why)}, Host);
handle_event(state_timeout, late, starting, Host) ->
    kill(late_start, Host);
handle_event(info, {Port, {data, Frame}}, State, #host{port = Port} = Host) ->
    try erlang:binary_to_term(Frame, [safe]) of
        Term -> frame(Term, State, Host)
    catch
        %% What it sends may name no atom that we do not know: it asks for those first.
        error:badarg -> kill(bad_frame, Host)
    end;
handle_event(info, {Port, {exit_status, Status}}, State, #host{port = Port} = Host) ->
    down(State, why(Status, Host), Host#host{port = none});
handle_event(info, {'EXIT', Port, _}, State, #host{port = Port} = Host) ->
    down(State, #{exit_status => 0}, Host#host{port = none});
%% ---- up -------------------------------------------------------------------------------------------

handle_event(enter, _From, up, Host) ->
    #host{ring = Ring, loaded = Loaded, spec = #{options := #{grace_ms := GraceMs}}} = Host,
    tell({up, Ring, Loaded}, Host),
    Now = now_ms(),
    event(up, #{start_ms => Now - Host#host.start_at}, #{}, Host),
    {keep_state, Host#host{up_since = Now}, overdue(GraceMs)};
handle_event({timeout, overdue}, look, up, Host) ->
    #host{ring = Ring, spec = #{options := #{grace_ms := GraceMs}}} = Host,
    case tame_ring:abandoned(Ring, GraceMs) of
        0 -> {keep_state_and_data, overdue(GraceMs)};
        _ -> kill(overdue, Host)
    end;
handle_event({timeout, overdue}, look, _State, _Host) ->
    keep_state_and_data;
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
    {next_state, starting, Host#host{crashes = [], row = 0}};
handle_event(cast, restart, _State, _Host) ->
    keep_state_and_data;
%% ---- draining ---------------------------------------------------------------------------------------

handle_event(enter, _From, draining, #host{port = Port}) ->
    _ = Port =/= none andalso send(Port, stop),
    {keep_state_and_data, {state_timeout, ?DRAIN_MS, late}};
handle_event(state_timeout, late, draining, Host) ->
    kill(late_stop, Host);
handle_event(cast, stop, State, Host) when State =:= crashed; State =:= failed ->
    {stop, normal, Host};
handle_event(cast, stop, draining, _Host) ->
    keep_state_and_data;
handle_event(cast, stop, _State, Host) ->
    {next_state, draining, Host};
%% ---- in every state -----------------------------------------------------------------------------------

handle_event({call, From}, info, State, #host{os_pid = OsPid, ring = Ring} = Host) ->
    Info = #{
        state => State,
        os_pid => OsPid,
        crashes => Host#host.row,
        rss_bytes => rss_bytes(OsPid),
        ring => if Ring =:= none -> #{}; true -> tame_ring:info(Ring) end
    },
    {keep_state_and_data, {reply, From, Info}};
handle_event(info, {'DOWN', Ref, process, _, _}, _State, #host{monitors = Monitors} = Host) ->
    case maps:take(Ref, Monitors) of
        {Id, Others} ->
            _ = Host#host.port =/= none andalso send(Host#host.port, {down, Id}),
            {keep_state, Host#host{monitors = maps:remove(Id, Others)}};
        error ->
            keep_state_and_data
    end;
%% Distribution started or stopped: pids and references are written with another name from now on.
handle_event(info, {Change, _, _}, _State, Host) when Change =:= nodeup; Change =:= nodedown ->
    {keep_state, named(Host)};
handle_event(info, {'EXIT', Pid, Reason}, _State, #host{spec = #{pool := Pid}} = Host) ->
    {stop, Reason, Host};
handle_event(info, _Late, _State, _Host) ->
    keep_state_and_data.

named(#host{port = none} = Host) ->
    Host;
named(#host{port = Port, named = Named} = Host) ->
    case own_name() of
        Named ->
            Host;
        {Node, Creation} = Name ->
            _ = send(Port, {node, Node, Creation}),
            Host#host{named = Name}
    end.

own_name() ->
    {node(), erlang:system_info(creation)}.

overdue(GraceMs) ->
    {{timeout, overdue}, max(1, GraceMs div 2), look}.

%% ---- the OS process ---------------------------------------------------------------------------------

open(#{workers := Workers} = Options) ->
    Path = maps:get(host, Options, tame_native:path("tame_host")),
    Args = ["--workers", integer_to_list(Workers)],
    try
        Settings = [nouse_stdio, {packet, 4}, binary, exit_status, {args, Args}],
        {ok, open_port({spawn_executable, Path}, Settings)}
    catch
        error:Why when is_atom(Why) -> {error, Why}
    end.

cannot_start_text(Why) ->
    io_lib:format("tame_host does not start: ~ts. It is built by `make`, and must be executable", [
        file:format_error(Why)
    ]).

send(Port, Term) ->
    try
        port_command(Port, term_to_binary(Term))
    catch
        %% It has just ended; its exit status is on the way.
        error:badarg -> false
    end.

%% A host cannot hinder SIGKILL. Its exit status comes then, by which we know that it is gone.
kill(Why, #host{os_pid = 0} = Host) ->
    %% It has not even said who it is: its guard ends it when the port closes.
    {next_state, crashed, closed(Host#host{killed = Why}, #{killed => Why})};
kill(Why, #host{os_pid = OsPid} = Host) ->
    _ = os:cmd("kill -KILL " ++ integer_to_list(OsPid)),
    {keep_state, Host#host{killed = Why}}.

why(Status, #host{killed = none}) when Status > 128 ->
    #{signal => maps:get(Status - 128, ?SIGNALS, Status - 128)};
why(Status, #host{killed = none}) ->
    #{exit_status => Status};
why(_Status, #host{killed = Why}) ->
    #{killed => Why}.

%% Tells telemetry.
event(Name, Measurements, Metadata, #host{os_pid = OsPid, spec = #{module := Module}}) ->
    tame_telemetry:execute([tame, host, Name], Measurements, Metadata#{
        library => Module, os_pid => OsPid
    }).

down(draining, Why, Host) ->
    {stop, normal, ended(Host, Why)};
%% Another try would come to the same.
down(starting, Why, #host{up_since = never} = Host) ->
    refused(#{reason => crashed, text => not_loaded_text(Why, Host)}, Host);
down(State, Why, Host0) when State =:= starting; State =:= up ->
    UpMs = if State =:= up -> now_ms() - Host0#host.up_since; true -> 0 end,
    event(down, #{up_ms => UpMs}, #{why => Why}, Host0),
    Host = crash(State, ended(Host0, Why)),
    case is_failed(Host) of
        true -> {next_state, failed, Host};
        false -> {next_state, crashed, Host}
    end;
down(_State, Why, Host) ->
    {keep_state, ended(Host, Why)}.

not_loaded_text(#{killed := late_start}, #host{spec = #{options := #{start_ms := StartMs}}}) ->
    io_lib:format("the host did not load the library within ~b ms (start_ms)", [StartMs]);
not_loaded_text(Why, _Host) ->
    io_lib:format("the host ended while it loaded the library: ~0p", [Why]).

closed(#host{port = Port} = Host, Why) ->
    _ = Port =/= none andalso catch port_close(Port),
    ended(crash(starting, Host#host{port = none}), Why).

%% Everybody who waits for it is told.
ended(#host{ring = Ring, monitors = Monitors} = Host, Why) ->
    _ = Ring =/= none andalso tame_ring:close(Ring, Why),
    _ = [demonitor(Ref, [flush]) || {Ref, _} <- maps:to_list(Monitors), is_reference(Ref)],
    Host#host{ring = none, loaded = none, os_pid = 0, monitors = #{}, named = undefined}.

%% ---- crashes ------------------------------------------------------------------------------------------

crash(State, #host{spec = #{options := Options}, row = Row, crashes = Crashes} = Host) ->
    Now = now_ms(),
    Steady = State =:= up andalso Now - Host#host.up_since >= ?STEADY_MS,
    Recent =
        case Options of
            #{intensity := {_, Ms}} -> [At || At <- Crashes, Now - At < Ms];
            #{intensity := infinity} -> []
        end,
    Host#host{
        crashes = [Now | Recent],
        row =
            if
                Steady -> 1;
                true -> Row + 1
            end
    }.

is_failed(#host{spec = #{options := #{intensity := infinity}}}) -> false;
is_failed(#host{spec = #{options := #{intensity := {Most, _}}}, crashes = Crashes}) ->
    length(Crashes) > Most.

%% None after the first crash, then twice as long each time.
back_off(#host{row = Row}) when Row =< 1 ->
    0;
back_off(#host{row = Row, spec = #{options := #{backoff_ms := {First, Ceiling}}}}) ->
    min(Ceiling, First bsl min(Row - 2, 20)).

refused(Why, Host) ->
    tell({refused, Why}, Host),
    {stop, normal, ended(Host, Why)}.

%% ---- frames -------------------------------------------------------------------------------------------

frame({hello, 2, OsPid, _Info}, starting, #host{port = Port, spec = Spec} = Host) ->
    #{options := #{area_bytes := AreaBytes} = Options} = Spec,
    Geometry = maps:with([slots, slot_bytes, workers], Options),
    Named = named(Host),
    _ = send(Port, {ring, Geometry#{request_bytes => AreaBytes, reply_bytes => AreaBytes}}),
    {keep_state, Named#host{os_pid = OsPid}};
frame({ring, Fd}, starting, #host{port = Port, os_pid = OsPid, spec = Spec} = Host) ->
    #{path := Path, module := Module, load_info := LoadInfo, options := Options} = Spec,
    #{area_bytes := AreaBytes} = Options,
    RingOptions = (maps:with([max_waiting, spin_us], Options))#{max_bytes => 2 * AreaBytes + ?SLOTS_BYTES},
    case tame_ring:open(OsPid, Fd, RingOptions) of
        {ok, Ring} ->
            _ = send(Port, {leases, tame_ring:leases(Ring, ?LEASES)}),
            _ = send(Port, {load, path_binary(Path), Module, LoadInfo, settings()}),
            {keep_state, Host#host{ring = Ring}};
        {error, Why} ->
            refused(#{reason => no_ring, text => io_lib:format("its memory: ~p", [Why])}, Host)
    end;
frame({ring_refused, Text}, starting, Host) ->
    refused(#{reason => no_ring, text => Text}, Host);
frame({loaded, Functions, Info}, starting, Host) ->
    Loaded = #{
        functions => [{binary_to_atom(Name), Arity} || {Name, Arity, _Flags} <- Functions],
        wants_caller => maps:get(wants_caller, Info, false)
    },
    {next_state, up, Host#host{loaded = Loaded}};
frame({refused, Reason, Details, Text}, starting, Host) ->
    refused(#{reason => Reason, details => Details, text => Text}, Host);
frame({query, Id, What}, _State, Host0) ->
    %% The first to have heard of a new name may be who asks.
    {Answer, Host} = answer(What, named(Host0)),
    _ = send(Host#host.port, {answer, Id, Answer}),
    {keep_state, Host};
frame({send, Pid, Message, Leases}, _State, #host{ring = Ring}) when is_pid(Pid) ->
    Pid ! Message,
    ok = tame_ring:used(Ring, Leases),
    keep_state_and_data;
frame({ended, _Signal, _Address, _Function, _Arity, _Backtrace, _Stderr}, _State, _Host) ->
    keep_state_and_data;
frame({pong, _Number}, _State, _Host) ->
    keep_state_and_data;
frame({log, Text}, _State, #host{spec = #{module := Module}}) when is_binary(Text) ->
    logger:warning("tame_host of ~s: ~ts", [Module, Text]),
    keep_state_and_data;
frame(_Other, _State, Host) ->
    kill(bad_frame, Host).

path_binary(Path) ->
    unicode:characters_to_binary(Path, unicode, file:native_name_encoding()).

settings() ->
    #{
        otp_release => list_to_binary(erlang:system_info(otp_release)),
        erts => list_to_binary(erlang:system_info(version)),
        schedulers => erlang:system_info(schedulers),
        dirty_cpu_schedulers => erlang:system_info(dirty_cpu_schedulers),
        dirty_io_schedulers => erlang:system_info(dirty_io_schedulers),
        async_threads => erlang:system_info(thread_pool_size),
        time_offset_ns => erlang:time_offset(nanosecond),
        monotonic_offset_ns => erlang:monotonic_time(nanosecond) - os:perf_counter(nanosecond)
    }.

%% ---- queries ------------------------------------------------------------------------------------------

answer({existing_atom, Name}, Host) ->
    {existing_atom(Name) =/= none, Host};
answer({new_atoms, Names}, Host) ->
    new_atoms(Names, Host);
answer({phash2, Term}, Host) ->
    {erlang:phash2(Term), Host};
answer({whereis, Name}, Host) ->
    {
        case existing_atom(Name) of
            none -> undefined;
            Atom -> whereis(Atom)
        end,
        Host
    };
answer({alive, Pid}, Host) when is_pid(Pid) ->
    {node(Pid) =:= node() andalso is_process_alive(Pid), Host};
answer({alive, Port}, Host) when is_port(Port) ->
    {erlang:port_info(Port) =/= undefined, Host};
answer({port_command, Port, Data}, Host) ->
    {
        try
            port_command(Port, Data)
        catch
            error:badarg -> false
        end,
        Host
    };
answer({monitor, Id, Pid}, #host{monitors = Monitors} = Host) ->
    Ref = monitor(process, Pid),
    {is_process_alive(Pid), Host#host{monitors = Monitors#{Ref => Id, Id => Ref}}};
answer({demonitor, Id}, #host{monitors = Monitors} = Host) ->
    case Monitors of
        #{Id := Ref} ->
            {demonitor(Ref, [flush, info]), Host#host{monitors = maps:without([Id, Ref], Monitors)}};
        #{} ->
            {false, Host}
    end;
answer(leases, #host{ring = Ring, port = Port} = Host) ->
    _ = send(Port, {leases, tame_ring:leases(Ring, ?LEASES)}),
    {ok, Host};
%% As references, which live from when the frame was read.
answer({hold, _Call, Refs}, #host{ring = Ring} = Host) ->
    {tame_ring:hold(Ring, Refs), Host};
answer(sync, Host) ->
    {ok, Host};
answer(make_ref, Host) ->
    {make_ref(), Host};
answer({unique_integer, Modifiers}, Host) ->
    {erlang:unique_integer(Modifiers), Host};
answer(_Unknown, Host) ->
    {false, Host}.

existing_atom(Name) ->
    try
        binary_to_existing_atom(Name, utf8)
    catch
        error:_ -> none
    end.

%% Atoms are never collected: a library that makes them without end must not fill the VM's table.
new_atoms(Names, #host{atoms = Atoms, spec = #{options := #{max_atoms := Most}}} = Host) ->
    case Atoms + length(Names) > Most of
        true ->
            {false, Host};
        false ->
            _ = [binary_to_atom(Name, utf8) || Name <- Names],
            {ok, Host#host{atoms = Atoms + length(Names)}}
    end.

%% The atoms in what a host says. A frame that names one which no loaded module has would be refused.
-spec words() -> [atom()].
words() ->
    [
        hello, workers, ring, ring_refused, nif_version, loaded, wants_caller, refused, functions, value, reply,
        raise, query, existing_atom, new_atoms, phash2, whereis, alive, port_command, monitor,
        demonitor, leases, hold, sync, make_ref, unique_integer, positive, monotonic, send, log,
        already_loaded, bad_library, cannot_read, load_returned, missing_functions,
        ended, pong, sends, resources, needs_newer_erts, no_such_file, wrong_architecture, tame, reply_too_large,
        returned_no_term, system_limit
    ].

%% ---- small things -------------------------------------------------------------------------------------

tell(What, #host{spec = #{pool := Pool}}) ->
    Pool ! {?MODULE, self(), What},
    ok.

now_ms() ->
    erlang:monotonic_time(millisecond).

%% The second field, in pages. 0 where there is no /proc, or no such process.
rss_bytes(OsPid) ->
    case file:read_file(["/proc/", integer_to_list(OsPid), "/statm"]) of
        {ok, Text} ->
            [_, Pages | _] = binary:split(Text, <<" ">>, [global]),
            binary_to_integer(Pages) * 4096;
        {error, _} ->
            0
    end.
