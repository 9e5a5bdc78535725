%% Who loads a module's NIF library: the module itself, by -on_load, or its application, by calling
%% some function of it later. The first kind loads it again whenever the module's code is loaded
%% anew; of the second kind the application does not know that it should. So when such a module is
%% isolated or restored while its library is loaded, tame loads it in its place.
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

%% The module as it is, with an -on_load that loads the library which its application loaded before.
%% Path is without .so, as erlang:load_nif/2 takes it.
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
