%% How many hosts an isolated library has, and the callers who wait for one.
%%
%% A call does not come here: it takes a ring from the library's row (tame_isolated) and goes. The pool
%% writes that row. It is asked only while no host is up:
%%
%%              load        a host is up              the last host is down
%%   unbound ─────────▶ empty ───────────▶ serving ───────────────────────▶ empty
%%      ▲                 │ ▲                │
%%      └─ first load     │ └────────────────┘        all hosts failed: failed ──restart──▶ empty
%%         refused        ▼
%%                      failed
%%
%% A pool that takes the place of one that died begins in `empty' when its library was loaded before
%% (tame_registry): it asks the hosts that there are how they are, and until they have answered calls go on
%% over the rings in the row. Never does a library that was loaded once become unbound.
%%
%% Callers wait in `empty', each with a time-out of its own (a generic time-out named by its monitor), and are taken
%% out when they die; more than max_waiting are refused at once. Hosts are kept between min and max: one more is
%% started when callers stand in line at each that is up, and the newest is stopped when it has been idle for idle_ms
%% and nobody holds a resource of it. A host process that dies is replaced, at once or, when they die one after
%% the other, after a second.
-module(tame_pool).
-behaviour(gen_statem).

-include("tame_registry.hrl").

-export([start_link/1]).
-export([load/3]).
-export([ring/2]).
-export([tell/2]).
-export([bad_reply/3]).
-export([restart/1]).
-export([info/1]).

%% Internal.
-export([callback_mode/0]).
-export([init/1]).
-export([handle_event/4]).
-export([terminate/3]).

-export_type([refusal/0]).

%% Why there is no ring: too many wait already, none came up before the caller's own deadline, none did within
%% wait_ms, the hosts crashed too often.
-type refusal() :: busy | deadline | no_host | failed.

%% How often hosts are looked at: whether there are too few or too many.
-define(LOOK_MS, 100).
%% How often the table of processes that the library was given is cleared of the dead, in looks.
-define(PRUNE_LOOKS, 50).
%% What a question to a process of ours may take.
-define(ASK_MS, 5000).
-define(REPLACE_MS, 1000).

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
    monitors = #{} :: #{reference() => pid()},
    %% When a host process died last.
    died_at = none :: none | integer(),
    idle_since = #{} :: #{pid() => integer()},
    looks = 0 :: non_neg_integer(),
    %% By their monitors.
    waiting = #{} :: #{reference() => gen_statem:from()},
    restarts = 0 :: non_neg_integer()
}).

-spec start_link(module()) -> gen_statem:start_ret() | ignore.
start_link(Module) ->
    gen_statem:start_link({local, name(Module)}, ?MODULE, Module, []).

name(Module) ->
    binary_to_atom(<<"tame_pool_", (atom_to_binary(Module))/binary>>).

%% What erlang:load_nif/2 would do: starts the hosts, and returns when the first has loaded the library.
-spec load(module(), file:filename_all(), term()) -> ok | {error, {atom(), string()}}.
load(Module, Path, LoadInfo) ->
    case tame_registry:find(Module) of
        {ok, #entry{options = #{start_ms := StartMs}}} ->
            gen_statem:call(name(Module), {load, Path, LoadInfo}, StartMs + ?ASK_MS);
        error ->
            exit(noproc)
    end.

%% A ring of a host that is up; waits for one for this long. Exits when the pool is being replaced.
-spec ring(module(), timeout()) -> {ok, tame_ring:ring()} | {error, refusal()}.
ring(Module, infinity) ->
    %% The pool answers after wait_ms at the latest.
    gen_statem:call(name(Module), {ring, infinity}, infinity);
ring(Module, Ms) ->
    gen_statem:call(name(Module), {ring, Ms}, Ms + ?ASK_MS).

%% What a host says of itself; for nobody while the pool is being replaced.
-spec tell(module(), term()) -> ok.
tell(Module, Message) ->
    try
        name(Module) ! Message,
        ok
    catch
        error:badarg -> ok
    end.

%% The host of this ring wrote what none may write.
-spec bad_reply(module(), tame_ring:ring(), term()) -> ok.
bad_reply(Module, Ring, What) ->
    gen_statem:cast(name(Module), {bad_reply, Ring, What}).

%% New hosts in place of all that there are; these end after their calls in flight.
-spec restart(module()) -> ok.
restart(Module) ->
    gen_statem:call(name(Module), restart, ?ASK_MS).

%% For tame:info/0: what the pool knows, and its host processes.
-spec info(module()) -> {map(), [pid()]}.
info(Module) ->
    gen_statem:call(name(Module), info, ?ASK_MS).

-spec callback_mode() -> [handle_event_function | state_enter].
callback_mode() ->
    [handle_event_function, state_enter].

-spec init(module()) -> gen_statem:init_result(atom()) | ignore.
init(Module) ->
    case tame_registry:find(Module) of
        {ok, #entry{options = Options, load = none}} ->
            {ok, unbound, #pool{module = Module, options = Options}};
        {ok, #entry{options = Options, load = {Path, LoadInfo}} = Entry} ->
            Spec = (spec(Entry, Path, LoadInfo))#{first := false},
            Pool = #pool{module = Module, options = Options, spec = Spec, load = ok},
            {ok, empty, adopt(Pool), {next_event, internal, reconcile}};
        error ->
            ignore
    end.

-spec terminate(term(), atom(), #pool{}) -> ok.
terminate(_Reason, _State, _Pool) ->
    ok.

spec(#entry{module = Module, functions = Functions, options = Options}, Path, LoadInfo) ->
    #{
        module => Module,
        functions => Functions,
        path => Path,
        load_info => LoadInfo,
        first => true,
        options => Options
    }.

%% The hosts of the pool before.
adopt(#pool{module = Module} = Pool) ->
    lists:foldl(
        fun(Host, Adopting) ->
            ok = tame_host:announce(Host),
            added(Host, Adopting)
        end,
        Pool,
        tame_isolation_sup:hosts(Module)
    ).

added(Host, #pool{hosts = Hosts, monitors = Monitors} = Pool) ->
    Pool#pool{hosts = Hosts ++ [{Host, down}], monitors = Monitors#{monitor(process, Host) => Host}}.

-spec handle_event(gen_statem:event_type(), term(), atom(), #pool{}) ->
    gen_statem:event_handler_result(atom()).
handle_event(enter, _From, serving, Pool) ->
    publish(Pool),
    {keep_state, answer_all(Pool), look()};
handle_event(enter, From, State, Pool) ->
    _ = From =:= serving andalso publish(Pool),
    {keep_state, if State =:= failed -> refuse_all(failed, Pool); true -> Pool end, look()};
%% ---- loading ------------------------------------------------------------------------------------------

handle_event({call, From}, {load, Path, LoadInfo}, unbound, #pool{module = Module} = Pool) ->
    ok = tame_given:note(Module, LoadInfo),
    case tame_registry:find(Module) of
        {ok, Entry} ->
            Loading = Pool#pool{spec = spec(Entry, Path, LoadInfo), loader = From},
            {next_state, empty, started(missing(Loading), Loading), {{timeout, replace}, ?REPLACE_MS, reconcile}};
        error ->
            {keep_state_and_data, {reply, From, {error, {load, "the module is not isolated any more"}}}}
    end;
handle_event({call, From}, {load, _, _}, _State, _Pool) ->
    Text = "The NIF library is loaded already, in a host; a library is loaded once",
    {keep_state_and_data, {reply, From, {error, {reload, Text}}}};
%% ---- callers -------------------------------------------------------------------------------------------

handle_event({call, From}, {ring, _}, failed, _Pool) ->
    {keep_state_and_data, {reply, From, {error, failed}}};
handle_event({call, From}, {ring, _}, serving, #pool{hosts = Hosts}) ->
    Rings = list_to_tuple(rings(Hosts)),
    {keep_state_and_data, {reply, From, {ok, element(tame_ring:choose(Rings), Rings)}}};
handle_event({call, {Caller, _} = From}, {ring, Timeout}, _Empty, Pool) ->
    #pool{waiting = Waiting, options = #{max_waiting := Most, wait_ms := WaitMs}} = Pool,
    case map_size(Waiting) < Most of
        true ->
            Monitor = monitor(process, Caller),
            {Ms, Why} = if Timeout =< WaitMs -> {Timeout, deadline}; true -> {WaitMs, no_host} end,
            {keep_state, Pool#pool{waiting = Waiting#{Monitor => From}}, {{timeout, Monitor}, Ms, {expired, Why}}};
        false ->
            refused(busy, Pool),
            {keep_state_and_data, {reply, From, {error, busy}}}
    end;
%% One that was answered in the meantime is not in the line any more, and its time-out means nothing.
handle_event({timeout, Monitor}, {expired, Why}, _State, #pool{waiting = Waiting} = Pool) when
    is_map_key(Monitor, Waiting)
->
    {From, Others} = maps:take(Monitor, Waiting),
    demonitor(Monitor, [flush]),
    refused(Why, Pool),
    {keep_state, Pool#pool{waiting = Others}, {reply, From, {error, Why}}};
handle_event({timeout, Monitor}, {expired, _}, _State, _Pool) when is_reference(Monitor) ->
    keep_state_and_data;
handle_event(info, {'DOWN', Monitor, process, _, _}, _State, #pool{waiting = Waiting} = Pool) when
    is_map_key(Monitor, Waiting)
->
    {keep_state, Pool#pool{waiting = maps:remove(Monitor, Waiting)}, {{timeout, Monitor}, cancel}};
%% ---- hosts ---------------------------------------------------------------------------------------------

handle_event(info, {tame_host, Host, What}, State, #pool{hosts = Hosts} = Pool) ->
    case lists:keymember(Host, 1, Hosts) of
        true -> host(What, Host, State, Pool);
        %% It was told to stop.
        false -> keep_state_and_data
    end;
handle_event(info, {'DOWN', Monitor, process, _, _}, State, #pool{monitors = Monitors} = Pool) ->
    case maps:take(Monitor, Monitors) of
        {Host, Others} -> host_died(Host, State, Pool#pool{monitors = Others});
        error -> keep_state_and_data
    end;
handle_event(internal, publish, serving, Pool) ->
    publish(Pool),
    keep_state_and_data;
handle_event(internal, publish, _State, _Pool) ->
    keep_state_and_data;
handle_event({timeout, replace}, reconcile, State, Pool) when State =/= unbound ->
    reconcile(State, Pool);
handle_event({timeout, replace}, reconcile, unbound, _Pool) ->
    keep_state_and_data;
handle_event(internal, reconcile, State, Pool) ->
    reconcile(State, Pool);
handle_event(cast, {bad_reply, Ring, What}, _State, #pool{hosts = Hosts}) ->
    _ = [tame_host:condemn(Host, Ring, What) || {Host, {up, Its}} <- Hosts, Its =:= Ring],
    keep_state_and_data;
%% Before a library is loaded there is nothing to start anew.
handle_event({call, From}, restart, unbound, _Pool) ->
    {keep_state_and_data, {reply, From, ok}};
handle_event({call, From}, restart, _State, #pool{hosts = Hosts} = Pool) ->
    _ = [tame_host:stop(Host) || {Host, _} <- Hosts],
    Fresh = Pool#pool{hosts = [], idle_since = #{}},
    Started = started(missing(Fresh), Fresh),
    publish(Started),
    {next_state, state(Started), Started, {reply, From, ok}};
handle_event({timeout, look}, hosts, State, Pool) ->
    looked(State, pruned(Pool));
handle_event({call, From}, info, State, #pool{hosts = Hosts, waiting = Waiting} = Pool) ->
    Info = #{state => State, load => Pool#pool.load, waiting => map_size(Waiting), restarts => Pool#pool.restarts},
    {keep_state_and_data, {reply, From, {Info, [Host || {Host, _} <- Hosts]}}};
handle_event(_Type, _Late, _State, _Pool) ->
    keep_state_and_data.

host({up, Ring, Loaded}, Host, _State, #pool{module = Module, spec = Spec} = Pool0) ->
    #{path := Path, load_info := LoadInfo} = Spec,
    ok = tame_registry:set_load(Module, {Path, LoadInfo}),
    Pool = set(Host, {up, Ring}, Pool0#pool{loaded = Loaded, spec = Spec#{first := false}}),
    {next_state, serving, told_loader(ok, Pool), {next_event, internal, publish}};
host({refused, Why}, Host, State, Pool) ->
    gone(State, told_loader({error, load_error(Why)}, remove(Host, Pool)));
host(down, Host, State, #pool{hosts = Hosts, restarts = Restarts} = Pool) ->
    case lists:keyfind(Host, 1, Hosts) of
        %% It was not up: an answer to announce/1, or it crashed while it started.
        {Host, down} -> gone(State, Pool);
        _ -> gone(State, set(Host, down, Pool#pool{restarts = Restarts + 1}))
    end;
host(failed, Host, State, Pool) ->
    Text = "the host crashed again and again; tame:restart/1 tries anew",
    gone(State, told_loader({error, {load, Text}}, set(Host, failed, Pool))).

%% A process of ours died; its OS process goes with it.
host_died(Host, State, #pool{hosts = Hosts, died_at = Before} = Pool) ->
    Now = now_ms(),
    case lists:keymember(Host, 1, Hosts) of
        true when State =/= unbound ->
            Ms = if is_integer(Before), Now - Before < ?REPLACE_MS -> ?REPLACE_MS; true -> 0 end,
            Died = remove(Host, Pool#pool{died_at = Now, restarts = Pool#pool.restarts + 1}),
            {next_state, state(Died), Died, [
                {{timeout, replace}, Ms, reconcile}, {next_event, internal, publish}
            ]};
        _ ->
            {keep_state, Pool}
    end.

%% As many hosts as there are to be at least.
reconcile(_State, Pool) ->
    Started = started(missing(Pool), Pool),
    Again = [{{timeout, replace}, ?REPLACE_MS, reconcile} || missing(Started) > 0],
    {next_state, state(Started), Started, Again}.

missing(#pool{hosts = Hosts, options = #{hosts := {Min, _}}}) ->
    max(0, Min - length(Hosts)).

%% A host is not up any more, or never was.
gone(unbound, Pool) ->
    {keep_state, Pool};
gone(_State, #pool{hosts = [], load = Load} = Pool) when Load =/= ok ->
    %% Refused before any host had loaded it: as if nothing had been loaded.
    {next_state, unbound, refuse_all(failed, Pool#pool{spec = none})};
gone(_State, #pool{hosts = []} = Pool) ->
    {next_state, empty, Pool, [{{timeout, replace}, ?REPLACE_MS, reconcile}, {next_event, internal, publish}]};
gone(_State, Pool) ->
    {next_state, state(Pool), Pool, {next_event, internal, publish}}.

state(#pool{hosts = Hosts}) ->
    case {rings(Hosts), [Host || {Host, State} <- Hosts, State =/= failed]} of
        {[_ | _], _} -> serving;
        {[], []} when Hosts =/= [] -> failed;
        {[], _} -> empty
    end.

%% Starts Count hosts. Those that cannot be started now are tried again (reconcile).
started(0, Pool) ->
    Pool;
started(Count, #pool{module = Module, spec = Spec} = Pool) ->
    case tame_isolation_sup:start_host(Module, Spec) of
        {ok, Host} -> started(Count - 1, added(Host, Pool));
        {error, _} -> Pool
    end.

%% ---- the look at the hosts ----------------------------------------------------------------------------

look() ->
    {{timeout, look}, ?LOOK_MS, hosts}.

looked(serving, Pool) ->
    Adjusted = adjust(Pool),
    {next_state, state(Adjusted), Adjusted, look()};
looked(_State, Pool) ->
    {keep_state, Pool, look()}.

pruned(#pool{looks = Looks, module = Module} = Pool) ->
    _ = Looks rem ?PRUNE_LOOKS =:= 0 andalso tame_given:prune(Module),
    Pool#pool{looks = Looks + 1}.

%% One more, or one less.
adjust(#pool{hosts = Hosts, options = #{hosts := {Min, Max}, idle_ms := IdleMs}} = Pool0) ->
    Now = now_ms(),
    Infos = [{Host, tame_ring:info(Ring)} || Max > Min, {Host, {up, Ring}} <- Hosts],
    Pool = note_idle(Now, Infos, Pool0),
    Count = length(Hosts),
    Starting = [Host || {Host, down} <- Hosts],
    case lists:all(fun({_, #{in_line := Line}}) -> Line > 0 end, Infos) of
        true when Count < Max, Starting =:= [], Infos =/= [] -> started(1, Pool);
        true -> Pool;
        false when Count > Min -> stop_idle(Now - IdleMs, Pool);
        false -> Pool
    end.

%% Since when nobody has a call in it, nor a resource of it.
note_idle(Now, Infos, #pool{idle_since = Before} = Pool) ->
    Idle = [
        {Host, maps:get(Host, Before, Now)}
     || {Host, #{slots_in_use := 0, resources := 0}} <- Infos
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

publish(#pool{module = Module, hosts = Hosts, loaded = Loaded, options = Options}) when Loaded =/= none ->
    tame_isolated:publish(Module, list_to_tuple(rings(Hosts)), Loaded, Options);
publish(_NothingLoaded) ->
    ok.

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
    tame_telemetry:execute([tame, pool, refused], #{waiting => map_size(Waiting)}, #{
        library => Module, reason => Reason
    }).

now_ms() ->
    erlang:monotonic_time(millisecond).

%% ---- the line -------------------------------------------------------------------------------------------

%% All at once: they take the rings from the row as any other caller, the least busy first.
answer_all(#pool{hosts = Hosts} = Pool) ->
    [Ring | _] = rings(Hosts),
    reply_all({ok, Ring}, Pool).

refuse_all(Why, Pool) ->
    reply_all({error, Why}, Pool).

%% Their time-outs go off for nobody.
reply_all(Answer, #pool{waiting = Waiting} = Pool) ->
    maps:foreach(
        fun(Monitor, From) ->
            demonitor(Monitor, [flush]),
            gen_statem:reply(From, Answer)
        end,
        Waiting
    ),
    Pool#pool{waiting = #{}}.
