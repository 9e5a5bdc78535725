%% What values.cpp gives back, for each type: its own values as they were, others refused by number and
%% sentence. check/0 prints `right'.
-module(values).
-export([check/0]).
-compile(export_all).
-compile(nowarn_export_all).
-compile({parse_transform, tame_job}).
-tame([
    i8/1, u8/1, i16/1, u16/1, i32/1, u32/1, i64/1, u64/1, longlong/1, real/1, boolean/1, atom/1,
    string/1, view/1, bytes/1, list/1, nested/1, triple/1, pair/1, map/1, hash/1, point/1, term/1,
    nothing/6, names/1, reasonless/0, reasonless_pool/0,
    {partless, 0, #{stream => true}}, {partless_pool, 0, #{stream => true}}
]).
-nifs([
    i8_plain/1, u8_plain/1, i16_plain/1, u16_plain/1, i32_plain/1, u32_plain/1, i64_plain/1,
    u64_plain/1, longlong_plain/1, real_plain/1, boolean_plain/1, atom_plain/1, string_plain/1,
    view_plain/1, bytes_plain/1, list_plain/1, nested_plain/1, triple_plain/1, pair_plain/1,
    map_plain/1, hash_plain/1, point_plain/1, term_plain/1, ok_plain/0, second_plain/2,
    named_plain/1, marks_plain/1, no_term_plain/0, raised_plain/0
]).
-on_load(load/0).

-define(PLAIN(Name), Name(_) -> erlang:nif_error(nif_not_loaded)).
?PLAIN(i8_plain).
?PLAIN(u8_plain).
?PLAIN(i16_plain).
?PLAIN(u16_plain).
?PLAIN(i32_plain).
?PLAIN(u32_plain).
?PLAIN(i64_plain).
?PLAIN(u64_plain).
?PLAIN(longlong_plain).
?PLAIN(real_plain).
?PLAIN(boolean_plain).
?PLAIN(atom_plain).
?PLAIN(string_plain).
?PLAIN(view_plain).
?PLAIN(bytes_plain).
?PLAIN(list_plain).
?PLAIN(nested_plain).
?PLAIN(triple_plain).
?PLAIN(pair_plain).
?PLAIN(map_plain).
?PLAIN(hash_plain).
?PLAIN(point_plain).
?PLAIN(term_plain).
?PLAIN(named_plain).
?PLAIN(marks_plain).
no_term_plain() -> erlang:nif_error(nif_not_loaded).
raised_plain() -> erlang:nif_error(nif_not_loaded).
ok_plain() -> erlang:nif_error(nif_not_loaded).
second_plain(_, _) -> erlang:nif_error(nif_not_loaded).

load() -> erlang:load_nif("./values", 0).

check() ->
    [same(Type, Value) || {Type, Values, _, _} <- types(), Value <- Values],
    [refused(Type, Value, Noun) || {Type, _, Wrong, Noun} <- types(), Value <- Wrong],
    3.0 = real(3),
    1.8446744073709552e19 = real(16#FFFFFFFFFFFFFFFF),
    Term = {self(), make_ref(), #{a => [1.5 | b]}},
    Term = term(Term),
    Term = term_plain(Term),
    ok = ok_plain(),
    <<"b">> = second_plain(<<"a">>, <<"b">>),
    {badarg, {2, <<"must be a binary">>}} = reason(fun() -> second_plain(<<>>, b) end),
    Right = [1, true, <<"c">>, 1.0, [1], yes],
    ok = apply(?MODULE, nothing, Right),
    [
        {N, Sentence} = badarg(fun() -> apply(?MODULE, nothing, with(N, Value, Right)) end)
     || {N, Value, Sentence} <- [
            {1, 1.0, "must be an integer from -2147483648 to 2147483647"},
            {2, yes, "must be true or false"},
            {3, "c", "must be a binary"},
            {4, a, "must be a float, or an integer of at most 64 bits"},
            {5, [1 | 2], "must be a list, each element an integer from -2147483648 to 2147483647"},
            {6, no, "must be another atom than no"}
        ]
    ],
    [
        begin
            [a, Longest] = Fun(255),
            Longest = binary_to_atom(binary:copy(<<"x">>, 255)),
            {Size, true} = {Size, lists:member(reason(fun() -> Fun(Size) end), too_long())}
        end
     || Fun <- [fun names/1, fun named_plain/1], Size <- [256, 300, 100000]
    ],
    {tame, bad_reason} = reason(fun reasonless/0),
    {tame, bad_reason} = reason(fun reasonless_pool/0),
    {tame, bad_part} = reason(fun() -> (partless())() end),
    {tame, bad_part} = reason(fun() -> (partless_pool())() end),
    {mark, [mark, mark]} = marks_plain([1, "a"]),
    {badarg, {1, <<"must be a list, each element another term">>}} = reason(fun() -> marks_plain([a]) end),
    {tame, failed} = reason(fun no_term_plain/0),
    badarg = reason(fun raised_plain/0),
    {negative, -1} = reason(fun() -> apply(?MODULE, nothing, with(1, -1, Right)) end),
    io:put_chars("right").

%% With exceptions and without.
too_long() ->
    [{tame, {exception, <<"an atom has at most 255 characters">>}}, {value, [a, name_too_long]}].

with(N, Value, List) ->
    {Before, [_ | After]} = lists:split(N - 1, List),
    Before ++ [Value | After].

%% {Type, its values, other terms, what is expected}
types() ->
    [
        integers(i8, -16#80, 16#7F), integers(u8, 0, 16#FF),
        integers(i16, -16#8000, 16#7FFF), integers(u16, 0, 16#FFFF),
        integers(i32, -16#80000000, 16#7FFFFFFF), integers(u32, 0, 16#FFFFFFFF),
        integers(i64, -16#8000000000000000, 16#7FFFFFFFFFFFFFFF),
        integers(u64, 0, 16#FFFFFFFFFFFFFFFF),
        integers(longlong, -16#8000000000000000, 16#7FFFFFFFFFFFFFFF),
        {real, [0.0, 1.5, -1.0e300], [a, 1 bsl 64, -(1 bsl 64), <<>>],
            "a float, or an integer of at most 64 bits"},
        {boolean, [true, false], [1, undefined, "true"], "true or false"},
        {atom, ['', a, long_atom(255), 'ü', 'a\0b', '\0'], [<<"a">>, 1], "an atom in Latin-1"},
        {string, binaries(), not_binaries(), "a binary"},
        {view, binaries(), not_binaries(), "a binary"},
        {bytes, binaries(), not_binaries(), "a binary"},
        {list, [[], [1], [-1, 2], lists:seq(1, 10000)], [a, [a], [1 | 2], [1, 2.0], {1}],
            "a list, each element an integer from -9223372036854775808 to 9223372036854775807"},
        {nested, [[], [{a, []}], [{a, [<<>>, <<"b">>]}, {c, [large()]}]],
            [[{a}], [{a, b}], [{a, [b]}], [[a, []]], #{}],
            "a list, each element a tuple {an atom in Latin-1, a list, each element a binary}"},
        {triple, [{1, true, 1.0}], [{}, {1, true}, {1, true, 1.0, 2}, [1, true, 1.0], {256, true, 1.0}],
            "a tuple {an integer from 0 to 255, true or false, a float, or an integer of at most 64 bits}"},
        {pair, [{<<"a">>, 1}], [{a, 1}, {<<"a">>, a}, a],
            "a tuple {a binary, an integer from -2147483648 to 2147483647}"},
        {map, [maps:from_list([{integer_to_binary(I), I} || I <- lists:seq(1, N)]) || N <- sizes()],
            [[], #{a => 1}, #{<<"a">> => a}],
            "a map, each key a binary, each value an integer from -2147483648 to 2147483647"},
        {hash, [maps:from_list([{I, [true, I > 3]} || I <- lists:seq(1, N)]) || N <- sizes()],
            [[], #{1 => true}, #{a => []}],
            "a map, each key an integer from -2147483648 to 2147483647, each value a list, "
            "each element true or false"},
        {point, [{1, -2}], [{1, 2, 3}, {32768, 1}], "a point {X, Y}"}
    ].

integers(Type, Least, Most) ->
    Noun = lists:concat(["an integer from ", Least, " to ", Most]),
    {Type, [Least, Least + 1, 0, 1, Most], [Least - 1, Most + 1, 1.0, a, <<1>>, 1 bsl 100], Noun}.

%% Below and above what lies on the heap of a process, and parts of others.
binaries() ->
    Large = large(),
    <<_, Part:100/binary, _/binary>> = Large,
    <<_:3, Unaligned:5000/binary, _/bitstring>> = Large,
    <<_:3, Small:20/binary, _/bitstring>> = Large,
    [binary:copy(<<I>>, I) || I <- [0, 1, 63, 64, 65, 255]] ++ [Large, Part, Unaligned, Small].

large() -> << <<(I * 7)>> || I <- lists:seq(1, 100000) >>.
not_binaries() -> [a, 1, "a", <<1:7>>, {}].
sizes() -> [0, 1, 32, 33, 129, 1000].
long_atom(N) -> list_to_atom(lists:duplicate(N, $a)).
plain(Type) -> list_to_atom(atom_to_list(Type) ++ "_plain").

same(Type, Value) ->
    {Type, Value} = {Type, ?MODULE:Type(Value)},
    {Type, Value} = {Type, apply(?MODULE, plain(Type), [Value])}.

refused(Type, Value, Noun) ->
    Sentence = "must be " ++ Noun,
    {Type, Value, {1, Sentence}} = {Type, Value, badarg(fun() -> ?MODULE:Type(Value) end)},
    {badarg, {1, Said}} = reason(fun() -> apply(?MODULE, plain(Type), [Value]) end),
    {Type, Sentence} = {Type, binary_to_list(Said)}.

reason(Fun) ->
    try {value, Fun()}
    catch error:Reason -> Reason
    end.

%% {Number, Sentence}, as the shell shows it.
badarg(Fun) ->
    try {value, Fun()}
    catch
        error:badarg:Stack ->
            [{_, _, _, Info} | _] = Stack,
            #{module := Module} = proplists:get_value(error_info, Info),
            [{Number, Sentence}] = maps:to_list(maps:with([1, 2, 3, 4, 5, 6], Module:format_error(badarg, Stack))),
            {Number, lists:flatten(io_lib:format("~ts", [Sentence]))}
    end.
