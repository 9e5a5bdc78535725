%% The libraries of a group: those that each host is to have, in the order in which they were loaded
%% first, and the one that joins them. Changes nothing but itself; reads tame_registry.
%%
%%     describe/3 ──▶ begin_first/3   every host that starts is to load it
%%                    begin_join/4    one host is asked, the others when it has loaded it
%%                        │
%%                        ├──▶ accepted/1   it is of the group; the other hosts load it
%%                        │        └──▶ joined/1     its module goes on
%%                        └──▶ refused/2    the group is as it was
%%
%% One joins at a time. Requests that come meanwhile wait here.
-module(tame_group_libraries).

-include("tame_registry.hrl").

-export([new/1]).
-export([taken_over/2]).
-export([all/1]).
-export([all_joined/1]).
-export([find/2]).
-export([wanted/2]).
-export([is_first/1]).
-export([result/2]).
-export([describe/3]).
-export([begin_first/3]).
-export([begin_join/4]).
-export([joining/2]).
-export([accepted/1]).
-export([accepted_one/1]).
-export([joined/1]).
-export([refused/2]).
-export([is_joining/1]).
-export([put_off/2]).
-export([next/1]).
-export([still_there/1]).

-export_type([libraries/0]).
-export_type([result/0]).

%% What erlang:load_nif/2 came to.
-type result() :: ok | {error, {atom(), string()}}.

%% Which library joins, for whom, and who is asked for it: one host, or all that are started; the
%% others, when one has loaded it.
-record(joining, {
    library :: tame_host_libraries:library(),
    from :: gen_statem:from(),
    host :: all | pid() | others
}).

-record(libraries, {
    group :: tame_group:group(),
    all = [] :: [tame_host_libraries:library()],
    %% No host has loaded any yet: those are what one is about to load.
    first = true :: boolean(),
    joining = none :: none | #joining{},
    later = [] :: [term()],
    %% the last number that was given
    last_number = -1 :: integer(),
    results = #{} :: #{module() => result()}
}).

-opaque libraries() :: #libraries{}.

-spec new(tame_group:group()) -> libraries().
new(Group) ->
    #libraries{group = Group}.

%% Those of a group that was there before, whose modules' load_nif/2 had returned.
-spec taken_over(tame_group:group(), [module()]) -> libraries().
taken_over(Group, Modules) ->
    {_, There} = still_there(#libraries{
        group = Group, first = false, results = maps:from_keys(Modules, ok)
    }),
    There.

-spec all(libraries()) -> [tame_host_libraries:library()].
all(#libraries{all = All}) ->
    All.

%% Without one that some hosts have still to load: its functions are not called yet.
-spec all_joined(libraries()) -> [tame_host_libraries:library()].
all_joined(#libraries{all = All, joining = #joining{host = others, library = Last}}) ->
    All -- [Last];
all_joined(#libraries{all = All}) ->
    All.

-spec find(tame_library:key(), libraries()) -> {ok, tame_host_libraries:library()} | error.
find(Key, #libraries{all = All}) ->
    case [Library || #{key := Known} = Library <- All, Known =:= Key] of
        [Library] -> {ok, Library};
        [] -> error
    end.

%% What this host is to have: also the one that joins, if it is asked for it.
-spec wanted(pid(), libraries()) -> [tame_host_libraries:library()].
wanted(Host, #libraries{all = All, joining = #joining{host = Host, library = Last}}) ->
    All ++ [Last];
wanted(_Host, #libraries{all = All}) ->
    All.

-spec is_first(libraries()) -> boolean().
is_first(#libraries{first = First}) ->
    First.

-spec result(module(), libraries()) -> none | result().
result(Module, #libraries{results = Results}) ->
    maps:get(Module, Results, none).

%% A library that is to be loaded, with a number that is not Taken; or why not.
-spec describe(
    {tame_library:key(), module(), file:filename_all(), {none | pid(), term()}},
    [integer()],
    libraries()
) ->
    {ok, tame_host_libraries:library(), libraries()} | {error, {atom(), string()}}.
describe({Key, Module, _, _} = What, Taken, #libraries{last_number = Last} = Libraries) ->
    Numbers = [Number || #{number := Number} <- Libraries#libraries.all] ++ Taken,
    Number = tame_host_libraries:free_number(Last, Numbers),
    case {find(Key, Libraries), Number, tame_registry:find(Module)} of
        {{ok, _}, _, _} ->
            Text = "The NIF library is loaded already, in a host; a library is loaded once",
            {error, {reload, Text}};
        {error, none, _} ->
            {error, {load, "a host has at most 64 libraries, and this one has them"}};
        {error, {ok, Free}, {ok, Entry}} ->
            described(What, Free, Entry, Libraries);
        {error, _, error} ->
            {error, {load, "the module is not isolated any more"}}
    end.

described({Key, Module, Path, {Loader, LoadInfo}}, Number, Entry, Libraries) ->
    case tame_registry:find_version(Key, Entry) of
        {ok, #{functions := Functions}} ->
            Library = #{
                key => Key,
                module => Module,
                number => Number,
                upgrades => upgraded(Key, Entry),
                functions => Functions,
                path => Path,
                load_info => LoadInfo,
                loader => Loader,
                order => erlang:unique_integer([monotonic])
            },
            {ok, Library, Libraries#libraries{last_number = Number}};
        error ->
            {error, {load, "newer code of the module has been loaded since"}}
    end.

upgraded(Key, Entry) ->
    case tame_versions:before(Key, Entry) of
        {ok, Before} -> Before;
        none -> none
    end.

%% The group's first: all hosts that are started are to load it.
-spec begin_first(tame_host_libraries:library(), gen_statem:from(), libraries()) -> libraries().
begin_first(Library, From, Libraries) ->
    Joining = #joining{library = Library, from = From, host = all},
    Libraries#libraries{all = [Library], joining = Joining}.

-spec begin_join(tame_host_libraries:library(), gen_statem:from(), pid(), libraries()) ->
    libraries().
begin_join(Library, From, Host, Libraries) ->
    Libraries#libraries{joining = #joining{library = Library, from = From, host = Host}}.

%% The library that joins, if this host is asked for it: `alone', or with all others.
-spec joining(pid(), libraries()) -> {alone | all, tame_host_libraries:library()} | none.
joining(Host, #libraries{joining = #joining{host = Host, library = Library}}) -> {alone, Library};
joining(_, #libraries{joining = #joining{host = all, library = Library}}) -> {all, Library};
joining(_, #libraries{}) -> none.

%% A host has loaded the library that joins.
-spec accepted(libraries()) -> libraries().
accepted(#libraries{joining = Joining, all = Before} = Libraries) ->
    #joining{library = Library} = Joining,
    Libraries#libraries{
        all = (Before -- [Library]) ++ [Library],
        first = false,
        joining = Joining#joining{host = others}
    }.

%% The library that joins, if it is of the group already, and the other hosts are to load it.
-spec accepted_one(libraries()) -> {ok, tame_host_libraries:library()} | none.
accepted_one(#libraries{joining = #joining{host = others, library = Library}}) -> {ok, Library};
accepted_one(#libraries{}) -> none.

%% Each host that is up has it: who is to know.
-spec joined(libraries()) -> {gen_statem:from(), libraries()}.
joined(#libraries{joining = Joining, results = Results} = Libraries) ->
    #joining{library = #{module := Module}, from = From} = Joining,
    {From, Libraries#libraries{joining = none, results = Results#{Module => ok}}}.

%% The library that joins is not of the group: who is to know, and which host was asked.
-spec refused({error, {atom(), string()}}, libraries()) ->
    {gen_statem:from(), all | pid(), libraries()} | none.
refused(_Error, #libraries{joining = none}) ->
    none;
refused(Error, #libraries{joining = Joining, all = Before, results = Results} = Libraries) ->
    #joining{library = #{module := Module} = Library, from = From, host = Host} = Joining,
    {From, Host, Libraries#libraries{
        all = Before -- [Library],
        joining = none,
        results = Results#{Module => Error}
    }}.

-spec is_joining(libraries()) -> boolean().
is_joining(#libraries{joining = Joining}) ->
    Joining =/= none.

%% A request that waits until none joins.
-spec put_off(term(), libraries()) -> libraries().
put_off(Request, #libraries{later = Later} = Libraries) ->
    Libraries#libraries{later = Later ++ [Request]}.

%% The request that waits longest; it does not any more.
-spec next(libraries()) -> {ok, term(), libraries()} | none.
next(#libraries{later = []}) ->
    none;
next(#libraries{later = [Next | Later]} = Libraries) ->
    {ok, Next, Libraries#libraries{later = Later}}.

%% What the registry says; and what of that no code can call any more, which the registry is told.
-spec still_there(libraries()) -> {[tame_host_libraries:library()], libraries()}.
still_there(#libraries{group = Group, joining = Joining} = Libraries) ->
    {Gone, There} = lists:unzip([still_there_of(Entry) || Entry <- tame_group:members(Group)]),
    First =
        case Joining of
            #joining{library = Library, host = all} -> [Library];
            _ -> []
        end,
    ByOrder = fun(#{order := One}, #{order := Other}) -> One =< Other end,
    All = First ++ lists:sort(ByOrder, lists:append(There)),
    {lists:append(Gone), Libraries#libraries{all = All}}.

still_there_of(#entry{module = Module, libraries = Libraries} = Entry) ->
    IsGone = fun(#{key := Key}) -> tame_versions:is_gone(Key, Entry) end,
    {Gone, There} = lists:partition(IsGone, Libraries),
    _ = Gone =/= [] andalso tame_registry:set_libraries(Module, There),
    {Gone, There}.
