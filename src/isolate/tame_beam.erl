%% What is in a beam file, read and written: its tables of atoms and imports, and its instructions,
%% machine-independent ones with operands.
%%
%% The format: "The BEAM Book" (E. Stenman), chapter on the beam file format; instructions and
%% operands as in OTP's lib/compiler/src/genop.tab, beam_asm.erl and beam_disasm.erl, OTP 25 to 29.
-module(tame_beam).

-include("tame_beam.hrl").

-export([changed/3]).
-export([importing/3]).
-export([place/2]).
-export([code/1]).
-export([code_chunk/2]).
-export([read/1]).
-export([instruction/2]).
-export([move/2]).
-export([arities/0]).

-export_type([reason/0]).

-type reason() :: {not_a_beam, term()} | {instruction, non_neg_integer()}.
%% By their names.
-type chunks() :: #{string() => binary()}.
%% The modules, functions and arities that a beam calls; an instruction names one by its place.
-type imports() :: [{pos_integer(), pos_integer(), arity()}].
%% How the length of an atom is written.
-type lengths() :: operand | byte.
%% What is no more than a number is {Tag, Number}.
-type operand() :: {0..7, integer()} | {extended, binary()}.
%% The next label is number labels.
-type code() :: #{
    set := non_neg_integer(),
    highest := non_neg_integer(),
    labels := pos_integer(),
    functions := non_neg_integer(),
    more := binary(),
    code := iodata()
}.

%% Another beam, of what Change makes of the chunks of this one.
-spec changed(module(), binary(), fun((chunks()) -> chunks())) ->
    {ok, binary()} | {error, reason()}.
changed(Module, Beam, Change) ->
    try
        {ok, Module, Chunks} = beam_lib:all_chunks(Beam),
        {ok, _} = beam_lib:build_module(maps:to_list(Change(maps:from_list(Chunks))))
    catch
        throw:Reason -> {error, Reason};
        error:Reason -> {error, {not_a_beam, Reason}}
    end.

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

%% ---- tables ---------------------------------------------------------------------------------

%% The chunks of a beam that calls these functions besides, and has these atoms; the place of each
%% atom; and what it called before: the first function that it calls besides has the place behind.
-spec importing([mfa()], [atom()], chunks()) ->
    {chunks(), #{atom() => pos_integer()}, imports()}.
importing(Functions, Names, #{"AtU8" := AtomChunk, "ImpT" := ImportChunk} = Chunks) ->
    {Lengths, Known} = atoms(AtomChunk),
    New = lists:append([[Module, Name] || {Module, Name, _} <- Functions]) ++ Names,
    Atoms = Known ++ (lists:usort(New) -- Known),
    Places = maps:from_list(lists:zip(Atoms, lists:seq(1, length(Atoms)))),
    Before = imports(ImportChunk),
    Besides = [
        {map_get(Module, Places), map_get(Name, Places), Arity}
     || {Module, Name, Arity} <- Functions
    ],
    Changed = Chunks#{
        "AtU8" := atom_chunk(Lengths, Atoms),
        "ImpT" := import_chunk(Before ++ Besides)
    },
    {Changed, Places, Before}.

-spec atoms(binary()) -> {lengths(), [atom()]}.
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

-spec atom_chunk(lengths(), [atom()]) -> binary().
atom_chunk(operand, Atoms) ->
    named(-length(Atoms), fun(Size) -> encoded({?U, Size}) end, Atoms);
atom_chunk(byte, Atoms) ->
    named(length(Atoms), fun(Size) -> Size end, Atoms).

named(Count, Length, Atoms) ->
    Names = [atom_to_binary(Atom) || Atom <- Atoms],
    iolist_to_binary([<<Count:32>> | [[Length(byte_size(Name)), Name] || Name <- Names]]).

-spec imports(binary()) -> imports().
imports(<<_Count:32, Chunk/binary>>) ->
    [{Module, Name, Arity} || <<Module:32, Name:32, Arity:32>> <= Chunk].

-spec import_chunk(imports()) -> binary().
import_chunk(Imports) ->
    Entries = <<<<Module:32, Name:32, Arity:32>> || {Module, Name, Arity} <- Imports>>,
    <<(length(Imports)):32, Entries/binary>>.

-spec place({integer(), integer(), arity()}, imports()) -> none | non_neg_integer().
place(Import, Imports) ->
    case lists:takewhile(fun(Other) -> Other =/= Import end, Imports) of
        Imports -> none;
        Before -> length(Before)
    end.

%% ---- instructions ---------------------------------------------------------------------------

-spec code(binary()) -> code().
code(<<Size:32, Header:Size/binary, Code/binary>>) ->
    <<Set:32, Highest:32, Labels:32, Functions:32, More/binary>> = Header,
    #{
        set => Set,
        highest => Highest,
        labels => Labels,
        functions => Functions,
        more => More,
        code => Code
    }.

%% With instructions up to number Highest.
-spec code_chunk(non_neg_integer(), code()) -> binary().
code_chunk(Highest, #{highest := Before, more := More} = Parts) ->
    #{set := Set, labels := Labels, functions := Functions, code := Code} = Parts,
    Header = <<Set:32, (max(Before, Highest)):32, Labels:32, Functions:32, More/binary>>,
    iolist_to_binary([<<(byte_size(Header)):32>>, Header, Code]).

%% The first instruction, and what follows.
-spec read(binary()) -> {byte(), [operand()], binary()}.
read(<<Op, Rest/binary>>) ->
    {Operands, Next} = operands(arity(Op), Rest),
    {Op, Operands, Next}.

arity(Op) when Op >= 1, Op =< tuple_size(?ARITIES) -> element(Op, ?ARITIES);
arity(Op) -> throw({instruction, Op}).

-spec arities() -> tuple().
arities() ->
    ?ARITIES.

-spec move(operand(), operand()) -> iodata().
move(From, To) ->
    instruction(?MOVE, [From, To]).

-spec instruction(byte(), [operand()]) -> iodata().
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
