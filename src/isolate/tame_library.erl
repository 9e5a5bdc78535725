%% The table that every call of an isolated module reads, from any process: one entry for each
%% library. It belongs to the top supervisor; tame_hosts writes its library's entry.
-module(tame_library).

-include("tame_library.hrl").

-export([new/0]).
-export([add/1]).
-export([find/1]).
-export([is_known/1]).
-export([publish/4]).
-export([remove/1]).

-export_type([library/0]).

-type library() :: #library{}.

-spec new() -> ok.
new() ->
    Options = [named_table, public, {keypos, #library.module}, {read_concurrency, true}],
    ?MODULE = ets:new(?MODULE, Options),
    ok.

%% Not loaded yet.
-spec add(module()) -> ok.
add(Module) ->
    true = ets:insert(?MODULE, #library{module = Module}),
    ok.

%% not_isolated: there is no entry. not_started: there is no table, because the application tame
%% does not run.
-spec find(module()) -> library() | not_isolated | not_started.
find(Module) ->
    try ets:lookup(?MODULE, Module) of
        [Library] -> Library;
        [] -> not_isolated
    catch
        error:badarg -> not_started
    end.

-spec is_known(module()) -> boolean().
is_known(Module) ->
    try
        ets:member(?MODULE, Module)
    catch
        error:badarg -> false
    end.

%% What tame_hosts knows now. Nothing is written for a module that is not isolated any more.
-spec publish(module(), tuple(), tame_host:loaded(), tame_isolate_options:options()) -> ok.
publish(Module, Rings, Loaded, #{deadline_ms := DeadlineMs, wait_ms := WaitMs}) ->
    #{wants_caller := WantsCaller, sends := Sends, resources := Resources} = Loaded,
    _ = ets:update_element(?MODULE, Module, [
        {#library.rings, Rings},
        {#library.loaded, true},
        {#library.wants_caller, WantsCaller},
        {#library.sends, Sends},
        {#library.resources, Resources},
        {#library.deadline_ms, DeadlineMs},
        {#library.wait_ms, WaitMs}
    ]),
    ok.

-spec remove(module()) -> ok.
remove(Module) ->
    true = ets:delete(?MODULE, Module),
    ok.
