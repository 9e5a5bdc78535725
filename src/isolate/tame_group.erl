%% Groups: isolated modules whose libraries run in the same hosts (option `share'). A group is named
%% by an atom; a module that shares with none has a group of its own name. What belongs to the hosts
%% is the same for all of a group: the first module of it says what.
-module(tame_group).

-include("tame_registry.hrl").

-export([of_module/2]).
-export([members/1]).
-export([all/0]).
-export([agreed/3]).
-export([count_atoms/2]).

-export_type([group/0]).

-import(tame_text, [text/2]).

-type group() :: atom().

%% What each module of a group may have its own way.
-define(OWN, [share, bind, library, otherwise, deadline_ms, wait_ms]).

-spec of_module(module(), tame_isolate_options:options()) -> group().
of_module(Module, Options) ->
    maps:get(share, Options, Module).

%% Those of a group, the first that joined it first.
-spec members(group()) -> [#entry{}].
members(Group) ->
    Members = [Entry || #entry{group = Of} = Entry <- tame_registry:all(), Of =:= Group],
    lists:keysort(#entry.joined, Members).

-spec all() -> [group()].
all() ->
    lists:usort([Group || #entry{group = Group} <- tame_registry:all()]).

%% The options with which a module joins a group: what it names must be what the group has, and for
%% the rest it gets that.
-spec agreed(group(), [atom()], tame_isolate_options:options()) ->
    {ok, tame_isolate_options:options()} | {error, {share, string()}}.
agreed(Group, Named, Options) ->
    case members(Group) of
        [] ->
            {ok, Options};
        [#entry{module = First, options = Has} | _] ->
            Theirs = maps:without(?OWN, Has),
            Asked = maps:without(?OWN, maps:with(Named, Options)),
            Differ = [
                Name
             || {Name, Value} <- maps:to_list(Asked), maps:find(Name, Has) =/= {ok, Value}
            ],
            agreed(lists:sort(Differ), Group, First, Options, Theirs)
    end.

agreed([], _Group, _First, Options, Theirs) ->
    Own = maps:with(?OWN, Options),
    {ok, maps:merge(Theirs, Own)};
agreed([Name | _], Group, First, Options, Theirs) ->
    Format =
        "~tp => ~0tp: the hosts of ~tp, which it is to share, have ~0tp since ~tp was isolated; "
        "give the same, or leave it out",
    Has = maps:get(Name, Theirs, 'the program of tame'),
    {error, {share, text(Format, [Name, maps:get(Name, Options), Group, Has, First])}}.

%% Adds to the number of atoms that the group's libraries have made; the new number. A module that
%% leaves takes what was counted while it was the first.
-spec count_atoms(group(), integer()) -> non_neg_integer().
count_atoms(Group, More) ->
    case members(Group) of
        [#entry{module = First} | Others] ->
            Counted = lists:sum([Count || #entry{atom_count = Count} <- Others]),
            Counted + tame_registry:count_atoms(First, More);
        %% It is not isolated any more.
        [] ->
            max(0, More)
    end.
