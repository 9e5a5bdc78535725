%% The parse transform of a module whose NIFs are jobs (c_include/tame.h): it writes the functions
%% that call them.
%%
%%     -module(exor).
%%     -export([exor/2]).
%%     -compile({parse_transform, tame_job}).
%%     -tame([exor/2]).
%%     -on_load(load/0).
%%
%%     -spec exor(binary(), binary()) -> binary().
%%
%%     load() -> erlang:load_nif(...).
%%
%% For each entry of -tame it writes the function, whose form tame:value/2 shows, and the NIF's
%% stub, exor_nif/2; for all of them '$tame'/3 and -nifs. A -spec of the function stays as it is. An
%% entry is Name/Arity or {Name, Arity, Options}:
%%
%%   nif => sum_fast_nif   the name of the NIF in the function table; else the function's, with _nif
%%   deadline_ms => 50     every call has this deadline, or that of tame:with/2 if it is earlier
%%   iodata => [1]         these arguments are iodata: the NIF gets a list of binaries for a list
%%   stream => true        the function returns the parts that the job emits (tame:stream/2)
%%
%% A function of -tame that the module defines itself is the module's own: only its NIF is written.
-module(tame_job).

-export([parse_transform/2]).
-export([format_error/1]).

%% Internal: for Tame.Job.
-export([entry/1]).
-export([short_bytes/0]).
-export([long_bytes/0]).

-export_type([entry/0]).

-type entry() :: {atom(), arity(), options()}.
-type options() :: #{
    nif := atom(),
    deadline_ms => non_neg_integer(),
    iodata => [pos_integer()],
    stream => boolean()
}.

%% TAME_MAX_ARGS of tame/job.h.
-define(MAX_ARGS, 8).

-spec parse_transform([erl_parse:abstract_form() | erl_parse:form_info()], [term()]) ->
    [erl_parse:abstract_form() | erl_parse:form_info()] | {error, term(), term()}.
parse_transform(Forms, _CompilerOptions) ->
    Listed = [{Line, Entry} || {attribute, Line, tame, Value} <- Forms, Entry <- list(Value)],
    try
        Entries = [{Line, entry(Entry)} || {Line, Entry} <- Listed],
        ok = apart([Entry || {_, Entry} <- Listed], [Entry || {_, Entry} <- Entries]),
        transform(Forms, Entries)
    catch
        throw:{Entry, Sentence} ->
            File = hd([File || {attribute, _, file, {File, _}} <- Forms]),
            {Line, _} = lists:keyfind(Entry, 2, Listed),
            {error, [{File, [{Line, ?MODULE, {Entry, Sentence}}]}], []}
    end.

%% What the compiler prints for an entry that is wrong.
-spec format_error({term(), string()}) -> iolist().
format_error({Entry, Sentence}) ->
    io_lib:format("-tame(~0tp): ~ts", [Entry, Sentence]).

%% A list without an end is no list of entries.
list(Value) when length(Value) >= 0 -> Value;
list(Value) -> [Value].

%% Each function and NIF that is written has one entry; throws {Entry, Sentence}.
apart(Listed, Entries) ->
    Functions = [{Name, Arity} || {Name, Arity, _} <- Entries],
    lists:foreach(
        fun({Entry, {Name, Arity, #{nif := Nif}}}) ->
            _ = length([1 || Other <- Functions, Other =:= {Name, Arity}]) =:= 1 orelse
                throw({Entry, "must be there once"}),
            _ = lists:member({Nif, Arity}, Functions) andalso
                throw({Entry, "nif: must be another name than that of a function in -tame"})
        end,
        lists:zip(Listed, Entries)
    ).

%% An entry with all its options; throws {Entry, Sentence}.
-spec entry(term()) -> entry().
entry({Name, Arity} = Entry) when is_atom(Name), is_integer(Arity) ->
    entry(Entry, {Name, Arity, #{}});
entry(Entry) ->
    entry(Entry, Entry).

entry(Entry, {Name, Arity, Options}) when
    is_atom(Name), is_integer(Arity), Arity >= 0, Arity =< ?MAX_ARGS, is_map(Options)
->
    maps:foreach(
        fun(Key, Value) ->
            valid(Key, Value, Arity) orelse
                throw({Entry, lists:flatten([io_lib:format("~0tp: ", [Key]), expected(Key)])})
        end,
        Options
    ),
    {Name, Arity, Options#{nif => nif(Entry, Name, Options)}};
entry(Entry, {Name, Arity, Options}) when is_atom(Name), is_integer(Arity), is_map(Options) ->
    throw({Entry, lists:flatten(io_lib:format("Arity must be from 0 to ~b", [?MAX_ARGS]))});
entry(Entry, _) ->
    throw({Entry, "must be Name/Arity or {Name, Arity, Options}"}).

nif(_, _, #{nif := Nif}) ->
    Nif;
nif(Entry, Name, _) ->
    try
        list_to_atom(atom_to_list(Name) ++ "_nif")
    catch
        error:system_limit -> throw({Entry, "nif: must be there, for a name so long"})
    end.

%% Whether the function names its NIF, and calls it by way of tame alone.
names_only(Options) ->
    maps:is_key(deadline_ms, Options) orelse maps:get(stream, Options, false).

valid(nif, Name, _) -> is_atom(Name);
valid(deadline_ms, Ms, _) -> is_integer(Ms) andalso Ms >= 0 andalso Ms =< 16#FFFFFFFF;
valid(stream, Value, _) -> is_boolean(Value);
valid(iodata, Numbers, Arity) when length(Numbers) >= 0 ->
    lists:all(fun(N) -> is_integer(N) andalso N >= 1 andalso N =< Arity end, Numbers);
valid(_, _, _) -> false.

expected(nif) -> "must be an atom";
expected(deadline_ms) -> "must be milliseconds from 0 to 4294967295";
expected(stream) -> "must be true or false";
expected(iodata) -> "must be a list of numbers of arguments";
expected(_) -> "no such option; there are nif, deadline_ms, iodata and stream".

%% ---- forms ------------------------------------------------------------------------------------

transform(Forms, []) ->
    Forms;
transform(Forms, Entries) ->
    [Module] = [Module || {attribute, _, module, Module} <- Forms],
    Defined = [{Name, Arity} || {function, _, Name, Arity, _} <- Forms],
    {Line0, _} = hd(Entries),
    Nifs = [{Nif, Arity} || {_, {_, Arity, #{nif := Nif}}} <- Entries] ++ [{'$tame', 3}],
    Functions =
        [
            wrapper(erl_anno:set_generated(true, Line), Module, Entry)
         || {Line, {Name, Arity, _} = Entry} <- Entries,
            not lists:member({Name, Arity}, Defined)
        ] ++
            [
                stub(erl_anno:set_generated(true, Line0), Name, Arity)
             || {Name, Arity} <- lists:usort(Nifs), not lists:member({Name, Arity}, Defined)
            ],
    {Head, Rest} = lists:splitwith(fun(Form) -> not is_tame(Form) end, Forms),
    {Body, End} = lists:splitwith(fun(Form) -> element(1, Form) =/= eof end, Rest),
    Head ++
        [
            {attribute, Line0, export, [{'$tame', 3} | unused(Entries)]},
            {attribute, Line0, nifs, lists:usort(Nifs)},
            {attribute, Line0, spec, {{'$tame', 3}, [any_spec(Line0)]}}
        ] ++
        Body ++ Functions ++ End.

%% NIFs that no function of the module calls: a wrapper with options names them only. The compiler
%% would drop them.
unused(Entries) ->
    [{Nif, Arity} || {_, {_, Arity, #{nif := Nif} = Options}} <- Entries, names_only(Options)].

is_tame({attribute, _, tame, _}) -> true;
is_tame(_) -> false.

any_spec(L) ->
    Any = {type, L, term, []},
    {type, L, 'fun', [{type, L, product, [Any, Any, {type, L, list, [Any]}]}, Any]}.

stub(L, Name, Arity) ->
    Error = {call, L, {remote, L, {atom, L, erlang}, {atom, L, nif_error}}, [
        {atom, L, nif_not_loaded}
    ]},
    Args = [{var, L, '_'} || _ <- lists:seq(1, Arity)],
    {function, L, Name, Arity, [{clause, L, Args, [], [Error]}]}.

wrapper(L, Module, {Name, Arity, #{nif := Nif} = Options}) ->
    Vars = [{var, L, list_to_atom("A" ++ integer_to_list(N))} || N <- lists:seq(1, Arity)],
    Call = {tuple, L, [{atom, L, Module}, {atom, L, Name}, list(L, Vars)]},
    {NifVars, Made} = nif_args(L, Vars, Options),
    Body =
        case Options of
            #{stream := true} -> remote(L, stream, [row(L, Options), Call, list(L, NifVars)]);
            #{deadline_ms := _} -> value(L, start(L, row(L, Options)), Call, Made, NifVars);
            #{} -> now_or_later(L, Nif, Call, Made, NifVars)
        end,
    {function, L, Name, Arity, [{clause, L, Vars, [], Made ++ [Body]}]}.

%% The arguments of the NIF, and what makes those that are others than the function's.
nif_args(L, Vars, Options) ->
    Numbers = maps:get(iodata, Options, []),
    LongBytes = long_bytes(),
    Pairs = [
        case lists:member(N, Numbers) of
            true ->
                Made = {var, L, list_to_atom("B" ++ integer_to_list(N))},
                {Made, [{match, L, Made, iovec(L, Var)}]};
            false when is_integer(LongBytes) ->
                Made = {var, L, list_to_atom("B" ++ integer_to_list(N))},
                {Made, [{match, L, Made, aligned(L, Var, LongBytes)}]};
            false ->
                {Var, []}
        end
     || {N, Var} <- lists:enumerate(Vars)
    ],
    {[Var || {Var, _} <- Pairs], lists:append([Match || {_, Match} <- Pairs])}.

%% A binary of no more is what tame:iovec/1 makes of it, without two calls.
-spec short_bytes() -> pos_integer().
short_bytes() -> 1024.

iovec(L, Var) ->
    Size = {call, L, {atom, L, byte_size}, [Var]},
    Short = {op, L, '=<', Size, {integer, L, short_bytes()}},
    {'case', L, Var, [
        {clause, L, [{var, L, '_'}], [[{call, L, {atom, L, is_binary}, [Var]}, Short]], [Var]},
        {clause, L, [{var, L, '_'}], [], [remote(L, iovec, [Var])]}
    ]}.

%% A binary of more goes through tame:aligned/1, where native code cannot tell in time that its
%% bytes begin in the middle of one: from OTP 27 on, by the version that compiles the module.
-spec long_bytes() -> pos_integer() | infinity.
long_bytes() ->
    case list_to_integer(erlang:system_info(otp_release)) >= 27 of
        true -> 65536;
        false -> infinity
    end.

aligned(L, Var, LongBytes) ->
    Size = {call, L, {atom, L, byte_size}, [Var]},
    IsBinary = {call, L, {atom, L, is_binary}, [Var]},
    Long = [IsBinary, {op, L, '>', Size, {integer, L, LongBytes}}],
    {'case', L, Var, [
        {clause, L, [{var, L, '_'}], [Long], [remote(L, aligned, [Var])]},
        {clause, L, [{var, L, '_'}], [], [Var]}
    ]}.

%% As tame:value/2 shows it.
now_or_later(L, Nif, Call, Made, NifVars) ->
    Later = {var, L, 'Later'},
    Value = {var, L, 'Value'},
    Tag = {tuple, L, [{atom, L, '$tame'}, {var, L, '_'}, {var, L, '_'}]},
    {'case', L, {call, L, {remote, L, {atom, L, erlang}, {atom, L, get}}, [
            {atom, L, '$tame_deadline'}
        ]},
        [
            {clause, L, [{atom, L, undefined}], [], [
                {'case', L, {call, L, {atom, L, Nif}, NifVars}, [
                    {clause, L, [{match, L, Tag, Later}], [], [
                        value(L, Later, Call, Made, NifVars)
                    ]},
                    {clause, L, [Value], [], [Value]}
                ]}
            ]},
            {clause, L, [{var, L, '_'}], [], [
                value(L, start(L, {atom, L, Nif}), Call, Made, NifVars)
            ]}
        ]}.

value(L, Later, Call, [], _) -> remote(L, value, [Later, Call]);
value(L, Later, Call, _, NifVars) -> remote(L, value, [Later, Call, list(L, NifVars)]).

row(L, #{nif := Nif, deadline_ms := Ms}) -> {tuple, L, [{atom, L, Nif}, {integer, L, Ms}]};
row(L, #{nif := Nif}) -> {atom, L, Nif}.

start(L, Row) ->
    {tuple, L, [{atom, L, '$tame'}, {atom, L, start}, Row]}.

remote(L, Function, Args) ->
    {call, L, {remote, L, {atom, L, tame}, {atom, L, Function}}, Args}.

list(L, Elements) ->
    lists:foldr(fun(Element, Tail) -> {cons, L, Element, Tail} end, {nil, L}, Elements).
