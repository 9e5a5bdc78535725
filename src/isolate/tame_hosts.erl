%% The hosts of a group of isolated libraries, and the callers who wait for one. Which hosts there
%% are is tame_hosts_list, which libraries they are to have tame_group_libraries, which of them have
%% one tame_hosts_rings.
%%
%% A call does not come here: it takes a ring from its library's entry (tame_library), which this
%% process writes, and goes. It is asked only while no host is up:
%%
%%              load        each library is in a host that is up
%%   unbound ─────────▶ empty ───────────▶ serving ───────────────────────▶ empty
%%      ▲                 │ ▲                │
%%      └─ first load     │ └────────────────┘        all hosts failed: failed ──restart──▶ empty
%%         refused        ▼
%%                      failed                   (back to empty when one is in none any more)
%%
%% The first library of a group is loaded by the hosts that are started for it. One that comes later
%% is loaded by the oldest host that is up; if that refuses it, or ends, the group
%% stays as it was. If not, the library is of the group, and each other host is told to load it, now
%% or when it starts next. One that loads late, or wrongly, is replaced. The module goes on when all
%% hosts that are up have it: the resources that its calls name may be in any. Libraries are loaded
%% one after the other. A library whose code has been purged (tame_versions), or whose module was
%% restored, leaves the group, and hosts unload it.
%%
%% A process that takes the place of one that died begins in `empty' when a library was loaded
%% before (tame_registry): it asks the hosts that there are how they are, and until they have
%% answered calls go on over the rings in the entry. A group that had a library once never becomes
%% unbound.
%%
%% Before the group's processes end it becomes `stopped': its hosts end after their calls in flight.
%%
%% Callers wait in `empty', each with a time-out of its own (a generic time-out named by its
%% monitor), and are taken out when they die; more than max_waiting are refused at once.
%% tame_hosts_scale says when there is to be a host more or less. Each look starts the hosts that
%% are missing for any reason; no event has to remember to. The first host that answers says whether
%% the library loads: when it is refused, the others are stopped.
-module(tame_hosts).
-behaviour(gen_statem).

-include("tame_registry.hrl").

-export([start_link/1]).
-export([load/4]).
-export([ring/3]).
-export([tell/2]).
-export([stop/1]).
-export([bad_reply/3]).
-export([changed/1]).
-export([restart/1]).
-export([info/2]).
-export([request_info/2]).

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

-record(data, {
    group :: tame_group:group(),
    options :: tame_isolate_options:options(),
    libraries :: tame_group_libraries:libraries(),
    hosts :: tame_hosts_list:state(),
    looks = 0 :: non_neg_integer(),
    waiting = tame_hosts_waiting:new() :: tame_hosts_waiting:waiting()
}).

-spec start_link(tame_group:group()) -> gen_statem:start_ret() | ignore.
start_link(Group) ->
    Name = name(Group),
    ok = tame_orphan:wait(Name),
    gen_statem:start_link({local, Name}, ?MODULE, Group, []).

name(Group) ->
    binary_to_atom(<<"tame_hosts_", (atom_to_binary(Group))/binary>>).

%% In place of erlang:load_nif/2, for the version of a module's code that has this key: returns when
%% a host has loaded the library, which is started if there is none.
-spec load(tame_library:key(), module(), file:filename_all(), term()) ->
    ok | {error, {atom(), string()}}.
load(Key, Module, Path, LoadInfo) ->
    case tame_registry:find(Module) of
        {ok, #entry{group = Group, options = #{start_ms := StartMs}}} ->
            %% What the library is given: who loads it, and its load info.
            Request = {load, Key, Module, Path, {loader(), LoadInfo}},
            %% By one host, and then by the others.
            gen_statem:call(name(Group), Request, 2 * StartMs + ?ASK_MS);
        error ->
            exit(noproc)
    end.

%% By whom the library finds that it is loaded (enif_self), and whom it may send to then: nobody
%% where that is ours, which loads in an application's place.
loader() ->
    case self() =:= whereis(tame_isolation) of
        true -> none;
        false -> self()
    end.

%% A ring of a host that is up and has the library; waits for one for this long. Exits while this
%% process is being replaced.
-spec ring(tame_group:group(), tame_library:key(), timeout()) ->
    {ok, tame_ring:ring()} | {error, refusal()}.
ring(Group, Key, infinity) ->
    %% The answer comes after wait_ms at the latest.
    gen_statem:call(name(Group), {ring, Key, infinity}, infinity);
ring(Group, Key, Ms) ->
    gen_statem:call(name(Group), {ring, Key, Ms}, Ms + ?ASK_MS).

%% A module of the group was restored, or code of it purged: what no code can call any more is
%% unloaded. That is looked at from time to time anyway.
-spec changed(tame_group:group()) -> ok.
changed(Group) ->
    try
        gen_statem:call(name(Group), changed, ?ASK_MS)
    catch
        %% It is being replaced: the next begins with what there is.
        exit:_ -> ok
    end.

%% A host's message; lost while this process is being replaced, which asks hosts when it starts.
-spec tell(tame_group:group(), term()) -> ok.
tell(Group, Message) ->
    try
        name(Group) ! Message,
        ok
    catch
        error:badarg -> ok
    end.

%% Starts no host from now on, and answers nobody: each host ends after its calls in flight. Which
%% they are.
-spec stop(tame_group:group()) -> [pid()].
stop(Group) ->
    try
        gen_statem:call(name(Group), stop, ?ASK_MS)
    catch
        %% It is being replaced: those that the next one starts have no calls.
        exit:_ ->
            Hosts = tame_isolation_sup:hosts(Group),
            lists:foreach(fun tame_host:stop/1, Hosts),
            Hosts
    end.

%% The host of this ring wrote what no host may write.
-spec bad_reply(tame_group:group(), tame_ring:ring(), term()) -> ok.
bad_reply(Group, Ring, What) ->
    gen_statem:cast(name(Group), {bad_reply, Ring, What}).

%% Starts new hosts in place of all others, which end after their calls in flight.
-spec restart(tame_group:group()) -> ok.
restart(Group) ->
    gen_statem:call(name(Group), restart, ?ASK_MS).

%% What is known here of a module and its group, and the host processes.
-spec info(tame_group:group(), module()) -> {map(), [pid()]}.
info(Group, Module) ->
    gen_statem:call(name(Group), {info, Module}, ?ASK_MS).

%% The same for tame:info/0, by gen_statem:receive_response/2.
-spec request_info(tame_group:group(), module()) -> gen_statem:request_id().
request_info(Group, Module) ->
    gen_statem:send_request(name(Group), {info, Module}).

-spec callback_mode() -> [handle_event_function | state_enter].
callback_mode() ->
    [handle_event_function, state_enter].

-spec init(tame_group:group()) -> gen_statem:init_result(atom()) | ignore.
init(Group) ->
    case tame_group:members(Group) of
        [] ->
            ignore;
        [#entry{options = Options} | _] = Members ->
            Data = #data{
                group = Group,
                options = Options,
                libraries = tame_group_libraries:new(Group),
                hosts = tame_hosts_list:new(Group, Options)
            },
            case [Module || #entry{module = Module, load_args = {_, _}} <- Members] of
                [] ->
                    {ok, unbound, Data};
                Loaded ->
                    There = tame_group_libraries:taken_over(Group, Loaded),
                    Adopted = adopt(Data#data{libraries = There}),
                    {ok, empty, Adopted, {next_event, internal, settle}}
            end
    end.

-spec terminate(term(), atom(), #data{}) -> ok.
terminate(_Reason, _State, _Data) ->
    ok.

spec(#data{group = Group, libraries = Libraries, options = Options}) ->
    #{
        group => Group,
        libraries => tame_group_libraries:all(Libraries),
        first => tame_group_libraries:is_first(Libraries),
        options => Options
    }.

%% Takes over the hosts of the process that was here before.
adopt(#data{libraries = Libraries, hosts = Hosts} = Data) ->
    Adopted = Data#data{hosts = tame_hosts_list:adopt(Hosts)},
    lists:foreach(
        fun(Host) ->
            ok = tame_host:set_libraries(Host, tame_group_libraries:all(Libraries)),
            ok = tame_host:announce(Host)
        end,
        pids(Adopted)
    ),
    Adopted.

hosts(#data{hosts = Hosts}) ->
    tame_hosts_list:all(Hosts).

pids(Data) ->
    [Host || {Host, _} <- hosts(Data)].

-spec handle_event(gen_statem:event_type(), term(), atom(), #data{}) ->
    gen_statem:event_handler_result(atom()).
handle_event(_Type, _Event, stopped, _Data) ->
    keep_state_and_data;
handle_event({call, From}, stop, _State, Data) ->
    Hosts = pids(Data),
    lists:foreach(fun tame_host:stop/1, Hosts),
    {next_state, stopped, refuse_all(no_host, Data), {reply, From, Hosts}};
handle_event(enter, _From, serving, Data) ->
    publish(Data),
    {keep_state, answer_all(Data), look()};
handle_event(enter, From, State, Data) ->
    _ = From =:= serving andalso publish(Data),
    {keep_state, if State =:= failed -> refuse_all(failed, Data); true -> Data end, look()};
%% ---- loading --------------------------------------------------------------------------------

handle_event({call, _From}, {load, _, _, _, _}, empty, _Data) ->
    %% Until a host can be asked: that is another state.
    {keep_state_and_data, postpone};
handle_event({call, From}, {load, _, _, _, _}, failed, _Data) ->
    Text = "the hosts crashed too often; see tame:restart/1",
    {keep_state_and_data, {reply, From, {error, {load, Text}}}};
handle_event({call, From}, {load, _, _, _, _} = Request, State, Data) ->
    case tame_group_libraries:is_joining(Data#data.libraries) of
        true ->
            Later = tame_group_libraries:put_off({From, Request}, Data#data.libraries),
            {keep_state, Data#data{libraries = Later}};
        false ->
            begin_load(Request, From, State, Data)
    end;
%% ---- callers --------------------------------------------------------------------------------

handle_event({call, From}, {ring, _, _}, failed, _Data) ->
    {keep_state_and_data, {reply, From, {error, failed}}};
handle_event({call, From}, {ring, Key, _}, serving, Data) ->
    {keep_state_and_data, {reply, From, chosen(Key, Data)}};
handle_event({call, From}, {ring, Key, Timeout}, _Empty, #data{waiting = Waiting} = Data) ->
    #{max_waiting := Most, wait_ms := WaitMs} = Data#data.options,
    case tame_hosts_waiting:count(Waiting) < Most of
        true ->
            {Monitor, More} = tame_hosts_waiting:add(From, Key, Waiting),
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
    case tame_hosts_list:find(Host, Hosts) of
        {ok, _} -> host(What, Host, Data);
        error -> keep_state_and_data
    end;
handle_event(info, {'DOWN', Monitor, process, _, _}, _State, Data) ->
    #data{hosts = Hosts, waiting = Waiting} = Data,
    case {tame_hosts_list:down(Monitor, Hosts), tame_hosts_waiting:take(Monitor, Waiting)} of
        {{died, Host, Others}, error} ->
            settled(ended(Host, Data#data{hosts = Others}));
        {{stopped, Host, Others}, error} ->
            {keep_state, ended(Host, Data#data{hosts = Others})};
        {error, {_From, Others}} ->
            {keep_state, Data#data{waiting = Others}, {{timeout, Monitor}, cancel}};
        {error, error} ->
            keep_state_and_data
    end;
%% Until its heap is collected, this process keeps closed rings: gigabytes of address space.
handle_event(info, let_go, _State, _Data) ->
    true = erlang:garbage_collect(),
    keep_state_and_data;
handle_event(info, {load_next, From, Request}, _State, _Data) ->
    {keep_state_and_data, {next_event, {call, From}, Request}};
handle_event(internal, settle, _State, Data) ->
    settled(Data);
handle_event(cast, {bad_reply, Ring, What}, _State, Data) ->
    _ = [tame_host:condemn(Host, Ring, What) || {Host, {up, Its, _}} <- hosts(Data), Its =:= Ring],
    keep_state_and_data;
%% Before a library is loaded there are no hosts to replace.
handle_event({call, From}, restart, unbound, _Data) ->
    {keep_state_and_data, {reply, From, ok}};
handle_event({call, From}, restart, _State, Data0) ->
    Hosts = pids(Data0),
    lists:foreach(fun tame_host:stop/1, Hosts),
    #data{hosts = List} = Data = lists:foldl(fun ended/2, Data0, Hosts),
    settled(Data#data{hosts = tame_hosts_list:forget_all(List)}, {reply, From, ok});
handle_event({timeout, look}, hosts, State, Data) ->
    looked(State, pruned(Data));
handle_event({call, From}, changed, State, Data) ->
    {keep_state, without_gone(State, Data), {reply, From, ok}};
handle_event({call, From}, {info, Module}, State, #data{hosts = Hosts, waiting = Waiting} = Data) ->
    Info = #{
        state => State,
        load => tame_group_libraries:result(Module, Data#data.libraries),
        libraries => length(tame_group_libraries:all(Data#data.libraries)),
        waiting => tame_hosts_waiting:count(Waiting),
        restarts => tame_hosts_list:restarts(Hosts)
    },
    {keep_state_and_data, {reply, From, {Info, pids(Data)}}};
handle_event(_Type, _Late, _State, _Data) ->
    keep_state_and_data.

begin_load({load, Key, Module, Path, Given}, From, State, #data{libraries = Libraries} = Data) ->
    ok = tame_given:note(Data#data.group, Given),
    What = {Key, Module, Path, Given},
    case tame_group_libraries:describe(What, numbers(Data), Libraries) of
        {ok, Library, Numbered} ->
            asked(State, Library, From, Data#data{libraries = Numbered});
        {error, _} = Error ->
            {keep_state, next_load(Data), {reply, From, Error}}
    end.

%% Also those of libraries that a host has not unloaded yet.
numbers(Data) ->
    lists:append([maps:keys(Have) || {_, {up, _, Have}} <- hosts(Data)]).

asked(unbound, Library, From, #data{libraries = Libraries} = Data) ->
    settled(Data#data{libraries = tame_group_libraries:begin_first(Library, From, Libraries)});
asked(serving, Library, From, #data{libraries = Libraries} = Data) ->
    [Host | _] = [Host || {Host, {up, _, _}} <- hosts(Data)],
    Joining = tame_group_libraries:begin_join(Library, From, Host, Libraries),
    ok = tame_host:set_libraries(Host, tame_group_libraries:wanted(Host, Joining)),
    {keep_state, Data#data{libraries = Joining}}.

host({up, Ring, Have}, Host, #data{libraries = Libraries} = Data0) ->
    Data = set(Host, {up, Ring, Have}, Data0),
    case tame_group_libraries:joining(Host, Libraries) of
        {_, Library} ->
            case tame_hosts_rings:has(Library, Have) of
                true -> settled(accepted(Library, Data));
                false -> settled(Data)
            end;
        none ->
            settled(Data)
    end;
host({not_loaded, Key, Why}, Host, #data{libraries = Libraries} = Data) ->
    case tame_group_libraries:joining(Host, Libraries) of
        {alone, #{key := Key}} ->
            settled(not_loaded({error, load_error(Why)}, Data));
        _ ->
            %% Others have loaded it.
            ok = tame_host:set_libraries(Host, tame_group_libraries:all(Libraries)),
            ok = tame_host:give_up(Host, not_loaded),
            {keep_state, Data}
    end;
host({refused, Why}, Host, #data{hosts = Hosts, libraries = Libraries} = Data) ->
    case tame_group_libraries:is_first(Libraries) of
        false ->
            settled(Data#data{hosts = tame_hosts_list:remove(Host, Hosts)});
        true ->
            %% Before any host had loaded one: as if nothing had been loaded.
            lists:foreach(fun tame_host:stop/1, pids(Data) -- [Host]),
            None = Data#data{hosts = tame_hosts_list:forget_all(Hosts)},
            Refused = not_loaded({error, load_error(Why)}, None),
            {next_state, unbound, refuse_all(failed, Refused)}
    end;
host(down, Host, #data{hosts = Hosts} = Data) ->
    %% Not up before: an answer to announce/1, or it crashed while it started.
    _ = tame_hosts_list:find(Host, Hosts) =:= {ok, down} orelse (self() ! let_go),
    settled(set(Host, down, ended(Host, Data)));
host(failed, Host, Data) ->
    settled(set(Host, failed, ended(Host, Data))).

%% What each event that may have taken a host away, or brought one, comes to.
settled(Data) ->
    settled(Data, []).

settled(Data, Actions) ->
    Settled = replaced(joined(Data)),
    State = state(Settled),
    _ = State =:= serving andalso publish(Settled),
    {next_state, State, Settled, Actions}.

replaced(#data{hosts = Hosts} = Data) ->
    Data#data{hosts = tame_hosts_list:fill(spec(Data), Hosts)}.

state(#data{libraries = Libraries} = Data) ->
    tame_hosts_rings:state(tame_group_libraries:all(Libraries), hosts(Data)).

%% ---- libraries ------------------------------------------------------------------------------

%% A host has loaded the library that joins.
accepted(#{module := Module} = Library, #data{libraries = Before} = Data0) ->
    ok = tame_registry:add_library(Module, Library),
    Data = Data0#data{libraries = tame_group_libraries:accepted(Before)},
    told_hosts(Data),
    Data.

%% Have all hosts that are up loaded the library that one has accepted?
joined(#data{libraries = Before} = Data) ->
    case tame_group_libraries:accepted_one(Before) of
        {ok, Library} ->
            case tame_hosts_rings:everywhere(Library, hosts(Data)) of
                true ->
                    {From, Libraries} = tame_group_libraries:joined(Before),
                    Joined = Data#data{libraries = Libraries},
                    %% The entry is there when the module goes on.
                    publish(Joined),
                    gen_statem:reply(From, ok),
                    next_load(Joined);
                false ->
                    Data
            end;
        none ->
            Data
    end.

%% The library that joins, if any, is not of the group.
not_loaded(Error, #data{libraries = Before} = Data) ->
    case tame_group_libraries:refused(Error, Before) of
        {From, Host, Libraries} ->
            _ = is_pid(Host) andalso
                tame_host:set_libraries(Host, tame_group_libraries:all(Libraries)),
            gen_statem:reply(From, Error),
            next_load(Data#data{libraries = Libraries});
        none ->
            Data
    end.

%% A host has ended: was it to load the library that joins?
ended(Host, #data{libraries = Libraries} = Data) ->
    case tame_group_libraries:joining(Host, Libraries) of
        {alone, _} ->
            Text = "the host ended while it loaded the library; see the log",
            not_loaded({error, {load, Text}}, Data);
        _ ->
            Data
    end.

%% The load that waits longest is asked for again, as if it came now.
next_load(#data{libraries = Before} = Data) ->
    case tame_group_libraries:next(Before) of
        {ok, {From, Request}, Libraries} ->
            self() ! {load_next, From, Request},
            Data#data{libraries = Libraries};
        none ->
            Data
    end.

told_hosts(#data{libraries = Libraries} = Data) ->
    Wanted = fun(Host) -> tame_group_libraries:wanted(Host, Libraries) end,
    lists:foreach(fun(Host) -> tame_host:set_libraries(Host, Wanted(Host)) end, pids(Data)).

%% Libraries whose code nobody can run any more leave the group.
without_gone(unbound, Data) ->
    Data;
without_gone(_State, #data{libraries = Before} = Data) ->
    {Gone, Libraries} = tame_group_libraries:still_there(Before),
    lists:foreach(fun(#{key := Key}) -> tame_library:withdraw(Key) end, Gone),
    There = Data#data{libraries = Libraries},
    IsSame = tame_group_libraries:all(Libraries) =:= tame_group_libraries:all(Before),
    _ = IsSame orelse told_hosts(There),
    There.

%% ---- the look at the hosts ------------------------------------------------------------------

look() ->
    {{timeout, look}, ?LOOK_MS, hosts}.

looked(unbound, Data) ->
    {keep_state, Data, look()};
looked(State, Data0) ->
    Data = without_gone(State, Data0),
    Adjusted = replaced(joined(if State =:= serving -> adjust(Data); true -> Data end)),
    {next_state, state(Adjusted), Adjusted, look()}.

pruned(#data{looks = Looks, group = Group} = Data) ->
    _ = Looks rem ?PRUNE_LOOKS =:= 0 andalso tame_given:prune(Group),
    Data#data{looks = Looks + 1}.

adjust(#data{hosts = Hosts} = Data) ->
    case tame_hosts_list:scale(spec(Data), Hosts) of
        {kept, Later} ->
            Data#data{hosts = Later};
        {{stop, Host}, Others} ->
            Adjusted = Data#data{hosts = Others},
            publish(Adjusted),
            tame_host:stop(Host),
            Adjusted
    end.

set(Host, State, #data{hosts = Hosts} = Data) ->
    Data#data{hosts = tame_hosts_list:set(Host, State, Hosts)}.

publish(#data{libraries = Libraries} = Data) ->
    case tame_group_libraries:is_first(Libraries) of
        true -> ok;
        false -> tame_hosts_rings:publish(tame_group_libraries:all_joined(Libraries), hosts(Data))
    end.

chosen(Key, #data{libraries = Libraries} = Data) ->
    case tame_group_libraries:find(Key, Libraries) of
        {ok, Library} -> {ok, tame_hosts_rings:choose(Library, hosts(Data))};
        error -> {error, no_host}
    end.

%% As erlang:load_nif/2 puts it.
load_error(#{reason := load_returned, text := Text}) -> {load, to_string(Text)};
load_error(#{reason := upgrade_returned, text := Text}) -> {upgrade, to_string(Text)};
load_error(#{reason := no_upgrade, text := Text}) -> {upgrade, to_string(Text)};
load_error(#{reason := Reason, text := Text}) -> {Reason, to_string(Text)}.

to_string(Text) ->
    tame_text:text("~ts", [Text]).

refused(Reason, #data{group = Group, waiting = Waiting}) ->
    Measurements = #{waiting => tame_hosts_waiting:count(Waiting)},
    Metadata = #{library => Group, reason => Reason},
    tame_telemetry:execute([tame, hosts, refused], Measurements, Metadata).

%% ---- callers that wait ----------------------------------------------------------------------

%% All at once: from then on they take rings from the entry as any other caller, the least busy
%% first.
answer_all(#data{waiting = Waiting} = Data) ->
    Answer = fun(Key) -> chosen(Key, Data) end,
    Data#data{waiting = tame_hosts_waiting:reply_all(Answer, Waiting)}.

refuse_all(Why, #data{waiting = Waiting} = Data) ->
    Data#data{waiting = tame_hosts_waiting:reply_all(fun(_) -> {error, Why} end, Waiting)}.
