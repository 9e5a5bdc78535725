%% How a module becomes isolated, and how it is itself again. The doors are tame:isolate/1,2, tame:restore/1,
%% tame:restart/1 and tame:info/0.
%%
%% One module at a time. What is isolated stands in tame_registry, not in this process, which holds only what it is
%% doing just now; calls of isolated modules do not come here. When it dies, the next one brings to an end what it
%% finds begun (init/1). When it ends in order, nothing happens: modules stay bound.
%%
%% Nobody is killed for it. Code is replaced only while no process runs what would have to be purged for that, and
%% code that some process still runs stays until it has left (phase `leaving' of the registry).
-module(tame_isolation).
-behaviour(gen_server).

-include("tame_registry.hrl").

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

-export_type([options/0]).
-export_type([refusal/0]).

%% What a library is isolated with; everything has a default.
-type options() :: #{
    %% Number of OS processes: a fixed number, or {Min, Max}, scaled with demand. Default 1.
    hosts => pos_integer() | {pos_integer(), pos_integer()},
    %% Calls that one host runs at once. While all of them wait and more stand behind, up to ten more are
    %% started. Default 2.
    workers => 1..1024,
    %% How long a caller waits before {tame, deadline} is raised. Default infinity.
    deadline_ms => pos_integer() | infinity,
    %% How much longer the native code may go on then, before its host is killed. Default 1000.
    grace_ms => pos_integer(),
    %% Callers that may stand in line, at each host and for one. Default 1024.
    max_waiting => non_neg_integer(),
    %% How long one waits for a host while none is up. Default 5000.
    wait_ms => pos_integer(),
    %% A host beyond the fewest is stopped when it has been idle for this long and the VM holds no native resource of
    %% it. Default 30000.
    idle_ms => pos_integer(),
    %% How long a host may take to start and load. Default 10000.
    start_ms => pos_integer(),
    %% How long a host may leave a question of the VM unanswered before it is replaced, whether it is stopped, swapped
    %% out or held by a debugger; asked only while no calls are answered. Default 5000.
    answer_ms => pos_integer() | infinity,
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
    %% The memory that one reply may take in its caller. Default 1 GiB.
    max_reply_bytes => pos_integer(),
    %% Atoms that the library may make which did not exist, in all its hosts. Default 100000.
    max_atoms => non_neg_integer(),
    %% The NIF library, where it is not found. Default: what binds the module below its priv/.
    library => file:filename(),
    %% How the module is bound. Default auto.
    bind => tame_bind:how(),
    %% The program. Default: tame's own.
    host => file:filename(),
    %% For the configuration only: what happens when the module cannot be isolated. Default fail: the application
    %% tame does not start. in_vm: that is logged, and the module runs inside the VM.
    otherwise => fail | in_vm
}.

%% A reason, and a sentence that says what to do.
-type refusal() :: {error, {atom(), string()}}.

%% How long isolate and restore may take in all: a host's start, a library's load, calls in flight.
-define(SLACK_MS, 60000).
-define(NAME_BYTES_MAX, 200).
%% How long restore waits for processes that run the bound code, and how often it looks.
-define(LEAVE_MS, 5000).
-define(LOOK_MS, 20).
%% How often code that processes still ran when it was replaced is looked at again.
-define(PURGE_MS, 500).
%% How long one process may take to say how it is.
-define(ASK_MS, 500).

-spec start_link() -> gen_server:start_ret().
start_link() ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

-spec runs() -> boolean().
runs() ->
    whereis(tame_sup) =/= undefined.

%% Options as a map, or as a list of pairs.
-spec isolate(module(), options() | [{atom(), term()}]) -> ok | refusal().
isolate(Module, Options) when is_atom(Module) ->
    %% Names of processes are made of it.
    case {byte_size(atom_to_binary(Module)) =< ?NAME_BYTES_MAX, normal(Options)} of
        {true, {ok, #{start_ms := StartMs} = All}} -> ask({isolate, Module, All}, StartMs + ?SLACK_MS);
        {true, {error, _} = Error} -> Error;
        {false, _} -> bad_module(Module)
    end;
isolate(Module, _Options) ->
    bad_module(Module).

-spec restore(module()) -> ok | refusal().
restore(Module) when is_atom(Module) -> ask({restore, Module}, ?SLACK_MS);
restore(Module) -> bad_module(Module).

-spec restart(module()) -> ok | refusal().
restart(Module) when is_atom(Module) ->
    case tame_registry:find(Module) of
        {ok, _} ->
            try
                tame_pool:restart(Module)
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
        exit:{timeout, _} -> {error, {timeout, text("no answer within ~b ms; see tame:info/0 for what came of it", [Ms])}};
        exit:_ -> interrupted()
    end.

interrupted() ->
    {error, {interrupted, "a process of tame ended meanwhile, and was started again: ask once more"}}.

bad_module(Module) ->
    {error, {bad_module, text("~0tP: expected a module, which is an atom of at most ~b bytes", [Module, 9, ?NAME_BYTES_MAX])}}.

%% Asks each library's pool and each host, all at once, and waits for none longer than ?ASK_MS.
-spec info() -> #{module() => map()}.
info() ->
    maps:from_list([{Entry#entry.module, info(Entry)} || Entry <- tame_registry:all()]).

info(#entry{module = Module, phase = Phase, atoms = Atoms}) ->
    Common = #{phase => Phase, atoms => Atoms, old_code => erlang:check_old_code(Module)},
    try tame_pool:info(Module) of
        {Pool, Hosts} ->
            Asked = [tame_host:request_info(Host) || Host <- Hosts],
            Until = erlang:monotonic_time(millisecond) + ?ASK_MS,
            (maps:merge(Common, Pool))#{hosts => [answer(Request, Until) || Request <- Asked]}
    catch
        exit:_ -> Common#{state => not_answering, load => none, waiting => 0, restarts => 0, hosts => []}
    end.

answer(Request, Until) ->
    case gen_statem:receive_response(Request, max(0, Until - erlang:monotonic_time(millisecond))) of
        {reply, Info} ->
            Info;
        _ ->
            #{state => not_answering, os_pid => 0, crashes_in_row => 0, starts => 0, rss_bytes => 0, ring => #{}}
    end.

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
        answer_ms => 5000,
        intensity => {10, 1000},
        backoff_ms => {10, 5000},
        spin_us => 20,
        slots => 64,
        slot_bytes => 16384,
        area_bytes => 1 bsl 30,
        max_reply_bytes => 1 bsl 30,
        max_atoms => 100000,
        otherwise => fail,
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
expected(answer_ms, infinity) -> ok;
expected(workers, Value) -> within(Value, 1, 1024);
expected(max_waiting, Value) -> within(Value, 0, 1 bsl 30);
expected(spin_us, Value) -> within(Value, 0, 1000);
expected(slots, Value) -> within(Value, 1, 1024);
expected(slot_bytes, Value) when Value band (Value - 1) =/= 0 -> "expected a power of two from 4096 to 65536";
expected(slot_bytes, Value) -> within(Value, 4096, 65536);
expected(area_bytes, Value) when Value rem 4096 =/= 0 -> "expected a multiple of 4096 up to 68719476736";
expected(area_bytes, Value) -> within(Value, 4096, 1 bsl 36);
expected(max_atoms, Value) -> within(Value, 0, 1 bsl 20);
expected(max_reply_bytes, Value) -> within(Value, 4096, 1 bsl 40);
expected(otherwise, Value) when Value =:= fail; Value =:= in_vm -> ok;
expected(otherwise, _) -> "expected fail or in_vm";
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
    case lists:member(Ms, [deadline_ms, grace_ms, wait_ms, idle_ms, start_ms, answer_ms]) of
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

%% Modules whose old code some process still runs.
-type state() :: #{module() => true}.

-spec init([]) -> {ok, state()}.
init([]) ->
    %% The one before ended while it was at these.
    Begun = [Entry || #entry{phase = Phase} = Entry <- tame_registry:all(), Phase =/= bound],
    lists:foreach(fun brought_to_an_end/1, Begun),
    Modules = [Module || #entry{module = Module} <- tame_registry:all(), erlang:check_old_code(Module)],
    {ok, again(maps:from_keys(Modules, true))}.

brought_to_an_end(#entry{module = Module, phase = binding, bound_md5 = Bound}) ->
    case md5(Module) of
        Bound -> tame_registry:set_phase(Module, bound);
        _ -> forget(Module)
    end;
brought_to_an_end(#entry{module = Module, phase = leaving, bound_md5 = Bound}) ->
    case md5(Module) of
        Bound -> tame_registry:set_phase(Module, bound);
        _ -> _ = left(Module)
    end.

-spec handle_cast(term(), state()) -> {noreply, state()}.
handle_cast(_Nothing, State) ->
    {noreply, State}.

-spec handle_info(term(), state()) -> {noreply, state()}.
handle_info(purge, State) ->
    {noreply, again(maps:filter(fun(Module, true) -> not left(Module) end, State))};
%% A late answer of a process that was asked about old code, for one.
handle_info(_Nothing, State) ->
    {noreply, State}.

again(State) ->
    _ = map_size(State) > 0 andalso erlang:send_after(?PURGE_MS, self(), purge),
    State.

-spec handle_call(term(), gen_server:from(), state()) -> {reply, term(), state()}.
handle_call({isolate, Module, Options}, _From, State) ->
    case tame_registry:find(Module) of
        {ok, #entry{phase = leaving}} ->
            {reply, in_use(Module), State};
        {ok, _} ->
            {reply, {error, {already_isolated, text("~p is isolated already; tame:restore/1 undoes it", [Module])}},
                State};
        error ->
            purged_later(Module, bind(Module, Options), State)
    end;
handle_call({restore, Module}, _From, State) ->
    case tame_registry:find(Module) of
        {ok, Entry} -> purged_later(Module, restored(Entry), State);
        error -> {reply, not_isolated(Module), State}
    end.

purged_later(Module, Answer, State) ->
    case erlang:check_old_code(Module) andalso not is_map_key(Module, State) of
        true when map_size(State) =:= 0 -> {reply, Answer, again(State#{Module => true})};
        true -> {reply, Answer, State#{Module => true}};
        false -> {reply, Answer, State}
    end.

not_isolated(Module) ->
    {error, {not_isolated, text("~p is not isolated; see tame:info/0", [Module])}}.

%% ---- binding ------------------------------------------------------------------------------------------------

bind(Module, Options) ->
    steps([
        fun(Known) -> known(Module, Known) end,
        fun(Known) -> library(Module, Options, Known) end,
        fun(Known) -> loader(Module, Known) end,
        fun(Known) -> rebound(Module, map_get(bind, Options), Known) end,
        fun(Known) -> without_old_code(Module, Known) end,
        fun(Known) -> started(Module, Options, Known) end,
        fun(Known) -> preloaded(Module, Known) end,
        fun(Known) -> loaded(Module, Known) end
    ], #{}).

%% Each step adds to what is known, or says what is wrong.
steps([], _Known) ->
    ok;
steps([Step | Steps], Known) ->
    case Step(Known) of
        {ok, More} -> steps(Steps, maps:merge(Known, More));
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
    {error, {reason(Reason), text("~ts: ~ts", [Path, Text])}};
one_library({ok, [#{<<"missing">> := [_ | _] = Missing, <<"file">> := Path} | _]}) ->
    {error, {missing_functions, text("~ts needs what tame_host does not provide: ~ts", [Path, lists:join(", ", Missing)])}};
one_library({ok, [#{<<"functions">> := Functions, <<"file">> := Path} | _]}) ->
    try
        {ok, #{so => Path, functions => [
            {binary_to_atom(Name), Arity}
         || #{<<"name">> := Name, <<"arity">> := Arity} <- Functions
        ]}}
    catch
        error:_ -> {error, {bad_library, text("~ts has a function whose name is no atom", [Path])}}
    end.

%% As the host's own words (tame_control:words/0).
reason(Reason) ->
    case [Word || Word <- tame_control:words(), atom_to_binary(Word) =:= Reason] of
        [Word] -> Word;
        [] -> bad_library
    end.

%% A library that is loaded in this VM must be loaded in the host as well. Where no -on_load does that, tame does.
loader(Module, #{beam := Beam, so := So}) ->
    case tame_loader:is_loaded(Module) andalso not tame_loader:has_on_load(Beam) of
        false ->
            {ok, #{preload => none}};
        true ->
            case tame_loader:load_info(Beam) of
                {ok, LoadInfo} ->
                    {ok, #{preload => {So, LoadInfo}}};
                unknown ->
                    {error,
                        {loaded_elsewhere,
                            text("the NIF library of ~p is loaded, by its application and not by -on_load, and with "
                                 "what cannot be told: isolate ~p before its application starts", [Module, Module])}}
            end
    end.

rebound(Module, How, #{functions := Functions, beam := Beam}) ->
    case tame_bind:bind(How, Module, Functions, Beam) of
        {ok, Bound} ->
            {ok, {Module, Md5}} = beam_lib:md5(Bound),
            {ok, #{bound_beam => Bound, bound_md5 => Md5}};
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

without_old_code(Module, _Known) ->
    case code:soft_purge(Module) of
        true -> {ok, #{}};
        false -> in_use(Module)
    end.

%% The library's processes, and the row that the bound code looks for.
started(Module, Options, #{file := File, beam := Beam, functions := Functions, bound_md5 := Md5}) ->
    ok = tame_registry:put(#entry{
        module = Module, options = Options, functions = Functions, file = File, beam = Beam, bound_md5 = Md5
    }),
    ok = tame_isolated:add(Module),
    case tame_isolation_sup:start_library(Module) of
        ok ->
            {ok, #{}};
        {error, Why} ->
            ok = forget(Module),
            {error, {no_processes, text("the processes for ~p do not start: ~0tP", [Module, Why, 20])}}
    end.

%% Before the code is replaced, because there would be no way back.
preloaded(_Module, #{preload := none}) ->
    {ok, #{}};
preloaded(Module, #{preload := {So, LoadInfo}}) ->
    case tame_isolated:load_nif(Module, filename:rootname(So, ".so"), LoadInfo) of
        ok ->
            {ok, #{}};
        {error, {Why, Text}} ->
            ok = forget(Module),
            {error, {Why, text("~p, bound to a host, does not load: ~ts; it works as before", [Module, Text])}}
    end.

loaded(Module, #{file := File, bound_beam := BoundBeam}) ->
    case code:load_binary(Module, File, BoundBeam) of
        {module, Module} ->
            ok = tame_registry:set_phase(Module, bound),
            _ = code:soft_purge(Module),
            {ok, #{}};
        {error, Why} ->
            %% What was loaded before, if anything, still is.
            Load = load_text(Module, Why),
            ok = forget(Module),
            {error, {Why, text("~p, bound to a host, does not load~ts; it works as before", [Module, Load])}}
    end.

load_text(Module, Why) ->
    try tame_pool:info(Module) of
        {#{load := {error, {_, Text}}}, _} -> text(": ~ts", [Text]);
        _ -> text(": ~p", [Why])
    catch
        exit:_ -> text(": ~p", [Why])
    end.

%% ---- restoring ----------------------------------------------------------------------------------------------

%% New callers get the module as it was, with its library in the VM. Those that still run the bound code are served
%% by its hosts until they have left; then the hosts end.
restored(#entry{module = Module, phase = leaving}) ->
    left_in_time(Module);
restored(#entry{module = Module, file = File} = Entry) ->
    case code:soft_purge(Module) of
        true ->
            case own_beam(Entry) of
                {ok, Beam} ->
                    case code:load_binary(Module, File, Beam) of
                        {module, Module} ->
                            ok = tame_registry:set_phase(Module, leaving),
                            left_in_time(Module);
                        {error, Why} ->
                            {error, {Why, text("~p does not load any more: ~p; it stays isolated", [Module, Why])}}
                    end;
                {error, _} = Error ->
                    Error
            end;
        false ->
            in_use(Module)
    end.

%% The module's own code, which loads its library if that was loaded in a host.
own_beam(#entry{beam = Beam, load = none}) ->
    {ok, Beam};
own_beam(#entry{module = Module, beam = Beam, load = {Path, LoadInfo}}) ->
    case tame_loader:has_on_load(Beam) of
        true ->
            {ok, Beam};
        false ->
            case tame_loader:with_on_load(Module, Beam, filename:rootname(Path, ".so"), LoadInfo) of
                {ok, Loading} ->
                    {ok, Loading};
                {error, _} ->
                    {error,
                        {loaded_elsewhere,
                            text("the NIF library of ~p is loaded by its application and not by -on_load, which cannot "
                                 "be made up for without debug_info and compiler: ~p stays isolated", [Module, Module])}}
            end
    end.

left_in_time(Module) ->
    left_in_time(Module, erlang:monotonic_time(millisecond) + ?LEAVE_MS).

left_in_time(Module, Until) ->
    case left(Module) of
        true ->
            ok;
        false ->
            case erlang:monotonic_time(millisecond) < Until of
                true ->
                    timer:sleep(?LOOK_MS),
                    left_in_time(Module, Until);
                false ->
                    {error, {_, Text}} = in_use(Module),
                    {error, {in_use, text("~p is restored for new calls; its hosts go on until these end: ~ts", [Module, Text])}}
            end
    end.

%% Whether nobody runs old code of a module any more. Of one that was restored the rest goes then.
left(Module) ->
    case code:soft_purge(Module) of
        true ->
            case tame_registry:find(Module) of
                {ok, #entry{phase = leaving}} -> forget(Module);
                _ -> ok
            end,
            true;
        false ->
            false
    end.

forget(Module) ->
    ok = tame_isolation_sup:stop_library(Module),
    ok = tame_isolated:remove(Module),
    ok = tame_given:forget(Module),
    tame_registry:delete(Module).

%% Who is in the way. A process that runs native code just now answers when it has come back; it counts as one.
in_use(Module) ->
    Others = processes() -- [self()],
    Asked = maps:from_list([{asked(Pid, Module), Pid} || Pid <- Others]),
    Pids = running(Asked, [], erlang:monotonic_time(millisecond) + ?ASK_MS),
    {error, {in_use, text("~0p: processes run code of ~p that would have to be purged", [lists:sublist(Pids, 5), Module])}}.

asked(Pid, Module) ->
    Id = make_ref(),
    _ = erlang:check_process_code(Pid, Module, [{async, Id}]),
    Id.

running(Asked, Running, _Until) when map_size(Asked) =:= 0 ->
    Running;
running(Asked, Running, Until) ->
    receive
        {check_process_code, Id, true} when is_map_key(Id, Asked) ->
            running(maps:remove(Id, Asked), [map_get(Id, Asked) | Running], Until);
        {check_process_code, Id, _} ->
            running(maps:remove(Id, Asked), Running, Until)
    after max(0, Until - erlang:monotonic_time(millisecond)) ->
        maps:values(Asked) ++ Running
    end.

md5(Module) ->
    try
        Module:module_info(md5)
    catch
        error:_ -> none
    end.
