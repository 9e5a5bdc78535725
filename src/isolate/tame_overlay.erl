%% Binds a module to a host by its machine-independent instructions, those that its beam file holds:
%% no debug_info, no compiler. Before the body of each NIF come instructions that do
%%
%%     case tame_call:library(Key) of
%%         none -> the body as it was;
%%         Library -> tame_call:call(Library, Index, Name, [A1, ..., An])
%%     end
%%
%% and each call of erlang:load_nif(Path, Info) becomes one of tame_call:load_nif(Key, Path,
%% Info), each of erlang:system_info(Item) one of tame_call:system_info(Item). All else stays, byte
%% for byte. Labels are numbers in a beam, so inserting moves nothing that is referred to.
%%
%% The format: "The BEAM Book" (E. Stenman), chapter on the beam file format; instructions and
%% operands as in OTP's lib/compiler/src/genop.tab, beam_asm.erl and beam_disasm.erl, OTP 25 to 29.
-module(tame_overlay).

-export([bind/4]).
-export([arities/0]).
-export([has_on_load/1]).

-export_type([reason/0]).

-type reason() :: {not_a_beam, term()} | {instruction, non_neg_integer()}.

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

%% Instructions that are looked for or written: their number in genop.tab.
-define(LABEL, 1).
-define(FUNC_INFO, 2).
-define(CALL_EXT, 7).
-define(CALL_EXT_LAST, 8).
-define(ALLOCATE, 12).
-define(TEST_HEAP, 16).
-define(DEALLOCATE, 18).
-define(IS_NE_EXACT, 44).
-define(MOVE, 64).
-define(PUT_LIST, 69).
-define(CALL_EXT_ONLY, 78).
-define(ON_LOAD, 149).
-define(NIF_START, 179).

%% Operands: what the lowest three bits of their first byte say.
-define(U, 0).
-define(I, 1).
-define(A, 2).
-define(X, 3).
-define(Y, 4).
-define(F, 5).
-define(EXTENDED, 7).

-define(NIL, {?A, 0}).

%% How many operands the instructions 1, 2, ... have. Those from 181 on came with OTP 26 and later.
-define(ARITIES,
    {1, 3, 0, 2, 3, 2, 2, 3, 2, 4, 5, 2, 3, 2, 3, 2, 1, 1, 0, 0, 0, 0, 2, 1, 1, 2, 4, 4, 4, 4,
        4, 4, 4, 4, 4, 4, 4, 3, 3, 3, 3, 3, 3, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3,
        3, 1, 2, 1, 2, 3, 3, 3, 3, 3, 2, 1, 1, 0, 1, 1, 3, 2, 2, 2, 5, 5, 5, 4, 2, 1, 1, 2, 2,
        5, 5, 5, 2, 1, 0, 1, 2, 2, 4, 4, 4, 4, 3, 1, 2, 1, 1, 1, 2, 6, 3, 5, 1, 2, 2, 3, 5, 7,
        7, 7, 5, 3, 2, 2, 5, 6, 2, 2, 2, 2, 1, 3, 4, 0, 8, 6, 2, 6, 5, 4, 5, 4, 5, 4, 3, 3, 3,
        3, 3, 0, 1, 1, 7, 1, 5, 5, 2, 3, 3, 4, 0, 0, 2, 2, 2, 3, 4, 3, 2, 2, 4, 3, 1, 2, 1, 1,
        1, 6, 3, 0, 1, 5, 3, 2, 4, 6, 2, 4, 3, 6, 3, 5}
).

-spec arities() -> tuple().
arities() ->
    ?ARITIES.

%% The module's beam, bound to a host. Functions are those of the library's own table, in its order.
-spec bind(module(), tame_library:key(), [{atom(), arity()}], binary()) ->
    {ok, binary()} | {error, reason()}.
bind(Module, Key, Functions, Beam) ->
    try
        {ok, Module, Chunks} = beam_lib:all_chunks(Beam),
        {ok, _} = beam_lib:build_module(overlaid(Key, Functions, maps:from_list(Chunks)))
    catch
        throw:Reason -> {error, Reason};
        error:Reason -> {error, {not_a_beam, Reason}}
    end.

%% Whether the module runs a function when it is loaded.
-spec has_on_load(binary()) -> boolean().
has_on_load(Beam) ->
    try
        {ok, _Module, Chunks} = beam_lib:all_chunks(Beam),
        <<Size:32, _Header:Size/binary, Code/binary>> = proplists:get_value("Code", Chunks),
        finds_on_load(Code)
    catch
        _:_ -> false
    end.

finds_on_load(<<>>) ->
    false;
finds_on_load(<<?ON_LOAD, _/binary>>) ->
    true;
finds_on_load(<<Op, Rest/binary>>) ->
    {_, Next} = operands(arity(Op), Rest),
    finds_on_load(Next).

overlaid(Key, Functions, Chunks) ->
    #{"AtU8" := AtomChunk, "ImpT" := ImportChunk, "Code" := CodeChunk} = Chunks,
    {Lengths, Known} = atoms(AtomChunk),
    New = lists:usort([none, tame_call, library, call, load_nif, system_info]) -- Known,
    Atoms = Known ++ New,
    Index = maps:from_list(lists:zip(Atoms, lists:seq(1, length(Atoms)))),
    Imports = imports(ImportChunk),
    Count = length(Imports),
    Isolated = [
        {map_get(tame_call, Index), map_get(Name, Index), Arity}
     || {Name, Arity} <- [{library, 1}, {call, 4}, {load_nif, 3}, {system_info, 1}]
    ],
    Numbered = [
        {{map_get(Name, Index), Arity}, Number}
     || {{Name, Arity}, Number} <- lists:zip(Functions, lists:seq(0, length(Functions) - 1)),
        is_map_key(Name, Index)
    ],
    Names = #names{
        atoms = Index,
        key = if is_atom(Key) -> {?A, map_get(Key, Index)}; true -> {?I, Key} end,
        functions = maps:from_list(Numbered),
        erlang_load_nif = place({maps:get(erlang, Index, 0), map_get(load_nif, Index), 2}, Imports),
        erlang_system_info = place(
            {maps:get(erlang, Index, 0), map_get(system_info, Index), 1}, Imports
        ),
        library = Count,
        call = Count + 1,
        load_nif = Count + 2,
        system_info = Count + 3
    },
    maps:to_list(Chunks#{
        "AtU8" := atom_chunk(Lengths, Atoms),
        "ImpT" := import_chunk(Imports ++ Isolated),
        "Code" := code_chunk(CodeChunk, Names)
    }).

%% ---- tables ---------------------------------------------------------------------------------

atoms(<<Count:32/signed, Chunk/binary>>) ->
    case tame_otp_features:atom_lengths(Count) of
        operand -> {operand, atoms(abs(Count), fun length_operand/1, Chunk)};
        byte -> {byte, atoms(Count, fun(<<Length, Rest/binary>>) -> {Length, Rest} end, Chunk)}
    end.

length_operand(Chunk) ->
    {{?U, Length}, Rest} = operand(Chunk),
    {Length, Rest}.

atoms(0, _Length, _Chunk) ->
    [];
atoms(Count, Length, Chunk) ->
    {Size, Rest} = Length(Chunk),
    <<Name:Size/binary, Others/binary>> = Rest,
    [binary_to_atom(Name) | atoms(Count - 1, Length, Others)].

atom_chunk(operand, Atoms) ->
    named(-length(Atoms), fun(Size) -> encoded({?U, Size}) end, Atoms);
atom_chunk(byte, Atoms) ->
    named(length(Atoms), fun(Size) -> Size end, Atoms).

named(Count, Length, Atoms) ->
    Names = [atom_to_binary(Atom) || Atom <- Atoms],
    iolist_to_binary([<<Count:32>> | [[Length(byte_size(Name)), Name] || Name <- Names]]).

imports(<<_Count:32, Chunk/binary>>) ->
    [{Module, Name, Arity} || <<Module:32, Name:32, Arity:32>> <= Chunk].

import_chunk(Imports) ->
    Entries = <<<<Module:32, Name:32, Arity:32>> || {Module, Name, Arity} <- Imports>>,
    <<(length(Imports)):32, Entries/binary>>.

place(Import, Imports) ->
    case lists:takewhile(fun(Other) -> Other =/= Import end, Imports) of
        Imports -> none;
        Before -> length(Before)
    end.

%% ---- code -----------------------------------------------------------------------------------

code_chunk(<<Size:32, Header:Size/binary, Code/binary>>, Names) ->
    <<Set:32, Highest:32, Labels:32, Functions:32, Rest/binary>> = Header,
    {NowLabels, Overlaid} = instructions(Code, none, Labels, Names, []),
    iolist_to_binary([
        <<Size:32, Set:32, (max(Highest, ?CALL_EXT_ONLY)):32, NowLabels:32, Functions:32>>,
        Rest,
        Overlaid
    ]).

%% Function is that whose body begins at the next label, when it is one of the library's.
instructions(<<>>, _Function, Labels, _Names, Done) ->
    {Labels, lists:reverse(Done)};
instructions(<<Op, Rest/binary>> = Code, Function, Labels, Names, Done) ->
    {Operands, Next} = operands(arity(Op), Rest),
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

arity(Op) when Op >= 1, Op =< tuple_size(?ARITIES) -> element(Op, ?ARITIES);
arity(Op) -> throw({instruction, Op}).

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
        instruction(?CALL_EXT_ONLY, [{?U, 4}, {?U, Call}]),
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

move(From, To) ->
    instruction(?MOVE, [From, To]).

instruction(Op, Operands) ->
    [Op | [encoded(Operand) || Operand <- Operands]].

%% ---- operands -------------------------------------------------------------------------------

operands(0, Code) ->
    {[], Code};
operands(Count, Code) ->
    {Operand, Rest} = operand(Code),
    {Operands, Next} = operands(Count - 1, Rest),
    {[Operand | Operands], Next}.

%% What is no more than a number comes back as {Tag, Number}, all else as extended.
operand(<<Kind:4, _:1, ?EXTENDED:3, Rest/binary>>) ->
    {extended, extended(Kind, Rest)};
operand(<<Number:4, 0:1, Tag:3, Rest/binary>>) ->
    {{Tag, Number}, Rest};
operand(<<High:3, 0:1, 1:1, Tag:3, Low, Rest/binary>>) ->
    {{Tag, High bsl 8 bor Low}, Rest};
operand(<<7:3, 1:1, 1:1, Tag:3, Rest/binary>>) ->
    {{?U, Beyond}, Number} = operand(Rest),
    number(Tag, Beyond + 9, Number);
operand(<<Beyond:3, 1:1, 1:1, Tag:3, Rest/binary>>) ->
    number(Tag, Beyond + 2, Rest).

number(Tag, Size, Code) ->
    <<Number:Size/signed-unit:8, Rest/binary>> = Code,
    {{Tag, Number}, Rest}.

%% A list; a register for floats; what to allocate; a literal; a register with what is known of its
%% type.
extended(1, Code) -> many(1, Code);
extended(3, Code) -> many(2, Code);
extended(5, Code) -> skip(2, Code);
extended(Kind, Code) when Kind =:= 2; Kind =:= 4 -> skip(1, Code).

many(Each, Code) ->
    {{?U, Count}, Rest} = operand(Code),
    skip(Each * Count, Rest).

skip(Count, Code) ->
    {_, Rest} = operands(Count, Code),
    Rest.

encoded({Tag, Number}) when Number < 16 ->
    <<Number:4, 0:1, Tag:3>>;
encoded({Tag, Number}) when Number < 2048 ->
    <<(Number bsr 8):3, 0:1, 1:1, Tag:3, Number:8>>;
%% Signed, and so with a bit to spare.
encoded({Tag, Number}) ->
    Size = max(2, byte_size(binary:encode_unsigned(Number bsl 1))),
    <<(Size - 2):3, 1:1, 1:1, Tag:3, Number:Size/unit:8>>.
