%% How many hosts an isolated library has, and the callers who wait for one.
%%
%% A call does not come here: it takes a ring from its library's entry (tame_library), which this
%% process writes, and goes. It is asked only while no host is up:
%%
%%              load        a host is up              the last host is down
%%   unbound ─────────▶ empty ───────────▶ serving ───────────────────────▶ empty
%%      ▲                 │ ▲                │
%%      └─ first load     │ └────────────────┘        all hosts failed: failed ──restart──▶ empty
%%         refused        ▼
%%                      failed
%%
%% A process that takes the place of one that died begins in `empty' when its library was loaded
%% before (tame_registry): it asks the hosts that there are how they are, and until they have
%% answered calls go on over the rings in the entry. A library that was loaded once never becomes
%% unbound.
%%
%% Callers wait in `empty', each with a time-out of its own (a generic time-out named by its
%% monitor), and are taken out when they die; more than max_waiting are refused at once.
%% tame_hosts_scale says when there is to be a host more or less. A host process that dies is
%% replaced, at once or, when they die one after the other, after a second. Each look starts the
%% hosts that are missing for any reason; no event has to remember to. The first host that answers
%% says whether the library loads: when it is refused, the others are stopped.
-module(tame_hosts).
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

%% Why there is no ring: too many wait already, none came up before the caller's own deadline, none
%% did within wait_ms, the hosts crashed too often.
-type refusal() :: busy | deadline | no_host | failed.

%% How often hosts are looked at: whether there are too few or too many.
-define(LOOK_MS, 100).
%% After how many looks dead processes are removed from tame_given.
-define(PRUNE_LOOKS, 50).
%% How long a process of ours may take to answer.
-define(ASK_MS, 5000).
-define(REPLACE_MS, 1000).

-record(data, {
    module :: module(),
    options :: tame_isolate_options:options(),
    spec = none :: none | tame_host:spec(),
    loader = none :: none | gen_statem:from(),
    loaded = none :: none | tame_host:loaded(),
    %% what load/3 came to
    load = none :: none | ok | {error, {atom(), string()}},
    %% Oldest first; `down' also while it starts.
    hosts = [] :: [{pid(), {up, tame_ring:ring()} | down | failed}],
    monitors = #{} :: #{reference() => pid()},
    %% When a host process died last, and until when none is started in its place.
    died_at = none :: none | integer(),
    hold_until = none :: none | integer(),
    idle = tame_hosts_scale:new() :: tame_hosts_scale:idle(),
    looks = 0 :: non_neg_integer(),
    waiting = tame_hosts_waiting:new() :: tame_hosts_waiting:waiting(),
    restarts = 0 :: non_neg_integer()
}).

-spec start_link(module()) -> gen_statem:start_ret() | ignore.
start_link(Module) ->
    gen_statem:start_link({local, name(Module)}, ?MODULE, Module, []).

name(Module) ->
    binary_to_atom(<<"tame_hosts_", (atom_to_binary(Module))/binary>>).

%% In place of erlang:load_nif/2: starts the hosts, and returns when the first has loaded the
%% library.
-spec load(module(), file:filename_all(), term()) -> ok | {error, {atom(), string()}}.
load(Module, Path, LoadInfo) ->
    case tame_registry:find(Module) of
        {ok, #entry{options = #{start_ms := StartMs}}} ->
            gen_statem:call(name(Module), {load, Path, LoadInfo}, StartMs + ?ASK_MS);
        error ->
            exit(noproc)
    end.

%% A ring of a host that is up; waits for one for this long. Exits while this process is being
%% replaced.
-spec ring(module(), timeout()) -> {ok, tame_ring:ring()} | {error, refusal()}.
ring(Module, infinity) ->
    %% The answer comes after wait_ms at the latest.
    gen_statem:call(name(Module), {ring, infinity}, infinity);
ring(Module, Ms) ->
    gen_statem:call(name(Module), {ring, Ms}, Ms + ?ASK_MS).

%% A host's message; lost while this process is being replaced, which asks hosts when it starts.
-spec tell(module(), term()) -> ok.
tell(Module, Message) ->
    try
        name(Module) ! Message,
        ok
    catch
        error:badarg -> ok
    end.

%% The host of this ring wrote what no host may write.
-spec bad_reply(module(), tame_ring:ring(), term()) -> ok.
bad_reply(Module, Ring, What) ->
    gen_statem:cast(name(Module), {bad_reply, Ring, What}).

%% Starts new hosts in place of all others, which end after their calls in flight.
-spec restart(module()) -> ok.
restart(Module) ->
    gen_statem:call(name(Module), restart, ?ASK_MS).

%% For tame:info/0: what is known here, and the host processes.
-spec info(module()) -> {map(), [pid()]}.
info(Module) ->
    gen_statem:call(name(Module), info, ?ASK_MS).

-spec callback_mode() -> [handle_event_function | state_enter].
callback_mode() ->
    [handle_event_function, state_enter].

-spec init(module()) -> gen_statem:init_result(atom()) | ignore.
init(Module) ->
    case tame_registry:find(Module) of
        {ok, #entry{options = Options, load_args = none}} ->
            {ok, unbound, #data{module = Module, options = Options}};
        {ok, #entry{options = Options, load_args = {Path, LoadInfo}} = Entry} ->
            Spec = (spec(Entry, Path, LoadInfo))#{first := false},
            Data = #data{module = Module, options = Options, spec = Spec, load = ok},
            {ok, empty, adopt(Data), {next_event, internal, settle}};
        error ->
            ignore
    end.

-spec terminate(term(), atom(), #data{}) -> ok.
terminate(_Reason, _State, _Data) ->
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

%% Takes over the hosts of the process that was here before.
adopt(#data{module = Module} = Data) ->
    lists:foldl(
        fun(Host, Adopting) ->
            ok = tame_host:announce(Host),
            added(Host, Adopting)
        end,
        Data,
        tame_isolation_sup:hosts(Module)
    ).

added(Host, #data{hosts = Hosts, monitors = Monitors} = Data) ->
    Monitor = monitor(process, Host),
    Data#data{hosts = Hosts ++ [{Host, down}], monitors = Monitors#{Monitor => Host}}.

-spec handle_event(gen_statem:event_type(), term(), atom(), #data{}) ->
    gen_statem:event_handler_result(atom()).
handle_event(enter, _From, serving, Data) ->
    publish(Data),
    {keep_state, answer_all(Data), look()};
handle_event(enter, From, State, Data) ->
    _ = From =:= serving andalso publish(Data),
    {keep_state, if State =:= failed -> refuse_all(failed, Data); true -> Data end, look()};
%% ---- loading --------------------------------------------------------------------------------

handle_event({call, From}, {load, Path, LoadInfo}, unbound, #data{module = Module} = Data) ->
    ok = tame_given:note(Module, LoadInfo),
    case tame_registry:find(Module) of
        {ok, Entry} ->
            Loading = Data#data{spec = spec(Entry, Path, LoadInfo), loader = From},
            settled(Loading);
        error ->
            Error = {error, {load, "the module is not isolated any more"}},
            {keep_state_and_data, {reply, From, Error}}
    end;
handle_event({call, From}, {load, _, _}, _State, _Data) ->
    Text = "The NIF library is loaded already, in a host; a library is loaded once",
    {keep_state_and_data, {reply, From, {error, {reload, Text}}}};
%% ---- callers --------------------------------------------------------------------------------

handle_event({call, From}, {ring, _}, failed, _Data) ->
    {keep_state_and_data, {reply, From, {error, failed}}};
handle_event({call, From}, {ring, _}, serving, #data{hosts = Hosts}) ->
    Rings = list_to_tuple(rings(Hosts)),
    {keep_state_and_data, {reply, From, {ok, element(tame_ring:choose(Rings), Rings)}}};
handle_event({call, From}, {ring, Timeout}, _Empty, #data{waiting = Waiting} = Data) ->
    #{max_waiting := Most, wait_ms := WaitMs} = Data#data.options,
    case tame_hosts_waiting:count(Waiting) < Most of
        true ->
            {Monitor, More} = tame_hosts_waiting:add(From, Waiting),
            {Ms, Why} = if Timeout =< WaitMs -> {Timeout, deadline}; true -> {WaitMs, no_host} end,
            {keep_state, Data#data{waiting = More}, {{timeout, Monitor}, Ms, {expired, Why}}};
        false ->
            refused(busy, Data),
            {keep_state_and_data, {reply, From, {error, busy}}}
    end;
handle_event({timeout, Monitor}, {expired, Why}, _State, #data{waiting = Waiting} = Data) ->
    case tame_hosts_waiting:take(Monitor, Waiting) of
        {From, Others} ->
            refused(Why, Data),
            {keep_state, Data#data{waiting = Others}, {reply, From, {error, Why}}};
        %% It was answered in the meantime.
        error ->
            keep_state_and_data
    end;
%% ---- hosts ----------------------------------------------------------------------------------

handle_event(info, {tame_host, Host, What}, _State, #data{hosts = Hosts} = Data) ->
    case lists:keymember(Host, 1, Hosts) of
        true -> host(What, Host, Data);
        %% It was told to stop.
        false -> keep_state_and_data
    end;
handle_event(info, {'DOWN', Monitor, process, _, _}, _State, Data) ->
    #data{monitors = Monitors, waiting = Waiting} = Data,
    case {maps:take(Monitor, Monitors), tame_hosts_waiting:take(Monitor, Waiting)} of
        {{Host, Others}, error} ->
            host_died(Host, Data#data{monitors = Others});
        {error, {_From, Others}} ->
            {keep_state, Data#data{waiting = Others}, {{timeout, Monitor}, cancel}};
        {error, error} ->
            keep_state_and_data
    end;
%% Until its heap is collected, this process keeps closed rings: gigabytes of address space.
handle_event(info, let_go, _State, _Data) ->
    true = erlang:garbage_collect(),
    keep_state_and_data;
handle_event(internal, settle, _State, Data) ->
    settled(Data);
handle_event(cast, {bad_reply, Ring, What}, _State, #data{hosts = Hosts}) ->
    _ = [tame_host:condemn(Host, Ring, What) || {Host, {up, Its}} <- Hosts, Its =:= Ring],
    keep_state_and_data;
%% Before a library is loaded there are no hosts to replace.
handle_event({call, From}, restart, unbound, _Data) ->
    {keep_state_and_data, {reply, From, ok}};
handle_event({call, From}, restart, _State, #data{hosts = Hosts} = Data) ->
    _ = [tame_host:stop(Host) || {Host, _} <- Hosts],
    Fresh = Data#data{hosts = [], idle = tame_hosts_scale:new(), hold_until = none},
    settled(Fresh, {reply, From, ok});
handle_event({timeout, look}, hosts, State, Data) ->
    looked(State, pruned(Data));
handle_event({call, From}, info, State, #data{hosts = Hosts, waiting = Waiting} = Data) ->
    Info = #{
        state => State,
        load => Data#data.load,
        waiting => tame_hosts_waiting:count(Waiting),
        restarts => Data#data.restarts
    },
    {keep_state_and_data, {reply, From, {Info, [Host || {Host, _} <- Hosts]}}};
handle_event(_Type, _Late, _State, _Data) ->
    keep_state_and_data.

host({up, Ring, Loaded}, Host, #data{module = Module, spec = Spec} = Data0) ->
    #{path := Path, load_info := LoadInfo} = Spec,
    ok = tame_registry:set_load_args(Module, {Path, LoadInfo}),
    Data = set(Host, {up, Ring}, Data0#data{loaded = Loaded, spec = Spec#{first := false}}),
    settled(told_loader(ok, Data));
host({refused, _Why}, Host, #data{load = ok} = Data) ->
    settled(remove(Host, Data));
host({refused, Why}, Host, #data{hosts = Hosts} = Data) ->
    %% Before any host had loaded it: as if nothing had been loaded.
    _ = [tame_host:stop(Other) || {Other, _} <- Hosts, Other =/= Host],
    Refused = told_loader({error, load_error(Why)}, Data#data{hosts = [], spec = none}),
    {next_state, unbound, refuse_all(failed, Refused)};
host(down, Host, #data{hosts = Hosts, restarts = Restarts} = Data) ->
    case lists:keyfind(Host, 1, Hosts) of
        %% It was not up: an answer to announce/1, or it crashed while it started.
        {Host, down} -> settled(Data);
        _ ->
            self() ! let_go,
            settled(set(Host, down, Data#data{restarts = Restarts + 1}))
    end;
host(failed, Host, Data) ->
    settled(set(Host, failed, Data)).

%% A process of ours died; its OS process goes with it.
host_died(Host, #data{hosts = Hosts, died_at = Before, restarts = Restarts} = Data) ->
    Now = now_ms(),
    case lists:keymember(Host, 1, Hosts) of
        true ->
            Again = is_integer(Before) andalso Now - Before < ?REPLACE_MS,
            HoldUntil = if Again -> Now + ?REPLACE_MS; true -> none end,
            Died = Data#data{died_at = Now, hold_until = HoldUntil, restarts = Restarts + 1},
            settled(remove(Host, Died));
        %% It was told to stop.
        false ->
            {keep_state, Data}
    end.

%% What each event that may have taken a host away, or brought one, comes to.
settled(Data) ->
    settled(Data, []).

settled(Data, Actions) ->
    Settled = replaced(Data),
    State = state(Settled),
    _ = State =:= serving andalso publish(Settled),
    {next_state, State, Settled, Actions}.

%% As many hosts as there are to be at least. What cannot be started now is at a later look.
replaced(#data{hold_until = HoldUntil} = Data) ->
    case is_integer(HoldUntil) andalso now_ms() < HoldUntil of
        true -> Data;
        false -> started(missing(Data), Data)
    end.

missing(#data{hosts = Hosts, options = #{hosts := {Min, _}}}) ->
    max(0, Min - length(Hosts)).

state(#data{hosts = Hosts}) ->
    case {rings(Hosts), [Host || {Host, State} <- Hosts, State =/= failed]} of
        {[_ | _], _} -> serving;
        {[], []} when Hosts =/= [] -> failed;
        {[], _} -> empty
    end.

started(0, Data) ->
    Data;
started(Count, #data{module = Module, spec = Spec} = Data) ->
    case tame_isolation_sup:start_host(Module, Spec) of
        {ok, Host} -> started(Count - 1, added(Host, Data));
        {error, _} -> Data
    end.

%% ---- the look at the hosts ------------------------------------------------------------------

look() ->
    {{timeout, look}, ?LOOK_MS, hosts}.

looked(unbound, Data) ->
    {keep_state, Data, look()};
looked(State, Data) ->
    Adjusted = replaced(if State =:= serving -> adjust(Data); true -> Data end),
    {next_state, state(Adjusted), Adjusted, look()}.

pruned(#data{looks = Looks, module = Module} = Data) ->
    _ = Looks rem ?PRUNE_LOOKS =:= 0 andalso tame_given:prune(Module),
    Data#data{looks = Looks + 1}.

%% A host more, or one less. Where their number is fixed there is nothing to look at.
adjust(#data{options = #{hosts := {Same, Same}}} = Data) ->
    Data;
adjust(#data{hosts = Hosts, options = Options, idle = Before} = Data0) ->
    Seen = [{Host, seen(State)} || {Host, State} <- Hosts],
    {Step, Idle} = tame_hosts_scale:look(now_ms(), Seen, Options, Before),
    Data = Data0#data{idle = Idle},
    case Step of
        keep ->
            Data;
        start ->
            started(1, Data);
        {stop, Host} ->
            Others = remove(Host, Data),
            publish(Others),
            tame_host:stop(Host),
            Others
    end.

seen({up, Ring}) -> {up, tame_ring:info(Ring)};
seen(State) -> State.

set(Host, State, #data{hosts = Hosts} = Data) ->
    Data#data{hosts = lists:keyreplace(Host, 1, Hosts, {Host, State})}.

remove(Host, #data{hosts = Hosts} = Data) ->
    Data#data{hosts = lists:keydelete(Host, 1, Hosts)}.

rings(Hosts) ->
    [Ring || {_, {up, Ring}} <- Hosts].

publish(#data{loaded = none}) ->
    ok;
publish(#data{module = Module, hosts = Hosts, loaded = Loaded, options = Options}) ->
    tame_library:publish(Module, list_to_tuple(rings(Hosts)), Loaded, Options).

told_loader(_Answer, #data{loader = none} = Data) ->
    Data;
told_loader(Answer, #data{loader = Loader} = Data) ->
    %% The entry is there when the module goes on.
    _ = Answer =:= ok andalso publish(Data),
    gen_statem:reply(Loader, Answer),
    Data#data{loader = none, load = Answer}.

%% As erlang:load_nif/2 puts it.
load_error(#{reason := load_returned, text := Text}) -> {load, to_string(Text)};
load_error(#{reason := Reason, text := Text}) -> {Reason, to_string(Text)}.

to_string(Text) ->
    tame_text:text("~ts", [Text]).

refused(Reason, #data{module = Module, waiting = Waiting}) ->
    Measurements = #{waiting => tame_hosts_waiting:count(Waiting)},
    Metadata = #{library => Module, reason => Reason},
    tame_telemetry:execute([tame, hosts, refused], Measurements, Metadata).

now_ms() ->
    erlang:monotonic_time(millisecond).

%% ---- callers that wait ----------------------------------------------------------------------

%% All at once: from then on they take rings from the entry as any other caller, the least busy
%% first.
answer_all(#data{hosts = Hosts, waiting = Waiting} = Data) ->
    [Ring | _] = rings(Hosts),
    Data#data{waiting = tame_hosts_waiting:reply_all({ok, Ring}, Waiting)}.

refuse_all(Why, #data{waiting = Waiting} = Data) ->
    Data#data{waiting = tame_hosts_waiting:reply_all({error, Why}, Waiting)}.
