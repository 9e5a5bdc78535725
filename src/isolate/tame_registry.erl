%% The isolated modules: one entry for each, in a table that outlives every process but the top
%% supervisor, which owns it. So when a process dies, its replacement finds here what there is to
%% do.
%%
%% phase: binding  the entry is made, the module's code may be bound already or not
%%        bound    the module's code asks hosts
%%        leaving  the module's own code is loaded again, and some process still runs the bound code
%%
%% load_args is set when a host has loaded the library: from then on its functions belong to hosts.
-module(tame_registry).

-include("tame_registry.hrl").

-export([new/0]).
-export([put/1]).
-export([find/1]).
-export([all/0]).
-export([set_phase/2]).
-export([set_load_args/2]).
-export([count_atoms/2]).
-export([delete/1]).

-spec new() -> ok.
new() ->
    ?MODULE = ets:new(?MODULE, [named_table, public, {keypos, #entry.module}]),
    ok.

-spec put(#entry{}) -> ok.
put(Entry) ->
    true = ets:insert(?MODULE, Entry),
    ok.

-spec find(module()) -> {ok, #entry{}} | error.
find(Module) ->
    case ets:lookup(?MODULE, Module) of
        [Entry] -> {ok, Entry};
        [] -> error
    end.

-spec all() -> [#entry{}].
all() ->
    ets:tab2list(?MODULE).

-spec set_phase(module(), binding | bound | leaving) -> ok.
set_phase(Module, Phase) ->
    _ = ets:update_element(?MODULE, Module, {#entry.phase, Phase}),
    ok.

-spec set_load_args(module(), {file:filename_all(), term()}) -> ok.
set_load_args(Module, LoadArgs) ->
    _ = ets:update_element(?MODULE, Module, {#entry.load_args, LoadArgs}),
    ok.

%% Adds to the number of atoms that the library has made; the new number.
-spec count_atoms(module(), non_neg_integer()) -> non_neg_integer().
count_atoms(Module, More) ->
    try
        ets:update_counter(?MODULE, Module, {#entry.atom_count, More})
    catch
        %% It is not isolated any more.
        error:badarg -> More
    end.

-spec delete(module()) -> ok.
delete(Module) ->
    true = ets:delete(?MODULE, Module),
    ok.
