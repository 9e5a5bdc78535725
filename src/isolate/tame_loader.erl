%% A module's NIF library is loaded either by the module itself, by -on_load, or by its application,
%% which calls some function of the module later. A module with -on_load loads its library whenever
%% its code is loaded; an application does not know that it should load the library once more. So
%% when such a module is isolated or restored while its library is loaded, tame loads it in the
%% application's place.
-module(tame_loader).

-export([is_loaded/1]).
-export([has_on_load/1]).
-export([load_info/1]).
-export([with_on_load/4]).

%% Whether a NIF library of the module is loaded in this VM.
-spec is_loaded(module()) -> boolean().
is_loaded(Module) ->
    lists:member(Module, erlang:system_info(taints)).

-spec has_on_load(binary()) -> boolean().
has_on_load(Beam) ->
    case tame_recompile:forms(Beam) of
        {ok, Forms, _} -> lists:any(fun is_on_load/1, Forms);
        error -> tame_overlay:has_on_load(Beam)
    end.

is_on_load({attribute, _, on_load, _}) -> true;
is_on_load(_Form) -> false.

%% What the module gives erlang:load_nif/2 as load_info, where that is the same constant in each
%% call.
-spec load_info(binary()) -> {ok, term()} | unknown.
load_info(Beam) ->
    case tame_recompile:forms(Beam) of
        {ok, Forms, _} -> constant(lists:usort([without_place(Info) || Info <- infos(Forms)]));
        error -> unknown
    end.

constant([Info]) ->
    try
        {ok, erl_parse:normalise(Info)}
    catch
        error:_ -> unknown
    end;
constant(_NoneOrMany) ->
    unknown.

infos({call, _, {remote, _, {atom, _, erlang}, {atom, _, load_nif}}, [Path, Info]}) ->
    [Info | infos(Path)];
infos(Tree) when is_tuple(Tree) ->
    infos(tuple_to_list(Tree));
infos([Head | Tail]) ->
    infos(Head) ++ infos(Tail);
infos(_Leaf) ->
    [].

without_place(Info) ->
    erl_parse:map_anno(fun(_) -> erl_anno:new(0) end, Info).

%% The module with an -on_load that loads the library in its application's place. Path is without
%% .so, as erlang:load_nif/2 takes it.
-spec with_on_load(module(), binary(), file:filename_all(), term()) ->
    {ok, binary()} | {error, term()}.
with_on_load(Module, Beam, Path, LoadInfo) ->
    try
        Anno = erl_anno:set_generated(true, erl_anno:new(0)),
        Args = [erl_parse:abstract(Path), erl_parse:abstract(LoadInfo)],
        Call = {call, Anno, {remote, Anno, {atom, Anno, erlang}, {atom, Anno, load_nif}}, Args},
        Name = 'tame on_load',
        tame_recompile:extended(Module, Beam, {attribute, Anno, on_load, {Name, 0}}, [
            {function, Anno, Name, 0, [{clause, Anno, [], [], [Call]}]}
        ])
    catch
        %% A term that cannot be written as source: a reference, a pid.
        error:_ -> {error, load_info}
    end.
