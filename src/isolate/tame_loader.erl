%% A module's NIF library is loaded either by the module itself, by -on_load, or by its application,
%% which calls some function of the module later. A module with -on_load loads its library whenever
%% its code is loaded; an application does not know that it should load the library once more. So
%% when such a module is isolated or restored while its library is loaded, tame loads it in the
%% application's place: its own code, restored, has an -on_load of ours, and an attribute that says
%% what the library was given, for when it is isolated again.
-module(tame_loader).

-include("tame_beam.hrl").
-include("tame_registry.hrl").

-export([is_loaded/3]).
-export([has_on_load/1]).
-export([load_info/2]).
-export([with_on_load/3]).

%% Internal: for the on_load of ours.
-export([load_args/1]).

%% The attribute; the function.
-define(ATTRIBUTE, tame_load_info).
-define(ON_LOAD_NAME, 'tame on_load').

%% Whether the module's code has its NIF library, this file with these functions, in this VM.
%% system_info(taints) names a module for ever once it has loaded one; code that was loaded anew
%% since then has none. Of a library without functions the code knows nothing: it counts as loaded
%% while a file of that name is mapped.
-spec is_loaded(module(), [{atom(), arity()}], file:filename_all()) -> boolean().
is_loaded(Module, Functions, File) ->
    erlang:module_loaded(Module) andalso
        lists:member(Module, erlang:system_info(taints)) andalso
        has_library(Module, Functions, File).

has_library(_Module, [], File) -> tame_os_process:is_mapped(File);
has_library(Module, _Functions, _File) -> Module:module_info(nifs) =/= [].

%% Whether the module runs a function when it is loaded.
-spec has_on_load(binary()) -> boolean().
has_on_load(Beam) ->
    try
        {ok, _Module, Chunks} = beam_lib:all_chunks(Beam),
        #{code := Code} = tame_beam:code(proplists:get_value("Code", Chunks)),
        finds_on_load(Code)
    catch
        _:_ -> false
    end.

finds_on_load(<<>>) ->
    false;
finds_on_load(<<?ON_LOAD, _/binary>>) ->
    true;
finds_on_load(Code) ->
    {_Op, _Operands, Next} = tame_beam:read(Code),
    finds_on_load(Next).

%% What the library of a module, which is loaded, was given as load_info: what the on_load of ours
%% gave it, or what its code gives erlang:load_nif/2, where that is the same constant in each call.
-spec load_info(module(), binary()) -> {ok, term()} | unknown.
load_info(Module, Beam) ->
    case proplists:get_value(?ATTRIBUTE, Module:module_info(attributes)) of
        [LoadInfo] -> {ok, LoadInfo};
        undefined -> written(tame_recompile:forms(Beam))
    end.

written({ok, Forms, _}) ->
    constant(lists:usort([without_place(Info) || Info <- infos(Forms)]));
written(error) ->
    unknown.

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

%% ---- in the application's place -------------------------------------------------------------

%% The module's beam, of an isolated module, with one function more, by its instructions:
%%
%%     -on_load('tame on_load'/0).
%%     'tame on_load'() ->
%%         Args = tame_loader:load_args(Module),
%%         erlang:load_nif(hd(Args), tl(Args)).
-spec with_on_load(module(), binary(), term()) -> {ok, binary()} | {error, tame_beam:reason()}.
with_on_load(Module, Beam, LoadInfo) ->
    tame_beam:changed(Module, Beam, fun(Chunks) -> loading(Module, LoadInfo, Chunks) end).

%% What the library was loaded with, in a host.
-spec load_args(module()) -> [file:filename_all() | term()].
load_args(Module) ->
    {ok, #entry{load_args = {Path, LoadInfo}}} = tame_registry:find(Module),
    [filename:rootname(Path, ".so") | LoadInfo].

loading(Module, LoadInfo, #{"Code" := CodeChunk} = Chunks) ->
    Calls = [{?MODULE, load_args, 1}, {erlang, load_nif, 2}],
    {Importing, Atoms, Imports} = tame_beam:importing(Calls, [?ON_LOAD_NAME], Chunks),
    Count = length(Imports),
    Attributes = binary_to_term(maps:get("Attr", Chunks, <<131, 106>>)),
    Code = on_load(
        {?A, map_get(Module, Atoms)},
        {?A, map_get(?ON_LOAD_NAME, Atoms)},
        {?U, Count},
        {?U, Count + 1},
        tame_beam:code(CodeChunk)
    ),
    Importing#{
        "Attr" => term_to_binary([{?ATTRIBUTE, [LoadInfo]} | Attributes]),
        "Code" := tame_beam:code_chunk(?GET_TL, Code)
    }.

%% Behind the last function.
on_load(Module, Name, LoadArgs, LoadNif, #{labels := Label, code := Before} = Parts) ->
    Size = byte_size(Before) - 1,
    <<Functions:Size/binary, ?INT_CODE_END>> = Before,
    Instruction = fun tame_beam:instruction/2,
    Parts#{
        labels := Label + 2,
        functions := map_get(functions, Parts) + 1,
        code := [
            Functions,
            Instruction(?LABEL, [{?U, Label}]),
            Instruction(?FUNC_INFO, [Module, Name, {?U, 0}]),
            Instruction(?LABEL, [{?U, Label + 1}]),
            Instruction(?ON_LOAD, []),
            Instruction(?ALLOCATE, [{?U, 0}, {?U, 0}]),
            tame_beam:move(Module, {?X, 0}),
            Instruction(?CALL_EXT, [{?U, 1}, LoadArgs]),
            Instruction(?GET_TL, [{?X, 0}, {?X, 1}]),
            Instruction(?GET_HD, [{?X, 0}, {?X, 0}]),
            Instruction(?CALL_EXT_LAST, [{?U, 2}, LoadNif, {?U, 0}]),
            Instruction(?INT_CODE_END, [])
        ]
    }.
