%% Binds a module to a host by its machine-independent instructions, those that its beam file holds:
%% no debug_info, no compiler. Before the body of each NIF come instructions that do
%%
%%     case tame_call:library(Key) of
%%         none -> the body as it was;
%%         Library -> hd(tame_call:call(Library, Index, Name, [A1, ..., An]))
%%     end
%%
%% and each call of erlang:load_nif(Path, Info) becomes one of tame_call:load_nif(Key, Path,
%% Info), each of erlang:system_info(Item) one of tame_call:system_info(Item). All else stays, byte
%% for byte. Labels are numbers in a beam, so inserting moves nothing that is referred to.
-module(tame_overlay).

-include("tame_beam.hrl").

-export([bind/4]).

-import(tame_beam, [instruction/2, move/2, place/2]).

%% What instructions name by number, in the tables of the beam as it will be.
-record(names, {
    atoms :: #{atom() => pos_integer()},
    %% an operand
    key :: {0..7, pos_integer()},
    %% the library's functions: their place in its table
    functions :: #{{pos_integer(), arity()} => non_neg_integer()},
    erlang_load_nif :: none | non_neg_integer(),
    erlang_system_info :: none | non_neg_integer(),
    library :: non_neg_integer(),
    call :: non_neg_integer(),
    load_nif :: non_neg_integer(),
    system_info :: non_neg_integer()
}).

%% The module's beam, bound to a host. Functions are those of the library's own table, in its order.
-spec bind(module(), tame_library:key(), [{atom(), arity()}], binary()) ->
    {ok, binary()} | {error, tame_beam:reason()}.
bind(Module, Key, Functions, Beam) ->
    tame_beam:changed(Module, Beam, fun(Chunks) -> overlaid(Key, Functions, Chunks) end).

overlaid(Key, Functions, Chunks) ->
    Called = [{library, 1}, {call, 4}, {load_nif, 3}, {system_info, 1}],
    Ours = [{tame_call, Name, Arity} || {Name, Arity} <- Called],
    {Importing, Atoms, Imports} = tame_beam:importing(Ours, [none, erlang], Chunks),
    Count = length(Imports),
    Numbered = [
        {{map_get(Name, Atoms), Arity}, Number}
     || {{Name, Arity}, Number} <- lists:zip(Functions, lists:seq(0, length(Functions) - 1)),
        is_map_key(Name, Atoms)
    ],
    #{erlang := Erlang, load_nif := LoadNif, system_info := SystemInfo} = Atoms,
    Names = #names{
        atoms = Atoms,
        key = {?I, Key},
        functions = maps:from_list(Numbered),
        erlang_load_nif = place({Erlang, LoadNif, 2}, Imports),
        erlang_system_info = place({Erlang, SystemInfo, 1}, Imports),
        library = Count,
        call = Count + 1,
        load_nif = Count + 2,
        system_info = Count + 3
    },
    #{"Code" := Code} = Chunks,
    Importing#{"Code" := code_chunk(tame_beam:code(Code), Names)}.

%% ---- code -----------------------------------------------------------------------------------

code_chunk(#{labels := Labels, code := Code} = Parts, Names) ->
    {NowLabels, Overlaid} = instructions(Code, none, Labels, Names, []),
    tame_beam:code_chunk(?CALL_EXT_ONLY, Parts#{labels := NowLabels, code := Overlaid}).

%% Function is that whose body begins at the next label, when it is one of the library's.
instructions(<<>>, _Function, Labels, _Names, Done) ->
    {Labels, lists:reverse(Done)};
instructions(Code, Function, Labels, Names, Done) ->
    {Op, Operands, Next} = tame_beam:read(Code),
    Same = binary:part(Code, 0, byte_size(Code) - byte_size(Next)),
    case {Op, Operands} of
        {?FUNC_INFO, [_, {?A, Name}, {?U, Arity}]} ->
            instructions(Next, function(Name, Arity, Names), Labels, Names, [Same | Done]);
        {?LABEL, _} when Function =/= none ->
            {Start, Body} = nif_start(Next),
            Asking = asking(Function, Labels, Names),
            instructions(Body, none, Labels + 1, Names, [Asking, Start, Same | Done]);
        _ ->
            Redirected = redirected(Op, Operands, Names, Same),
            instructions(Next, Function, Labels, Names, [Redirected | Done])
    end.

function(Name, Arity, #names{functions = Functions}) ->
    case Functions of
        #{{Name, Arity} := Number} -> {Name, Arity, Number};
        #{} -> none
    end.

%% It stays the first of the body.
nif_start(<<?NIF_START, Body/binary>>) -> {?NIF_START, Body};
nif_start(Body) -> {[], Body}.

%% The arguments wait on the stack while the library is looked for.
asking({Name, Arity, Number}, Own, Names) ->
    #names{atoms = Atoms, key = Key, library = Library, call = Call} = Names,
    Places = lists:seq(0, Arity - 1),
    Back = [
        [move({?Y, Place}, {?X, Place}) || Place <- Places],
        instruction(?DEALLOCATE, [{?U, Arity}])
    ],
    Found = {?X, Arity},
    List = {?X, Arity + 1},
    [
        instruction(?ALLOCATE, [{?U, Arity}, {?U, Arity}]),
        [move({?X, Place}, {?Y, Place}) || Place <- Places],
        move(Key, {?X, 0}),
        instruction(?CALL_EXT, [{?U, 1}, {?U, Library}]),
        instruction(?IS_NE_EXACT, [{?F, Own}, {?X, 0}, {?A, map_get(none, Atoms)}]),
        move({?X, 0}, Found),
        Back,
        instruction(?TEST_HEAP, [{?U, 2 * Arity}, {?U, Arity + 1}]),
        move(?NIL, List),
        [instruction(?PUT_LIST, [{?X, Place}, List, List]) || Place <- lists:reverse(Places)],
        move(Found, {?X, 0}),
        move(List, {?X, 3}),
        move({?I, Number}, {?X, 1}),
        move({?A, Name}, {?X, 2}),
        instruction(?ALLOCATE, [{?U, 0}, {?U, 4}]),
        instruction(?CALL_EXT, [{?U, 4}, {?U, Call}]),
        instruction(?GET_HD, [{?X, 0}, {?X, 0}]),
        instruction(?DEALLOCATE, [{?U, 0}]),
        instruction(?RETURN, []),
        instruction(?LABEL, [{?U, Own}]),
        Back
    ].

%% Any call of erlang:load_nif/2 or erlang:system_info/1; every other instruction as it is.
redirected(Op, [{?U, 2}, {?U, Import} | Frame], #names{erlang_load_nif = Import} = Names, _) when
    Op =:= ?CALL_EXT; Op =:= ?CALL_EXT_LAST; Op =:= ?CALL_EXT_ONLY
->
    [
        move({?X, 1}, {?X, 2}),
        move({?X, 0}, {?X, 1}),
        move(Names#names.key, {?X, 0}),
        instruction(Op, [{?U, 3}, {?U, Names#names.load_nif} | Frame])
    ];
redirected(Op, [{?U, 1}, {?U, Import} | Frame], #names{erlang_system_info = Import} = Names, _) when
    Op =:= ?CALL_EXT; Op =:= ?CALL_EXT_LAST; Op =:= ?CALL_EXT_ONLY
->
    instruction(Op, [{?U, 1}, {?U, Names#names.system_info} | Frame]);
redirected(_Op, _Operands, _Names, Same) ->
    Same.
