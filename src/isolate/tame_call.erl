%% What the functions of an isolated module do (tame_bind): find their library, call it in its host,
%% and return or raise what it returned or raised. A bound module never runs a NIF in this VM: where
%% its library is not known (tame_library), its functions raise.
-module(tame_call).

-include("tame_library.hrl").
-include("tame_registry.hrl").

-export([library/1]).
-export([call/4]).
-export([load_nif/3]).
-export([system_info/1]).

%% A process is charged for each call of an Erlang function, and 16 callers share a scheduler: the
%% more calls of a library fit into a timeslice, the fewer wait for a turn of all.
-compile({inline, [by/2, called/4, called/5, left_ms/1, noted/2, with_caller/2]}).

%% When tame_hosts is being replaced, it is asked again after this.
-define(AGAIN_MS, 5).

%% none: no library is loaded yet, so the module's own body is what runs. Raises where the module is
%% not isolated any more, or the application tame has been stopped.
-spec library(tame_library:key()) -> none | tame_library:library().
library(Key) ->
    case tame_library:find(Key) of
        #library{loaded = true} = Library ->
            Library;
        #library{} ->
            none;
        not_isolated ->
            unknown(restored, "its code is of the time when it was isolated");
        not_started ->
            unknown(not_started, "start the application tame")
    end.

-spec unknown(restored | not_started, string()) -> no_return().
unknown(Reason, Advice) ->
    error({tame, {Reason, #{library => caller(), advice => Advice}}}).

%% Whose code asks: what knew that is gone.
caller() ->
    {current_stacktrace, Frames} = process_info(self(), current_stacktrace),
    [{Module, _, _, _} | _] = [Frame || Frame <- Frames, element(1, Frame) =/= ?MODULE],
    Module.

%% Calls function number Index of the library, which is Name with these arguments. What it returned
%% is the element of the list: the bound function has to take it out, so that this is no tail call,
%% and a process that is in here counts as one that runs the module's code when that is purged.
-spec call(tame_library:library(), non_neg_integer(), atom(), [term()]) -> [term(), ...].
call(#library{base = Base} = Library, Index, Name, Args) ->
    [called(Library, Base + Index, Name, Args)].

called(#library{deadline_ms = OwnMs} = Library, Index, Name, Args) ->
    case left_ms(OwnMs) of
        0 -> raise(deadline, Library, Name, Args);
        DeadlineMs -> called(Library, DeadlineMs, Index, Name, Args)
    end.

%% Outside of tame:with/2, as most calls are, no function of tame_job_call is called.
left_ms(OwnMs) ->
    case get('$tame_deadline') of
        undefined -> OwnMs;
        Deadline -> min(OwnMs, tame_job_call:left_ms(Deadline))
    end.

called(#library{route = Route} = Library, DeadlineMs, Index, Name, Args) ->
    ok = noted(Library, Args),
    case by(Library, Args) of
        route ->
            case tame_ring:call_by(Route, Index, with_caller(Library, Args), DeadlineMs) of
                {value, Value} -> Value;
                {by, Ring, Reply} -> replied(Reply, Ring, Library, DeadlineMs, Index, Name, Args);
                none -> later(Library, until(DeadlineMs), Index, Name, Args)
            end;
        {ring, Ring} ->
            Reply = tame_ring:call(Ring, Index, with_caller(Library, Args), DeadlineMs),
            replied(Reply, Ring, Library, DeadlineMs, Index, Name, Args);
        two_hosts ->
            raise(two_hosts, Library, Name, Args)
    end.

replied({value, Value}, _Ring, _Library, _DeadlineMs, _Index, _Name, _Args) ->
    Value;
replied({error, closed}, _Ring, Library, DeadlineMs, Index, Name, Args) ->
    later(Library, until(DeadlineMs), Index, Name, Args);
replied(Reply, Ring, Library, _DeadlineMs, _Index, Name, Args) ->
    raise(Reply, Ring, Library, Name, Args).

with_caller(#library{wants_caller = false}, Args) -> Args;
with_caller(#library{wants_caller = true}, Args) -> [self() | Args].

noted(#library{sends = false}, _Args) -> ok;
noted(#library{group = Group}, Args) -> tame_given:note(Group, [self() | Args]).

%% ---- which host -----------------------------------------------------------------------------

by(#library{resources = false}, _Args) ->
    route;
by(#library{route = Route}, Args) ->
    by_home(tame_ring:rings(Route), Args).

%% Where there is one host it has the resources; by the route the call might go to one that is up
%% since.
by_home({}, _Args) ->
    route;
by_home({Ring}, _Args) ->
    {ring, Ring};
by_home(Rings, Args) ->
    case home(Args, Rings, none) of
        none -> route;
        Place when is_integer(Place) -> {ring, element(Place, Rings)};
        two_hosts -> two_hosts
    end.

%% The place of the ring whose host has the resources that a term names. A resource of a host that
%% is gone is a reference like any other: any host raises badarg for it. The time depends on the
%% size of the term; this is Erlang, so it yields.
home(_Term, _Rings, two_hosts) ->
    two_hosts;
home(Ref, Rings, Home) when is_reference(Ref) ->
    case tame_ring:home(Rings, Ref) of
        Place when is_integer(Place), Home =:= none -> Place;
        Place when is_integer(Place), Home =/= Place -> two_hosts;
        _ -> Home
    end;
home([Head | Tail], Rings, Home) ->
    home(Tail, Rings, home(Head, Rings, Home));
home(Tuple, Rings, Home) when is_tuple(Tuple) ->
    home_elements(tuple_size(Tuple), Tuple, Rings, Home);
home(Map, Rings, Home) when is_map(Map) ->
    home_pairs(maps:next(maps:iterator(Map)), Rings, Home);
home(_Term, _Rings, Home) ->
    Home.

home_elements(0, _Tuple, _Rings, Home) ->
    Home;
home_elements(N, Tuple, Rings, Home) ->
    home_elements(N - 1, Tuple, Rings, home(element(N, Tuple), Rings, Home)).

home_pairs(none, _Rings, Home) ->
    Home;
home_pairs({Key, Value, More}, Rings, Home) ->
    home_pairs(maps:next(More), Rings, home(Value, Rings, home(Key, Rings, Home))).

%% ---- without a host -------------------------------------------------------------------------

until(infinity) -> infinity;
until(Ms) -> now_ms() + Ms.

left(infinity) -> infinity;
left(Until) -> max(0, Until - now_ms()).

%% No host is up just now: one is about to be, as a rule. One deadline holds for all attempts.
later(#library{wait_ms = WaitMs} = Library, Until, Index, Name, Args) ->
    later(Library, Until, now_ms() + WaitMs, Index, Name, Args).

later(Library, Until, WaitUntil, Index, Name, Args) ->
    case asked(Library, left(Until)) of
        {ok, Ring} ->
            case tame_ring:call(Ring, Index, with_caller(Library, Args), left(Until)) of
                {value, Value} -> Value;
                {error, closed} -> again(Library, Until, WaitUntil, Index, Name, Args);
                Other -> raise(Other, Ring, Library, Name, Args)
            end;
        {error, Refused} ->
            raise(Refused, Library, Name, Args);
        replaced ->
            again(Library, Until, WaitUntil, Index, Name, Args)
    end.

again(#library{key = Key} = Library, Until, WaitUntil, Index, Name, Args) ->
    case {left(Until), left(WaitUntil)} of
        {0, _} ->
            raise(deadline, Library, Name, Args);
        {_, 0} ->
            raise(no_host, Library, Name, Args);
        _ ->
            receive
            after ?AGAIN_MS -> ok
            end,
            case tame_library:find(Key) of
                #library{} -> later(Library, Until, WaitUntil, Index, Name, Args);
                not_isolated -> raise(restored, Library, Name, Args);
                not_started -> raise(not_started, Library, Name, Args)
            end
    end.

asked(#library{group = Group, key = Key}, Timeout) ->
    try
        tame_hosts:ring(Group, Key, Timeout)
    catch
        exit:_ -> replaced
    end.

%% ---- exceptions -----------------------------------------------------------------------------

-spec raise(tame_ring:reply(), tame_ring:ring(), tame_library:library(), atom(), [term()]) ->
    no_return().
%% The host says these in its own way: where the reply does not fit into the ring's area, and where
%% there is none.
raise({raise, {tame, {reply_too_large, Bytes}}}, _Ring, Library, Name, Args) when
    is_integer(Bytes)
->
    raise({reply_too_large, Bytes}, Library, Name, Args);
raise({raise, {tame, {returned_no_term, Function}}}, _Ring, Library, Name, Args) when
    is_binary(Function)
->
    raise(returned_no_term, Library, Name, Args);
%% As if the function itself had raised it: the module may look at the head of the stack trace.
raise({raise, Reason}, _Ring, Library, Name, Args) ->
    raise_as(Reason, Library, {Name, Args});
raise(badarg, _Ring, Library, Name, Args) ->
    raise_as(badarg, Library, {Name, Args});
raise({error, {bad_reply, What}}, Ring, #library{group = Group} = Library, Name, Args) ->
    ok = tame_hosts:bad_reply(Group, Ring, What),
    raise({bad_reply, What}, Library, Name, Args);
raise({error, Error}, _Ring, Library, Name, Args) ->
    raise(Error, Library, Name, Args).

%% Without the arguments, which may be large: their number is enough here.
-spec raise(term(), tame_library:library(), atom(), [term()]) -> no_return().
raise(Error, #library{module = Module} = Library, Name, Args) ->
    raise_as({tame, reason(Error, Module, {Name, length(Args)})}, Library, {Name, length(Args)}).

-spec raise_as(term(), tame_library:library(), {atom(), arity() | [term()]}) -> no_return().
raise_as(Reason, #library{module = Module}, {Name, Args}) ->
    {current_stacktrace, Frames} = process_info(self(), current_stacktrace),
    %% The first is the bound function.
    [_ | Callers] = lists:dropwhile(fun({M, _, _, _}) -> M =:= ?MODULE end, tl(Frames)),
    erlang:raise(error, Reason, [{Module, Name, Args, []} | Callers]).

reason(busy, _Module, _Function) ->
    busy;
reason(deadline, _Module, _Function) ->
    deadline;
reason({host_down, #{limit := Limit}}, _Module, _Function) ->
    {limit, tame_host_limits:name(Limit)};
reason({host_down, Why}, Module, Function) when is_map(Why) ->
    {crashed, Why#{library => Module, function => Function}};
reason({host_down, Why}, Module, Function) ->
    {crashed, #{library => Module, function => Function, reason => Why}};
reason(failed, Module, Function) ->
    advice(failed, Module, Function, "its hosts crashed too often; see tame:restart/1");
reason(returned_no_term, Module, Function) ->
    Advice = "the NIF returned what is no term, which may end the VM when it runs there",
    advice(returned_no_term, Module, Function, Advice);
reason(no_host, Module, Function) ->
    Advice = "no host came up within wait_ms; see tame:info/0 and the log",
    advice(no_host, Module, Function, Advice);
reason(restored, Module, Function) ->
    advice(restored, Module, Function, "the module is not isolated any more");
reason(not_started, Module, Function) ->
    advice(not_started, Module, Function, "start the application tame");
reason(two_hosts, Module, Function) ->
    Advice = "the call names native resources of two hosts; with hosts => 1 all are in one",
    advice(two_hosts, Module, Function, Advice);
reason({bad_reply, What}, Module, Function) ->
    {bad_reply, #{library => Module, function => Function, reply => What}};
reason({reply_too_large, Bytes}, Module, Function) ->
    {reply_too_large, #{library => Module, function => Function, bytes => Bytes}};
reason(Other, Module, Function) ->
    {Other, #{library => Module, function => Function}}.

advice(Reason, Module, Function, Advice) ->
    {Reason, #{library => Module, function => Function, advice => Advice}}.

%% ---- loading --------------------------------------------------------------------------------

%% In place of erlang:load_nif/2, in the version of a module's code that has this key. It waits for
%% its turn while other code is loaded or purged, as that does.
-spec load_nif(tame_library:key(), file:filename(), term()) -> ok | {error, {atom(), string()}}.
load_nif(Key, Path, LoadInfo) ->
    case so_path(Path) of
        {ok, File} ->
            %% Changes nothing, but only who may change code comes back from it.
            undefined = erlang:delete_module(''),
            case tame_library:find(Key) of
                #library{module = Module} -> loaded(Key, Module, File, LoadInfo);
                _ -> {error, {load, "the module is not isolated any more"}}
            end;
        error ->
            {current_stacktrace, Frames} = process_info(self(), current_stacktrace),
            Callers = lists:dropwhile(fun({M, _, _, _}) -> M =:= ?MODULE end, tl(Frames)),
            Explained = [{error_info, #{module => erl_erts_errors}}],
            erlang:raise(error, badarg, [{erlang, load_nif, [Path, LoadInfo], Explained} | Callers])
    end.

%% As a file's name in the VM: any text, an empty one too; a zero byte ends a binary.
so_path(Path) ->
    try unicode:characters_to_list(named(Path)) of
        Characters when is_list(Characters) ->
            case lists:member(0, Characters) of
                true -> error;
                false -> {ok, filename:absname(Characters ++ ".so")}
            end;
        _ ->
            error
    catch
        error:_ -> error
    end.

named(Path) when is_binary(Path) -> hd(binary:split(Path, <<0>>));
named(Path) -> Path.

loaded(Key, Module, File, LoadInfo) ->
    try
        tame_hosts:load(Key, Module, File, LoadInfo)
    catch
        exit:_ ->
            {error, {load, "the processes of this library ended while it was loaded: try again"}}
    end.

%% In place of erlang:system_info/1. taints are the modules that have loaded a NIF library; one that
%% asks for them most likely looks for itself.
-spec system_info(term()) -> term().
system_info(taints) ->
    Isolated = [Module || #entry{module = Module, load_args = {_, _}} <- tame_registry:all()],
    lists:usort(Isolated ++ erlang:system_info(taints));
system_info(Item) ->
    erlang:system_info(Item).

now_ms() ->
    erlang:monotonic_time(millisecond).
