%% Which modules are isolated, and how one becomes so. The doors are tame:isolate/1,2, tame:restore/1,
%% tame:restart/1 and tame:info/0.
%%
%% One module at a time: whoever isolates another waits. Calls of isolated modules do not come here.
-module(tame_isolation).
-behaviour(gen_server).

-export([start_link/0]).
-export([isolate/2]).
-export([restore/1]).
-export([restart/1]).
-export([info/0]).
-export([runs/0]).

%% Internal.
-export([init/1]).
-export([handle_call/3]).
-export([handle_cast/2]).
-export([handle_info/2]).
-export([terminate/2]).

-export_type([options/0]).
-export_type([refusal/0]).

%% What a library is isolated with; everything has a default.
-type options() :: #{
    %% OS processes: so many, or between these two, as many as are needed. Default 1.
    hosts => pos_integer() | {pos_integer(), pos_integer()},
    %% Calls that one host runs at once. Default 2.
    workers => 1..1024,
    %% How long a caller waits before {tame, deadline} is raised. Default infinity.
    deadline_ms => pos_integer() | infinity,
    %% How much longer the native code may go on then, before its host is killed. Default 1000.
    grace_ms => pos_integer(),
    %% Callers that may stand in line, at each host and for one. Default 1024.
    max_waiting => non_neg_integer(),
    %% How long one waits for a host while none is up. Default 5000.
    wait_ms => pos_integer(),
    %% After so long without a call a host beyond the fewest is stopped. Default 30000.
    idle_ms => pos_integer(),
    %% How long a host may take to start and load. Default 10000.
    start_ms => pos_integer(),
    %% More crashes than {Count, Ms} says and the host is not started again. Default {10, 1000}.
    intensity => {non_neg_integer(), pos_integer()} | infinity,
    %% How long a host stays down after the second crash in a row, and at most. Default {10, 5000}.
    backoff_ms => {non_neg_integer(), non_neg_integer()},
    %% How long a caller spins before it waits in receive. Default 20.
    spin_us => 0..1000,
    %% The shared memory of a host: slots, bytes of each, and of the area each way for what is larger.
    %% Default 64, 16384, 1 GiB; memory is taken as it is needed.
    slots => 1..1024,
    slot_bytes => pos_integer(),
    area_bytes => pos_integer(),
    %% Atoms that the library may make. Default 100000.
    max_atoms => non_neg_integer(),
    %% The NIF library, where it is not found. Default: what binds the module below its priv/.
    library => file:filename(),
    %% How the module is bound. Default auto.
    bind => tame_bind:how(),
    %% The program. Default: tame's own.
    host => file:filename()
}.

%% A reason, and a sentence that says what to do.
-type refusal() :: {error, {atom(), string()}}.

-record(bound, {pool :: pid(), file :: file:filename(), beam :: binary()}).

-spec start_link() -> gen_server:start_ret().
start_link() ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

-spec runs() -> boolean().
runs() ->
    whereis(?MODULE) =/= undefined.

-spec isolate(module(), options()) -> ok | refusal().
isolate(Module, Options) ->
    case normal(Options) of
        {ok, All} -> gen_server:call(?MODULE, {isolate, Module, All}, infinity);
        {error, _} = Error -> Error
    end.

-spec restore(module()) -> ok | refusal().
restore(Module) ->
    gen_server:call(?MODULE, {restore, Module}, infinity).

-spec restart(module()) -> ok | refusal().
restart(Module) ->
    gen_server:call(?MODULE, {restart, Module}, infinity).

-spec info() -> #{module() => map()}.
info() ->
    gen_server:call(?MODULE, info, infinity).

%% ---- options --------------------------------------------------------------------------------------------

defaults() ->
    #{
        hosts => 1,
        workers => 2,
        deadline_ms => infinity,
        grace_ms => 1000,
        max_waiting => 1024,
        wait_ms => 5000,
        idle_ms => 30000,
        start_ms => 10000,
        intensity => {10, 1000},
        backoff_ms => {10, 5000},
        spin_us => 20,
        slots => 64,
        slot_bytes => 16384,
        area_bytes => 1 bsl 30,
        max_atoms => 100000,
        bind => auto
    }.

normal(Options) when is_map(Options) ->
    case [Pair || {Key, Value} = Pair <- maps:to_list(Options), expected(Key, Value) =/= ok] of
        [] ->
            #{hosts := Hosts} = All = maps:merge(defaults(), Options),
            {ok, All#{hosts := range(Hosts)}};
        [{Key, Value} | _] ->
            {error, {bad_option, text("~tp => ~0tP: ~ts", [Key, Value, 9, expected(Key, Value)])}}
    end;
normal(Options) when is_list(Options) ->
    try
        normal(maps:from_list(proplists:unfold(Options)))
    catch
        error:_ -> normal(not_a_map)
    end;
normal(Options) ->
    {error, {bad_option, text("~0tP: expected a map of options", [Options, 9])}}.

range(Count) when is_integer(Count) -> {Count, Count};
range(Range) -> Range.

%% ok, or what would have been.
expected(hosts, {Min, Max}) when is_integer(Min), is_integer(Max), Min >= 1, Max >= Min, Max =< 64 -> ok;
expected(hosts, Count) when is_integer(Count), Count >= 1, Count =< 64 -> ok;
expected(hosts, _) -> "expected 1 to 64, or {Fewest, Most}";
expected(deadline_ms, infinity) -> ok;
expected(workers, Value) -> within(Value, 1, 1024);
expected(max_waiting, Value) -> within(Value, 0, 1 bsl 30);
expected(spin_us, Value) -> within(Value, 0, 1000);
expected(slots, Value) -> within(Value, 1, 1024);
expected(slot_bytes, Value) when Value band (Value - 1) =/= 0 -> "expected a power of two from 4096 to 65536";
expected(slot_bytes, Value) -> within(Value, 4096, 65536);
expected(area_bytes, Value) when Value rem 4096 =/= 0 -> "expected a multiple of 4096 up to 68719476736";
expected(area_bytes, Value) -> within(Value, 4096, 1 bsl 36);
expected(max_atoms, Value) -> within(Value, 0, 1 bsl 20);
expected(intensity, infinity) -> ok;
expected(intensity, {Count, Ms}) when is_integer(Count), Count >= 0, is_integer(Ms), Ms > 0 -> ok;
expected(intensity, _) -> "expected {Crashes, Ms} or infinity";
expected(backoff_ms, {First, Most}) when is_integer(First), First >= 0, is_integer(Most), Most >= First -> ok;
expected(backoff_ms, _) -> "expected {First, Most} in ms";
expected(bind, Value) when Value =:= auto; Value =:= recompile; Value =:= overlay -> ok;
expected(bind, _) -> "expected auto, recompile or overlay";
expected(Path, Value) when Path =:= library; Path =:= host ->
    case is_list(Value) orelse is_binary(Value) of
        true -> ok;
        false -> "expected the name of a file"
    end;
expected(Ms, Value) ->
    case lists:member(Ms, [deadline_ms, grace_ms, wait_ms, idle_ms, start_ms]) of
        true -> within(Value, 1, 1 bsl 31);
        false -> text("no such option; there are ~ts", [all_names()])
    end.

within(Value, Least, Most) when is_integer(Value), Value >= Least, Value =< Most -> ok;
within(_, Least, Most) -> text("expected a whole number from ~b to ~b", [Least, Most]).

all_names() ->
    lists:join(", ", [atom_to_list(Name) || Name <- lists:sort([library, host | maps:keys(defaults())])]).

text(Format, Args) ->
    lists:flatten(io_lib:format(Format, Args)).

%% ---- the process ------------------------------------------------------------------------------------------

-spec init([]) -> {ok, #{module() => #bound{}}}.
init([]) ->
    process_flag(trap_exit, true),
    ok = tame_isolated:new(),
    {ok, #{}}.

-spec terminate(term(), #{module() => #bound{}}) -> ok.
terminate(_Reason, Bound) ->
    maps:foreach(fun(Module, How) -> unbind(Module, How) end, Bound).

-spec handle_cast(term(), State) -> {noreply, State}.
handle_cast(_Nothing, Bound) ->
    {noreply, Bound}.

%% Ports and pools that ended as they were told to. A pool that fails says so on the log; its module's calls
%% then raise {tame, {restored, _}}.
-spec handle_info(term(), State) -> {noreply, State}.
handle_info({'EXIT', _, _}, Bound) ->
    {noreply, Bound}.

-spec handle_call(term(), gen_server:from(), State) -> {reply, term(), State}.
handle_call({isolate, Module, _}, _From, Bound) when is_map_key(Module, Bound) ->
    {reply, {error, {already_isolated, text("~p is isolated already; tame:restore/1 undoes it", [Module])}}, Bound};
handle_call({isolate, Module, Options}, _From, Bound) ->
    case bind(Module, Options) of
        {ok, How} -> {reply, ok, Bound#{Module => How}};
        {error, _} = Error -> {reply, Error, Bound}
    end;
handle_call({restore, Module}, _From, Bound) ->
    case maps:take(Module, Bound) of
        {How, Others} -> {reply, unbind(Module, How), Others};
        error -> {reply, not_isolated(Module), Bound}
    end;
handle_call({restart, Module}, _From, Bound) ->
    case Bound of
        #{Module := #bound{pool = Pool}} -> {reply, tame_pool:restart(Pool), Bound};
        #{} -> {reply, not_isolated(Module), Bound}
    end;
handle_call(info, _From, Bound) ->
    {reply, maps:map(fun(_Module, #bound{pool = Pool}) -> tame_pool:info(Pool) end, Bound), Bound}.

not_isolated(Module) ->
    {error, {not_isolated, text("~p is not isolated; see tame:info/0", [Module])}}.

%% ---- binding ------------------------------------------------------------------------------------------------

bind(Module, Options) ->
    maybe_bind([
        fun(Known) -> known(Module, Known) end,
        fun(Known) -> library(Module, Options, Known) end,
        fun(Known) -> rebound(Module, map_get(bind, Options), Known) end,
        fun(Known) -> loaded(Module, Options, Known) end
    ], #{}).

%% Each step adds to what is known, or says what is wrong.
maybe_bind([], #{how := How}) ->
    {ok, How};
maybe_bind([Step | Steps], Known) ->
    case Step(Known) of
        {ok, More} -> maybe_bind(Steps, maps:merge(Known, More));
        {error, _} = Error -> Error
    end.

known(Module, _Known) ->
    case code:which(Module) of
        preloaded ->
            {error, {preloaded, text("~p is part of the emulator itself; it cannot be isolated", [Module])}};
        non_existing ->
            {error, {unknown_module, text("there is no module ~p on the code path", [Module])}};
        cover_compiled ->
            {error, {cover_compiled, text("~p is cover compiled; isolate it before cover does that", [Module])}};
        _ ->
            case code:get_object_code(Module) of
                {Module, Beam, File} -> {ok, #{beam => Beam, file => File}};
                error -> {error, {no_object_code, text("the beam file of ~p is not on the code path", [Module])}}
            end
    end.

library(_Module, #{library := File}, _Known) ->
    one_library(tame_probe:files([File]));
library(Module, _Options, _Known) ->
    case tame_probe:find(Module) of
        {ok, []} ->
            {error,
                {no_nifs,
                    text("no NIF library below the priv/ of ~p's application binds ~p; "
                         "the option library names one that lies elsewhere", [Module, Module])}};
        Found ->
            one_library(Found)
    end.

one_library({error, Text}) ->
    {error, {no_host, Text}};
one_library({ok, [#{<<"error">> := #{<<"reason">> := Reason, <<"text">> := Text}, <<"file">> := Path} | _]}) ->
    {error, {binary_to_atom(Reason), text("~ts: ~ts", [Path, Text])}};
one_library({ok, [#{<<"missing">> := [_ | _] = Missing, <<"file">> := Path} | _]}) ->
    {error, {missing_functions, text("~ts needs what tame_host does not provide: ~ts", [Path, lists:join(", ", Missing)])}};
one_library({ok, [#{<<"functions">> := Functions} | _]}) ->
    {ok, #{functions => [
        {binary_to_atom(Name), Arity}
     || #{<<"name">> := Name, <<"arity">> := Arity} <- Functions
    ]}}.

rebound(Module, How, #{functions := Functions, beam := Beam}) ->
    case tame_bind:bind(How, Module, Functions, Beam) of
        {ok, Bound} -> {ok, #{bound_beam => Bound}};
        {error, no_debug_info} ->
            {error, {no_debug_info,
                text("~p was compiled without debug_info, which bind => recompile needs; overlay does not", [Module])}};
        {error, no_compiler} ->
            {error, {no_compiler,
                "the application compiler is not on the code path, which bind => recompile needs; overlay does not"}};
        {error, {compile, Why}} ->
            {error, {cannot_bind, text("~p cannot be compiled anew: ~0tP", [Module, Why, 20])}};
        {error, {instruction, Op}} ->
            {error, {cannot_bind,
                text("~p has instruction number ~b, which bind => overlay does not know", [Module, Op])}};
        {error, {not_a_beam, Why}} ->
            {error, {cannot_bind, text("the beam file of ~p cannot be read: ~0tP", [Module, Why, 20])}}
    end.

loaded(Module, Options, #{beam := Beam, file := File, bound_beam := BoundBeam}) ->
    {ok, Pool} = tame_pool:start_link(Module, Options),
    ok = tame_isolated:add(Module, Pool),
    How = #bound{pool = Pool, file = File, beam = Beam},
    _ = code:purge(Module),
    case code:load_binary(Module, File, BoundBeam) of
        {module, Module} ->
            _ = code:purge(Module),
            {ok, #{how => How}};
        {error, Why} ->
            %% What was loaded before, if anything, still is.
            Load = maps:get(load, tame_pool:info(Pool)),
            ok = forget(Module, How),
            {error, {Why,
                text("~p, bound to a host, does not load~ts; it works as before", [Module, load_text(Load, Why)])}}
    end.

load_text({error, {_, Text}}, _Why) -> text(": ~ts", [Text]);
load_text(_NotAsked, Why) -> text(": ~p", [Why]).

%% The module as it was, with its library in the VM.
unbind(Module, #bound{file = File, beam = Beam} = How) ->
    _ = code:purge(Module),
    Loaded = code:load_binary(Module, File, Beam),
    _ = code:purge(Module),
    ok = forget(Module, How),
    case Loaded of
        {module, Module} -> ok;
        {error, Why} -> {error, {Why, text("~p does not load any more: ~p", [Module, Why])}}
    end.

forget(Module, #bound{pool = Pool}) ->
    ok = tame_pool:stop(Pool),
    tame_isolated:remove(Module).
