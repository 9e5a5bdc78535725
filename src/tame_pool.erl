%% The hosts of one isolated library, and the callers who wait for one.
%%
%% A call does not come here: it takes a ring from the library's row (tame_isolated) and goes. The pool
%% writes that row. It is asked only when no host is up, and when the lines of all are full:
%%
%%              load        a host is up              the last host is down
%%   unbound ─────────▶ empty ───────────▶ serving ───────────────────────▶ empty
%%                        ▲                  │
%%                        └──────────────────┘        all hosts failed: failed ──restart──▶ empty
%%
%% Callers wait in `empty' in the order in which they came, each with a time-out of its own (a generic
%% time-out named by its monitor), and are taken out when they die; more than max_waiting are refused
%% at once. Hosts are kept between min and max: one more is started when callers stand in line at each that
%% is up, and the newest is stopped when it has been idle for idle_ms. Rings are handed out oldest first, so
%% that the newest become idle.
-module(tame_pool).
-behaviour(gen_statem).

-export([start_link/2]).
-export([load/3]).
-export([ring/2]).
-export([restart/1]).
-export([info/1]).
-export([stop/1]).

%% Internal.
-export([callback_mode/0]).
-export([init/1]).
-export([handle_event/4]).
-export([terminate/3]).

-export_type([refusal/0]).

%% Why there is no ring.
-type refusal() :: busy | deadline | failed.

%% How often hosts are looked at: whether there are too few or too many.
-define(LOOK_MS, 100).

-record(pool, {
    module :: module(),
    options :: tame_isolation:options(),
    spec = none :: none | tame_host:spec(),
    loader = none :: none | gen_statem:from(),
    loaded = none :: none | tame_host:loaded(),
    %% what load/3 came to
    load = none :: none | ok | {error, {atom(), string()}},
    %% Oldest first; `down' also while it starts.
    hosts = [] :: [{pid(), {up, tame_ring:ring()} | down | failed}],
    idle_since = #{} :: #{pid() => integer()},
    waiting = queue:new() :: queue:queue({reference(), gen_statem:from()}),
    restarts = 0 :: non_neg_integer()
}).

-spec start_link(module(), tame_isolation:options()) -> gen_statem:start_ret().
start_link(Module, Options) ->
    gen_statem:start_link(?MODULE, {Module, Options}, []).

%% What erlang:load_nif/2 would do: starts the hosts, and returns when the first has loaded the library.
-spec load(pid(), file:filename_all(), term()) -> ok | {error, {atom(), string()}}.
load(Pool, Path, LoadInfo) ->
    gen_statem:call(Pool, {load, Path, LoadInfo}).

%% A ring of a host that is up; waits for one for so long.
-spec ring(pid(), timeout()) -> {ok, tame_ring:ring()} | {error, refusal()}.
ring(Pool, Timeout) ->
    gen_statem:call(Pool, {ring, Timeout}).

%% Hosts that have failed try again.
-spec restart(pid()) -> ok.
restart(Pool) ->
    gen_statem:call(Pool, restart).

-spec info(pid()) -> map().
info(Pool) ->
    gen_statem:call(Pool, info).

%% Ends the hosts, each after its calls in flight.
-spec stop(pid()) -> ok.
stop(Pool) ->
    gen_statem:stop(Pool).

-spec callback_mode() -> [handle_event_function | state_enter].
callback_mode() ->
    [handle_event_function, state_enter].

-spec init({module(), tame_isolation:options()}) -> gen_statem:init_result(atom()).
init({Module, Options}) ->
    process_flag(trap_exit, true),
    {ok, unbound, #pool{module = Module, options = Options}}.

%% The hosts drain by themselves; those that do not within their own time are killed.
-spec terminate(term(), atom(), #pool{}) -> ok.
terminate(_Reason, _State, #pool{module = Module, hosts = Hosts}) ->
    ok = tame_isolated:publish(Module, none),
    Monitors = [
        begin
            Monitor = monitor(process, Host),
            tame_host:stop(Host),
            Monitor
        end
     || {Host, _} <- Hosts
    ],
    lists:foreach(
        fun(Monitor) ->
            receive
                {'DOWN', Monitor, process, _, _} -> ok
            end
        end,
        Monitors
    ).

-spec handle_event(gen_statem:event_type(), term(), atom(), #pool{}) ->
    gen_statem:event_handler_result(atom()).
handle_event(enter, _From, serving, Pool) ->
    publish(Pool),
    {keep_state, answer_all(Pool), {{timeout, look}, ?LOOK_MS, hosts}};
handle_event(enter, From, State, Pool) ->
    _ = From =:= serving andalso publish(Pool),
    _ = State =:= failed andalso refuse_all(Pool, failed),
    keep_state_and_data;
%% ---- loading ------------------------------------------------------------------------------------------

handle_event({call, From}, {load, Path, LoadInfo}, unbound, #pool{options = Options} = Pool) ->
    #{hosts := {Min, _}} = Options,
    Spec = #{
        pool => self(),
        module => Pool#pool.module,
        path => Path,
        load_info => LoadInfo,
        options => Options
    },
    {next_state, empty,
        start_hosts(Min, Pool#pool{spec = Spec, loader = From})};
handle_event({call, From}, {load, _, _}, _State, _Pool) ->
    Text = "The NIF library is loaded already, in a host; a library is loaded once",
    {keep_state_and_data, {reply, From, {error, {reload, Text}}}};
%% ---- callers -------------------------------------------------------------------------------------------

handle_event({call, From}, {ring, _}, failed, _Pool) ->
    {keep_state_and_data, {reply, From, {error, failed}}};
handle_event({call, From}, {ring, _}, serving, #pool{hosts = Hosts}) ->
    [Ring | _] = rings(Hosts),
    {keep_state_and_data, {reply, From, {ok, Ring}}};
handle_event({call, {Caller, _} = From}, {ring, Timeout}, _Empty, Pool) ->
    #pool{waiting = Waiting, options = #{max_waiting := Most, wait_ms := WaitMs}} = Pool,
    case queue:len(Waiting) < Most of
        true ->
            Monitor = monitor(process, Caller),
            {keep_state, Pool#pool{waiting = queue:in({Monitor, From}, Waiting)},
                {{timeout, Monitor}, min(Timeout, WaitMs), expired}};
        false ->
            refused(busy, Pool),
            {keep_state_and_data, {reply, From, {error, busy}}}
    end;
handle_event({timeout, Monitor}, expired, _State, Pool) when is_reference(Monitor) ->
    refused(deadline, Pool),
    {keep_state, leave(Monitor, {error, deadline}, Pool)};
handle_event(info, {'DOWN', Monitor, process, _, _}, _State, Pool) ->
    {keep_state, leave(Monitor, dead, Pool), {{timeout, Monitor}, cancel}};
%% ---- hosts ---------------------------------------------------------------------------------------------

handle_event(info, {tame_host, Host, {up, Ring, Loaded}}, _State, Pool0) ->
    Pool = set(Host, {up, Ring}, Pool0#pool{loaded = Loaded}),
    {next_state, serving, told_loader(ok, Pool), {next_event, internal, publish}};
handle_event(internal, publish, serving, Pool) ->
    publish(Pool),
    keep_state_and_data;
handle_event(info, {tame_host, Host, {refused, Why}}, State, Pool) ->
    gone(State, told_loader({error, load_error(Why)}, remove(Host, Pool)));
handle_event(info, {tame_host, Host, down}, State, Pool) ->
    gone(State, set(Host, down, Pool#pool{restarts = Pool#pool.restarts + 1}));
handle_event(info, {tame_host, Host, failed}, State, Pool) ->
    Text = "the host crashed again and again; tame:restart/1 tries anew",
    gone(State, told_loader({error, {load, Text}}, set(Host, failed, Pool)));
handle_event(info, {'EXIT', Host, _Reason}, State, #pool{hosts = Hosts} = Pool) ->
    case lists:keymember(Host, 1, Hosts) of
        true -> gone(State, remove(Host, Pool));
        false -> keep_state_and_data
    end;
handle_event({call, From}, restart, _State, #pool{hosts = Hosts} = Pool) ->
    [tame_host:restart(Host) || {Host, _} <- Hosts],
    Again = Pool#pool{hosts = [{Host, up_or_down(State)} || {Host, State} <- Hosts]},
    {next_state, state(Again), Again, {reply, From, ok}};
handle_event({timeout, look}, hosts, serving, Pool) ->
    {keep_state, adjust(Pool), {{timeout, look}, ?LOOK_MS, hosts}};
handle_event({timeout, look}, hosts, _State, _Pool) ->
    keep_state_and_data;
handle_event({call, From}, info, State, #pool{hosts = Hosts} = Pool) ->
    Info = #{
        state => State,
        load => Pool#pool.load,
        waiting => queue:len(Pool#pool.waiting),
        restarts => Pool#pool.restarts,
        hosts => [tame_host:info(Host) || {Host, _} <- Hosts]
    },
    {keep_state_and_data, {reply, From, Info}}.

%% A host is not up any more.
gone(unbound, Pool) ->
    {keep_state, Pool};
gone(_State, #pool{hosts = []} = Pool) ->
    %% Refused: as if nothing had been loaded.
    {next_state, unbound, refuse_all(Pool, failed)};
gone(_State, Pool) ->
    {next_state, state(Pool), Pool, [{next_event, internal, publish} || state(Pool) =:= serving]}.

state(#pool{hosts = Hosts}) ->
    case {rings(Hosts), [Host || {Host, State} <- Hosts, State =/= failed]} of
        {[_ | _], _} -> serving;
        {[], [_ | _]} -> empty;
        {[], []} -> failed
    end.

up_or_down(failed) -> down;
up_or_down(State) -> State.

start_hosts(Count, #pool{spec = Spec, hosts = Hosts} = Pool) ->
    New = [
        begin
            {ok, Host} = tame_host:start_link(Spec),
            {Host, down}
        end
     || _ <- lists:seq(1, Count)
    ],
    Pool#pool{hosts = Hosts ++ New}.

%% One more, or one less.
adjust(#pool{hosts = Hosts, options = #{hosts := {Min, Max}, idle_ms := IdleMs}} = Pool0) ->
    Now = erlang:monotonic_time(millisecond),
    Pool = note_idle(Now, Pool0),
    Lines = [maps:get(in_line, tame_ring:info(Ring)) || Ring <- rings(Hosts)],
    Count = length(Hosts),
    Starting = [Host || {Host, down} <- Hosts],
    case lists:all(fun(Line) -> Line > 0 end, Lines) of
        true when Count < Max, Starting =:= [] -> start_hosts(1, Pool);
        true -> Pool;
        false when Count > Min -> stop_idle(Now - IdleMs, Pool);
        false -> Pool
    end.

%% Since when nobody has a call in it.
note_idle(Now, #pool{hosts = Hosts, idle_since = Before} = Pool) ->
    Idle = [
        {Host, maps:get(Host, Before, Now)}
     || {Host, {up, Ring}} <- Hosts, maps:get(slots_in_use, tame_ring:info(Ring)) =:= 0
    ],
    Pool#pool{idle_since = maps:from_list(Idle)}.

stop_idle(Before, #pool{hosts = Hosts, idle_since = Since} = Pool) ->
    {Host, _} = lists:last(Hosts),
    case Since of
        #{Host := At} when At =< Before ->
            Others = remove(Host, Pool),
            publish(Others),
            tame_host:stop(Host),
            Others;
        #{} ->
            Pool
    end.

set(Host, State, #pool{hosts = Hosts} = Pool) ->
    Pool#pool{hosts = lists:keyreplace(Host, 1, Hosts, {Host, State})}.

remove(Host, #pool{hosts = Hosts} = Pool) ->
    Pool#pool{hosts = lists:keydelete(Host, 1, Hosts)}.

rings(Hosts) ->
    [Ring || {_, {up, Ring}} <- Hosts].

publish(#pool{module = Module, hosts = Hosts, loaded = Loaded, options = Options}) ->
    tame_isolated:publish(Module, #{
        pool => self(),
        rings => list_to_tuple(rings(Hosts)),
        wants_caller => Loaded =/= none andalso maps:get(wants_caller, Loaded),
        deadline_ms => maps:get(deadline_ms, Options)
    }).

told_loader(_Answer, #pool{loader = none} = Pool) ->
    Pool;
told_loader(Answer, #pool{loader = Loader} = Pool) ->
    %% The row is there when the module goes on.
    _ = Answer =:= ok andalso publish(Pool),
    gen_statem:reply(Loader, Answer),
    Pool#pool{loader = none, load = Answer}.

%% As erlang:load_nif/2 puts it.
load_error(#{reason := load_returned, text := Text}) -> {load, to_string(Text)};
load_error(#{reason := Reason, text := Text}) -> {Reason, to_string(Text)}.

to_string(Text) ->
    lists:flatten(io_lib:format("~ts", [Text])).

%% Tells telemetry.
refused(Reason, #pool{module = Module, waiting = Waiting}) ->
    tame_telemetry:execute([tame, pool, refused], #{waiting => queue:len(Waiting)}, #{
        library => Module, reason => Reason
    }).

%% ---- the line -------------------------------------------------------------------------------------------

answer_all(#pool{hosts = Hosts} = Pool) ->
    [Ring | _] = rings(Hosts),
    reply_all({ok, Ring}, Pool).

refuse_all(Pool, Why) ->
    reply_all({error, Why}, Pool).

%% Their time-outs go off for nobody.
reply_all(Answer, #pool{waiting = Waiting} = Pool) ->
    _ = [
        begin
            demonitor(Monitor, [flush]),
            gen_statem:reply(From, Answer)
        end
     || {Monitor, From} <- queue:to_list(Waiting)
    ],
    Pool#pool{waiting = queue:new()}.

leave(Monitor, Answer, #pool{waiting = Waiting} = Pool) ->
    {Leaving, Staying} =
        lists:partition(fun({M, _}) -> M =:= Monitor end, queue:to_list(Waiting)),
    _ = [
        begin
            demonitor(Monitor, [flush]),
            Answer =/= dead andalso gen_statem:reply(From, Answer)
        end
     || {_, From} <- Leaving
    ],
    Pool#pool{waiting = queue:from_list(Staying)}.
