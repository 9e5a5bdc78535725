%% What the functions of an isolated module do (tame_bind): find their library, call it in its host, and
%% return or raise what it returned or raised.
%%
%% The table of libraries belongs to tame_isolation; each library's pool writes its row. It is read by
%% every call, from any process.
-module(tame_isolated).

-export([library/1]).
-export([call/4]).
-export([load_nif/3]).

%% Internal.
-export([new/0]).
-export([add/2]).
-export([publish/2]).
-export([remove/1]).

-export_type([library/0]).

-record(library, {
    module :: module(),
    pool :: pid(),
    %% of the hosts that are up, oldest first
    rings = {} :: tuple(),
    %% whether the library has been loaded into a host
    loaded = false :: boolean(),
    %% each call says who makes it
    wants_caller = false :: boolean(),
    deadline_ms = infinity :: timeout()
}).

-opaque library() :: #library{}.

%% none: no library is loaded, so the module's own body is what runs.
-spec library(module()) -> none | library().
library(Module) ->
    try ets:lookup(?MODULE, Module) of
        [#library{loaded = true} = Library] -> Library;
        _ -> none
    catch
        %% The application has been stopped.
        error:badarg -> none
    end.

%% Calls function number Index of the library, which is Name with these arguments.
-spec call(library(), non_neg_integer(), atom(), [term()]) -> term().
call(#library{rings = {}} = Library, Index, Name, Args) ->
    call_later(Library, Index, Name, Args);
call(#library{rings = Rings, deadline_ms = DeadlineMs} = Library, Index, Name, Args) ->
    Ring = element(erlang:system_info(scheduler_id) rem tuple_size(Rings) + 1, Rings),
    case tame_ring:call(Ring, Index, with_caller(Library, Args), DeadlineMs) of
        {value, Value} -> Value;
        {error, closed} -> call_later(Library, Index, Name, Args);
        Other -> raise(Other, Library, Name, Args)
    end.

with_caller(#library{wants_caller = false}, Args) -> Args;
with_caller(#library{wants_caller = true}, Args) -> [self() | Args].

%% No host is up just now: one is about to be, as a rule.
call_later(#library{pool = Pool, deadline_ms = DeadlineMs} = Library, Index, Name, Args) ->
    Began = erlang:monotonic_time(millisecond),
    case ring(Pool, DeadlineMs) of
        {ok, Ring} ->
            Left = left_ms(DeadlineMs, Began),
            case tame_ring:call(Ring, Index, with_caller(Library, Args), Left) of
                {value, Value} -> Value;
                {error, closed} -> call_later(Library, Index, Name, Args);
                Other -> raise(Other, Library, Name, Args)
            end;
        {error, _} = Refused ->
            raise(Refused, Library, Name, Args)
    end.

ring(Pool, Timeout) ->
    try
        tame_pool:ring(Pool, Timeout)
    catch
        exit:_ -> {error, restored}
    end.

left_ms(infinity, _Began) -> infinity;
left_ms(Ms, Began) -> max(0, Ms - (erlang:monotonic_time(millisecond) - Began)).

-spec raise(tame_ring:reply() | {error, term()}, library(), atom(), [term()]) -> no_return().
%% As if the function itself had raised it: the module may look at the head of the stack trace.
raise({raise, Reason}, Library, Name, Args) ->
    raise(Reason, Library, {Name, Args});
raise(badarg, Library, Name, Args) ->
    raise(badarg, Library, {Name, Args});
%% The arguments may be large, and nobody looks for them here.
raise({error, Error}, #library{module = Module} = Library, Name, Args) ->
    raise({tame, reason(Error, Module, {Name, length(Args)})}, Library, {Name, length(Args)}).

-spec raise(term(), library(), {atom(), arity() | [term()]}) -> no_return().
raise(Reason, #library{module = Module}, {Name, Args}) ->
    {current_stacktrace, Frames} = process_info(self(), current_stacktrace),
    Callers = lists:dropwhile(fun({M, _, _, _}) -> M =:= ?MODULE end, tl(Frames)),
    erlang:raise(error, Reason, [{Module, Name, Args, []} | Callers]).

reason(busy, _Module, _Function) ->
    busy;
reason(deadline, _Module, _Function) ->
    deadline;
reason({host_down, Why}, Module, Function) when is_map(Why) ->
    {crashed, Why#{library => Module, function => Function}};
reason({host_down, Why}, Module, Function) ->
    {crashed, #{library => Module, function => Function, reason => Why}};
reason(failed, Module, _Function) ->
    {failed, #{library => Module, advice => "its hosts crashed too often; see tame:restart/1"}};
reason(Other, Module, Function) ->
    {Other, #{library => Module, function => Function}}.

%% In place of erlang:load_nif/2.
-spec load_nif(module(), file:filename(), term()) -> ok | {error, {atom(), string()}}.
load_nif(Module, Path, LoadInfo) ->
    case ets:lookup(?MODULE, Module) of
        [#library{pool = Pool}] -> tame_pool:load(Pool, filename:absname(Path) ++ ".so", LoadInfo);
        [] -> {error, {load, "the module is not isolated any more"}}
    end.

%% ---- the table ------------------------------------------------------------------------------------------

-spec new() -> ok.
new() ->
    ?MODULE = ets:new(?MODULE, [
        named_table, public, {keypos, #library.module}, {read_concurrency, true}
    ]),
    ok.

%% Not loaded yet.
-spec add(module(), pid()) -> ok.
add(Module, Pool) ->
    true = ets:insert(?MODULE, #library{module = Module, pool = Pool}),
    ok.

%% What the pool knows now. none: its library is not loaded any more.
-spec publish(module(), none | map()) -> ok.
publish(Module, none) ->
    _ = ets:update_element(?MODULE, Module, [{#library.rings, {}}, {#library.loaded, false}]),
    ok;
publish(Module, #{
    pool := Pool, rings := Rings, wants_caller := WantsCaller, deadline_ms := DeadlineMs
}) ->
    true = ets:insert(?MODULE, #library{
        module = Module,
        pool = Pool,
        rings = Rings,
        loaded = true,
        wants_caller = WantsCaller,
        deadline_ms = DeadlineMs
    }),
    ok.

-spec remove(module()) -> ok.
remove(Module) ->
    true = ets:delete(?MODULE, Module),
    ok.
