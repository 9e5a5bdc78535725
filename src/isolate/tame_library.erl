%% What every call of an isolated module reads, from any process: a record for each library.
%%
%% It is a persistent term: to look it up in a table, with the term of a ring in it, takes a tenth
%% of a small call. A persistent term is dear to change, because each process of the VM looks
%% through its heap. What changes with each host is behind the route (tame_ring), so the record
%% changes when the library is isolated, loaded and restored, not when a host ends or comes up.
%%
%% Which libraries there are stands in a table. The top supervisor owns it, and it goes with that.
-module(tame_library).

-include("tame_library.hrl").

-export([new/0]).
-export([clear/0]).
-export([close/0]).
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

%% Of a version of a module's code (tame_versions).
-type key() :: pos_integer().

-spec new() -> ok.
new() ->
    ?MODULE = ets:new(?MODULE, [named_table, public]),
    clear().

%% The table has gone, or is new: what was known before is not.
-spec clear() -> ok.
clear() ->
    Stale = [Name || {{?MODULE, _} = Name, _} <- persistent_term:get()],
    lists:foreach(fun persistent_term:erase/1, Stale).

%% From now on nothing is known, nor will be until there is a new table: calls raise.
-spec close() -> ok.
close() ->
    _ = is_table() andalso ets:delete(?MODULE),
    clear().

%% Not loaded yet.
-spec add(key(), module(), tame_group:group()) -> ok.
add(Key, Module, Group) ->
    true = ets:insert(?MODULE, {Key, Module}),
    set(Key, #library{key = Key, module = Module, group = Group, route = tame_ring:route()}).

%% not_isolated: it is not known. not_started: nothing is, because the application tame does not
%% run, or has ended.
-spec find(key()) -> library() | not_isolated | not_started.
find(Key) ->
    case persistent_term:get({?MODULE, Key}, none) of
        none -> why_not();
        Library -> Library
    end.

why_not() ->
    case is_table() of
        true -> not_isolated;
        false -> not_started
    end.

is_table() ->
    ets:whereis(?MODULE) =/= undefined.

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
publish(Key, Rings, Base, Info, Options) ->
    #{wants_caller := WantsCaller, sends := Sends, resources := Resources} = Info,
    #{deadline_ms := DeadlineMs, wait_ms := WaitMs, hosts := {_, Most}} = Options,
    changed(Key, Rings, fun(Library) ->
        Library#library{
            base = Base,
            loaded = true,
            wants_caller = WantsCaller,
            sends = Sends,
            resources = Resources andalso Most > 1,
            deadline_ms = DeadlineMs,
            wait_ms = WaitMs
        }
    end).

%% Which hosts have it, where nothing else of it is known anew.
-spec set_rings(key(), tuple()) -> ok.
set_rings(Key, Rings) ->
    changed(Key, Rings, fun(Library) -> Library end).

%% No host is to have it any more, and no process can run code that asks for it.
-spec withdraw(key()) -> ok.
withdraw(Key) ->
    try
        true = ets:delete(?MODULE, Key)
    catch
        %% Nothing is known any more.
        error:badarg -> true
    end,
    _ = persistent_term:erase({?MODULE, Key}),
    ok.

%% A record that stays as it was is not written: persistent_term:put/2 compares. The rings come
%% first: who finds that a library is loaded finds the host of each resource too.
changed(Key, Rings, Change) ->
    case persistent_term:get({?MODULE, Key}, none) of
        none -> ok;
        Library -> set(Key, led(Change(Library), Rings))
    end.

led(#library{route = Route} = Library, Rings) ->
    case tame_ring:lead(Route, Rings) of
        ok ->
            Library;
        lost ->
            Another = tame_ring:route(),
            ok = tame_ring:lead(Another, Rings),
            Library#library{route = Another}
    end.

%% One that was removed meanwhile is not to come back.
set(Key, Library) ->
    ok = persistent_term:put({?MODULE, Key}, Library),
    is_known(Key) orelse persistent_term:erase({?MODULE, Key}),
    ok.

%% Every version of a module.
-spec remove(module()) -> ok.
remove(Module) ->
    Keys = [Key || {Key, Of} <- ets:tab2list(?MODULE), Of =:= Module],
    lists:foreach(fun withdraw/1, Keys).
