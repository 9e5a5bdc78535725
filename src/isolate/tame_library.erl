%% The table that every call of an isolated module reads, from any process: one entry for each
%% library. It belongs to the top supervisor; tame_hosts writes its library's entry.
%%
%% Calls find the table in a persistent term, which is written once for each start of the
%% application: to find it by its name takes a twentieth of a small call.
-module(tame_library).

-include("tame_library.hrl").

-export([new/0]).
-export([add/3]).
-export([find/1]).
-export([is_known/1]).
-export([publish/5]).
-export([set_rings/2]).
-export([withdraw/1]).
-export([remove/1]).

-export_type([library/0]).
-export_type([key/0]).

-type library() :: #library{}.

%% The first version of a module's code has the module itself.
-type key() :: module() | pos_integer().

-spec new() -> ok.
new() ->
    Options = [named_table, public, {keypos, #library.key}, {read_concurrency, true}],
    ?MODULE = ets:new(?MODULE, Options),
    persistent_term:put(?MODULE, ets:whereis(?MODULE)).

%% Not loaded yet.
-spec add(key(), module(), tame_group:group()) -> ok.
add(Key, Module, Group) ->
    true = ets:insert(?MODULE, #library{key = Key, module = Module, group = Group}),
    ok.

%% not_isolated: there is no entry. not_started: there is no table, because the application tame
%% does not run, or ended and its table with it.
-spec find(key()) -> library() | not_isolated | not_started.
find(Key) ->
    try ets:lookup(persistent_term:get(?MODULE, not_started), Key) of
        [Library] -> Library;
        [] -> not_isolated
    catch
        error:badarg -> not_started
    end.

-spec is_known(key()) -> boolean().
is_known(Key) ->
    try
        ets:member(?MODULE, Key)
    catch
        error:badarg -> false
    end.

%% What tame_hosts knows now. Nothing is written for a module that is not isolated any more.
-spec publish(
    key(), tuple(), non_neg_integer(), tame_host_libraries:info(), tame_isolate_options:options()
) -> ok.
publish(Key, Rings, Base, Info, #{deadline_ms := DeadlineMs, wait_ms := WaitMs}) ->
    #{wants_caller := WantsCaller, sends := Sends, resources := Resources} = Info,
    _ = ets:update_element(?MODULE, Key, [
        {#library.base, Base},
        {#library.rings, Rings},
        {#library.loaded, true},
        {#library.wants_caller, WantsCaller},
        {#library.sends, Sends},
        {#library.resources, Resources},
        {#library.deadline_ms, DeadlineMs},
        {#library.wait_ms, WaitMs}
    ]),
    ok.

%% Which hosts have it, where nothing else of it is known anew.
-spec set_rings(key(), tuple()) -> ok.
set_rings(Key, Rings) ->
    _ = ets:update_element(?MODULE, Key, {#library.rings, Rings}),
    ok.

%% No host has it any more, nor is to have it.
-spec withdraw(key()) -> ok.
withdraw(Key) ->
    _ = ets:update_element(?MODULE, Key, [{#library.rings, {}}, {#library.loaded, false}]),
    ok.

%% Every version of a module.
-spec remove(module()) -> ok.
remove(Module) ->
    Keys = [Key || #library{key = Key, module = Of} <- ets:tab2list(?MODULE), Of =:= Module],
    lists:foreach(fun(Key) -> ets:delete(?MODULE, Key) end, Keys).
