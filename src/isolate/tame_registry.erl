%% The isolated modules: one entry for each, in a table that outlives every process but the top
%% supervisor, which owns it. So when a process dies, its replacement finds here what there is to
%% do.
%%
%% phase: binding  the entry is made, the module's code may be bound already or not
%%        bound    the module's code asks hosts
%%        leaving  the module's own code is loaded again, and some process still runs the bound code
%%
%% load_args is set when a host has loaded the library: from then on its functions belong to hosts.
%% tame_hosts of the group writes it and libraries, tame_isolation all else.
-module(tame_registry).

-include("tame_registry.hrl").

-export([new/0]).
-export([put/1]).
-export([find/1]).
-export([find_version/2]).
-export([all/0]).
-export([set_phase/2]).
-export([arrived/1]).
-export([set_coming/2]).
-export([set_libraries/2]).
-export([add_library/2]).
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

%% The version of a module's bound code that has this key.
-spec find_version(tame_library:key(), #entry{}) -> {ok, tame_versions:version()} | error.
find_version(Key, #entry{coming = Coming, versions = Versions}) ->
    case [Version || #{key := Known} = Version <- [Coming | Versions], Known =:= Key] of
        [Version | _] -> {ok, Version};
        [] -> error
    end.

-spec all() -> [#entry{}].
all() ->
    ets:tab2list(?MODULE).

-spec set_phase(module(), binding | bound | leaving) -> ok.
set_phase(Module, Phase) ->
    _ = ets:update_element(?MODULE, Module, {#entry.phase, Phase}),
    ok.

%% A version of its bound code that is about to be loaded.
-spec set_coming(module(), none | tame_versions:version()) -> ok.
set_coming(Module, Coming) ->
    _ = ets:update_element(?MODULE, Module, {#entry.coming, Coming}),
    ok.

%% That version is loaded.
-spec arrived(module()) -> ok.
arrived(Module) ->
    case find(Module) of
        {ok, #entry{coming = none}} ->
            set_phase(Module, bound);
        {ok, #entry{coming = Coming, versions = Before}} ->
            Own = [own_code(Code) || #{own_code := Code} <- [Coming]],
            Version = maps:remove(own_code, Coming),
            _ = ets:update_element(?MODULE, Module, [
                {#entry.versions, [Version | lists:sublist(Before, 1)]},
                {#entry.coming, none},
                {#entry.phase, bound}
                | lists:append(Own)
            ]),
            ok;
        error ->
            ok
    end.

own_code({Beam, File}) ->
    [{#entry.own_beam, Beam}, {#entry.beam_file, File}].

-spec set_libraries(module(), [tame_host_libraries:library()]) -> ok.
set_libraries(Module, Libraries) ->
    _ = ets:update_element(?MODULE, Module, {#entry.libraries, Libraries}),
    ok.

%% A host has loaded it.
-spec add_library(module(), tame_host_libraries:library()) -> ok.
add_library(Module, #{path := Path, load_info := LoadInfo} = Library) ->
    case find(Module) of
        {ok, #entry{libraries = Before}} ->
            _ = ets:update_element(?MODULE, Module, [
                {#entry.libraries, Before ++ [Library]},
                {#entry.load_args, {Path, LoadInfo}}
            ]),
            ok;
        error ->
            ok
    end.

%% Adds to the number of atoms that the libraries of a module's group have made; the new number.
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
