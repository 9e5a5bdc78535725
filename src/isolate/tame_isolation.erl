%% How a module becomes isolated, and how it is itself again: the process behind tame:isolate/1,2,
%% tame:restore/1, tame:restart/1 and tame:info/0.
%%
%% It isolates one module at a time. Its state is in tame_registry, not in this process; calls of
%% isolated modules do not come here. When this process dies, the next one finishes what it finds
%% begun (init/1). When the application stops, modules stay bound.
%%
%% Isolating kills no process. Code is replaced only while no process runs the version that would be
%% purged for that, and code that some process still runs stays until it has left (phase `leaving'
%% of the registry).
-module(tame_isolation).
-behaviour(gen_server).

-include("tame_registry.hrl").

-export([start_link/0]).
-export([isolate/2]).
-export([load_binary/3]).
-export([restore/1]).
-export([restart/1]).
-export([info/0]).
-export([runs/0]).

%% Internal.
-export([init/1]).
-export([handle_call/3]).
-export([handle_cast/2]).
-export([handle_info/2]).

-import(tame_text, [text/2]).

-export_type([refusal/0]).

%% A reason, and a sentence that says what to do.
-type refusal() :: {error, {atom(), string()}}.

%% How long isolate and restore may take in all: a host's start, a library's load, calls in flight.
-define(SLACK_MS, 60000).
-define(NAME_BYTES_MAX, 200).
%% How often code that processes still ran when it was replaced is looked at again.
-define(PURGE_MS, 500).
%% How often processes that run an -on_load are looked at.
-define(LOOK_MS, 20).
%% How often isolated modules are looked at for other code in the place of theirs.
-define(REPLACED_MS, 1000).
%% How long all processes of one kind may take to say how they are.
-define(ASK_MS, 500).

-spec start_link() -> gen_server:start_ret().
start_link() ->
    ok = tame_orphan:wait(?MODULE),
    gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

-spec runs() -> boolean().
runs() ->
    whereis(tame_sup) =/= undefined.

%% Options as a map, or as a list of pairs.
-spec isolate(module(), tame_isolate_options:options() | [{atom(), term()}]) -> ok | refusal().
isolate(Module, Options) when is_atom(Module) ->
    %% Names of processes are made of it.
    case byte_size(atom_to_binary(Module)) =< ?NAME_BYTES_MAX of
        true -> isolate_here(Module, Options, tame_isolate_options:complete(Options));
        false -> bad_module(Module)
    end;
isolate(Module, _Options) ->
    bad_module(Module).

isolate_here(Module, Options, {ok, #{start_ms := StartMs} = All}) ->
    Named = tame_isolate_options:named(Options),
    case tame_native:host_runs_on(os:type()) of
        ok -> ask({isolate, Module, Named, All}, 2 * StartMs + ?SLACK_MS);
        Refused -> Refused
    end;
isolate_here(_Module, _Options, Wrong) ->
    Wrong.

%% In place of code:load_binary/3, for an isolated module: its new code asks hosts as well.
-spec load_binary(module(), file:filename(), binary()) -> {module, module()} | refusal().
load_binary(Module, File, Beam) when is_atom(Module), is_binary(Beam) ->
    case tame_registry:find(Module) of
        {ok, #entry{options = #{start_ms := StartMs}}} ->
            ask({load_binary, Module, File, Beam}, 2 * StartMs + ?SLACK_MS);
        error ->
            not_isolated(Module)
    end;
load_binary(Module, _File, _Beam) ->
    bad_module(Module).

-spec restore(module()) -> ok | refusal().
restore(Module) when is_atom(Module) -> ask({restore, Module}, ?SLACK_MS);
restore(Module) -> bad_module(Module).

-spec restart(module()) -> ok | refusal().
restart(Module) when is_atom(Module) ->
    case tame_registry:find(Module) of
        {ok, #entry{group = Group}} ->
            try
                tame_hosts:restart(Group)
            catch
                exit:_ -> interrupted()
            end;
        error ->
            not_isolated(Module)
    end;
restart(Module) ->
    bad_module(Module).

ask(Request, Ms) ->
    try
        gen_server:call(?MODULE, Request, Ms)
    catch
        exit:{timeout, _} ->
            Format = "no answer within ~b ms; see tame:info/0 for what came of it",
            {error, {timeout, text(Format, [Ms])}};
        exit:_ ->
            interrupted()
    end.

interrupted() ->
    Text = "a process of tame ended meanwhile, and was started again: ask once more",
    {error, {interrupted, Text}}.

bad_module(Module) ->
    Format = "~0tP: expected a module, which is an atom of at most ~b bytes",
    {error, {bad_module, text(Format, [Module, 9, ?NAME_BYTES_MAX])}}.

%% Asks the tame_hosts of all modules at once, then all their hosts, and waits for each of both no
%% longer than ?ASK_MS in all. Of what does not answer it says what the tables know.
-spec info() -> #{module() => map()}.
info() ->
    Asked = [{Entry, request(Entry)} || Entry <- tame_registry:all()],
    Until = until(),
    Known = [{Entry, answer(Request, Until, not_answering)} || {Entry, Request} <- Asked],
    AskedHosts = [{Entry, with_requests(Answer)} || {Entry, Answer} <- Known],
    UntilHosts = until(),
    maps:from_list([
        {Module, maps:merge(common(Entry), with_answers(Answer, UntilHosts))}
     || {#entry{module = Module} = Entry, Answer} <- AskedHosts
    ]).

request(#entry{module = Module, group = Group}) ->
    tame_hosts:request_info(Group, Module).

common(#entry{module = Module, group = Group, options = Options} = Entry) ->
    #{
        phase => phase(Entry),
        share => Group,
        atoms => tame_group:count_atoms(Group, 0),
        old_code => erlang:check_old_code(Module),
        limits => maps:get(limits, Options)
    }.

phase(#entry{phase = Phase} = Entry) ->
    case tame_replaced:is_replaced(Entry) of
        true -> replaced;
        false -> Phase
    end.

with_requests({Library, Hosts}) ->
    {Library, [tame_host:request_info(Host) || Host <- Hosts]};
with_requests(not_answering) ->
    Unknown = #{state => not_answering, load => none, libraries => 0, waiting => 0},
    {Unknown#{restarts => 0}, []}.

with_answers({Library, Requests}, Until) ->
    Unknown = #{
        state => not_answering,
        os_pid => 0,
        crashes_in_row => 0,
        starts => 0,
        libraries => 0,
        up_ms => 0,
        rss_bytes => 0,
        ring => #{}
    },
    Library#{hosts => [answer(Request, Until, Unknown) || Request <- Requests]}.

until() ->
    now_ms() + ?ASK_MS.

answer(Request, Until, Otherwise) ->
    LeftMs = max(0, Until - now_ms()),
    case gen_statem:receive_response(Request, LeftMs) of
        {reply, Info} -> Info;
        _ -> Otherwise
    end.

%% ---- the process ----------------------------------------------------------------------------

-record(state, {
    %% Modules whose old code some process still runs.
    old = #{} :: #{module() => true},
    %% Those whose bound code is not there any more.
    replaced = [] :: [module()],
    %% What the process before this one had begun, and the processes that ran an -on_load when it
    %% ended, one of them perhaps for that: it goes on without who asked for it. Until they have
    %% ended, and no longer than that, requests wait.
    begun = [] :: [module()],
    loading = [] :: [pid()],
    until = 0 :: integer(),
    later = [] :: [{term(), gen_server:from()}]
}).

-type state() :: #state{}.

-spec init([]) -> {ok, state()}.
init([]) ->
    _ = erlang:send_after(?REPLACED_MS, self(), replaced),
    All = tame_registry:all(),
    Begun = [Entry || Entry <- All, is_begun(Entry)],
    Starts = [StartMs || #entry{options = #{start_ms := StartMs}} <- Begun],
    Old = [Module || #entry{module = Module} <- All, erlang:check_old_code(Module)],
    State = #state{
        begun = [Module || #entry{module = Module} <- Begun],
        loading = [Pid || Begun =/= [], Pid <- loading()],
        until = now_ms() + 2 * lists:max([0 | Starts]) + ?SLACK_MS
    },
    {ok, looked(with_old(Old, State))}.

is_begun(#entry{phase = Phase, coming = Coming}) ->
    Phase =/= bound orelse Coming =/= none.

%% The code server monitors each process in which it runs an -on_load, and nobody else.
loading() ->
    {monitors, Monitors} = process_info(whereis(code_server), monitors),
    [Pid || {process, Pid} <- Monitors].

%% Has it been decided what came of what was begun?
looked(#state{begun = []} = State) ->
    State;
looked(#state{loading = Before, until = Until} = State) ->
    case [Pid || Pid <- loading(), lists:member(Pid, Before)] of
        [_ | _] = Loading ->
            case now_ms() < Until of
                true ->
                    _ = erlang:send_after(?LOOK_MS, self(), look),
                    State#state{loading = Loading};
                false ->
                    ended(State)
            end;
        [] ->
            %% It knows that they have ended, and answers when it has seen to that.
            _ = code:get_path(),
            ended(State)
    end.

ended(#state{begun = Begun, later = Later} = State) ->
    Entries = [Entry || Module <- Begun, {ok, Entry} <- [tame_registry:find(Module)]],
    lists:foreach(fun brought_to_an_end/1, Entries),
    Answer = fun({Request, From}, Before) ->
        {reply, Reply, After} = handle_call(Request, From, Before),
        gen_server:reply(From, Reply),
        After
    end,
    Old = lists:filter(fun erlang:check_old_code/1, Begun),
    Ended = with_old(Old, State#state{begun = [], loading = [], later = []}),
    lists:foldr(Answer, Ended, Later).

brought_to_an_end(#entry{module = Module, phase = leaving, versions = [#{md5 := Bound} | _]}) ->
    case tame_versions:current(Module) of
        Bound -> tame_registry:set_phase(Module, bound);
        _ -> _ = tame_restoring:has_left(Module)
    end;
brought_to_an_end(#entry{module = Module, coming = #{md5 := Bound, key := Key}, phase = Phase}) ->
    case tame_versions:current(Module) of
        Bound -> tame_registry:arrived(Module);
        _ when Phase =:= binding -> tame_restoring:forget(Module);
        _ -> tame_binding:forget_coming(Module, Key)
    end.

-spec handle_cast(term(), state()) -> {noreply, state()}.
handle_cast(_Nothing, State) ->
    {noreply, State}.

-spec handle_info(term(), state()) -> {noreply, state()}.
handle_info(purge, #state{old = Old} = State) ->
    HasNotLeft = fun(Module, true) -> not tame_restoring:has_left(Module) end,
    {noreply, again(State#state{old = maps:filter(HasNotLeft, Old)})};
handle_info(replaced, #state{replaced = Before} = State) ->
    _ = erlang:send_after(?REPLACED_MS, self(), replaced),
    {noreply, State#state{replaced = tame_replaced:say(Before)}};
handle_info(look, State) ->
    {noreply, looked(State)};
%% A late answer of a process that was asked about old code, for one.
handle_info(_Nothing, State) ->
    {noreply, State}.

again(#state{old = Old} = State) ->
    _ = map_size(Old) > 0 andalso erlang:send_after(?PURGE_MS, self(), purge),
    State.

-spec handle_call(term(), gen_server:from(), state()) ->
    {reply, term(), state()} | {noreply, state()}.
handle_call(Request, From, #state{begun = [_ | _], later = Later} = State) ->
    {noreply, State#state{later = [{Request, From} | Later]}};
handle_call({isolate, Module, Named, Asked}, _From, State) ->
    case tame_registry:find(Module) of
        {ok, #entry{phase = leaving}} ->
            {reply, tame_old_code:in_use(Module), State};
        {ok, _} ->
            Text = text("~p is isolated already; tame:restore/1 undoes it", [Module]),
            {reply, {error, {already_isolated, Text}}, State};
        error ->
            Group = tame_group:of_module(Module, Asked),
            case tame_group:agreed(Group, Named, Asked) of
                {ok, Options} ->
                    purged_later(Module, tame_binding:bind(Module, Group, Options), State);
                {error, _} = Refused ->
                    {reply, Refused, State}
            end
    end;
handle_call({load_binary, Module, File, Beam}, _From, State) ->
    case tame_registry:find(Module) of
        {ok, #entry{phase = bound} = Entry} ->
            {reply, tame_binding:load_binary(Entry, File, Beam), State};
        {ok, #entry{}} ->
            {reply, tame_old_code:in_use(Module), State};
        error ->
            {reply, not_isolated(Module), State}
    end;
handle_call({restore, Module}, _From, State) ->
    case tame_registry:find(Module) of
        {ok, Entry} -> purged_later(Module, tame_restoring:restore(Entry), State);
        error -> {reply, not_isolated(Module), State}
    end.

purged_later(Module, Answer, State) ->
    {reply, Answer, with_old(lists:filter(fun erlang:check_old_code/1, [Module]), State)}.

with_old(Modules, #state{old = Old} = State) ->
    More = State#state{old = maps:merge(Old, maps:from_keys(Modules, true))},
    if map_size(Old) =:= 0 -> again(More); true -> More end.

not_isolated(Module) ->
    {error, {not_isolated, text("~p is not isolated; see tame:info/0", [Module])}}.

now_ms() ->
    erlang:monotonic_time(millisecond).
