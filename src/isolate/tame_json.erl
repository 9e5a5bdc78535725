%% Reads JSON (RFC 8259): what our own programs print, and reports that they wrote. OTP has a module
%% for it from 27 on only. Objects are maps with binary keys; null is the atom null.
-module(tame_json).

-export([decode/1]).

-export_type([value/0]).

-type value() ::
    null | boolean() | number() | binary() | [value()] | #{binary() => value()}.

%% {error, Byte}: what stands there, counted from 0, is no JSON.
-spec decode(binary()) -> {ok, value()} | {error, non_neg_integer()}.
decode(Text) ->
    try
        {Value, Rest} = value(space(Text)),
        <<>> = space(Rest),
        {ok, Value}
    catch
        throw:{bad, Rest0} -> {error, byte_size(Text) - byte_size(Rest0)};
        error:{badmatch, Rest0} when is_binary(Rest0) -> {error, byte_size(Text) - byte_size(Rest0)}
    end.

space(<<C, Rest/binary>>) when C =:= $\s; C =:= $\t; C =:= $\n; C =:= $\r -> space(Rest);
space(Rest) -> Rest.

value(<<"null", Rest/binary>>) -> {null, Rest};
value(<<"true", Rest/binary>>) -> {true, Rest};
value(<<"false", Rest/binary>>) -> {false, Rest};
value(<<$", Rest/binary>>) -> string(Rest, []);
value(<<$[, Rest/binary>>) -> array(space(Rest), []);
value(<<${, Rest/binary>>) -> object(space(Rest), #{});
value(Rest) -> number(Rest).

array(<<$], Rest/binary>>, []) ->
    {[], Rest};
array(Text, Values) ->
    {Value, Rest} = value(Text),
    case space(Rest) of
        <<$,, More/binary>> -> array_more(space(More), [Value | Values]);
        <<$], After/binary>> -> {lists:reverse(Values, [Value]), After};
        Bad -> throw({bad, Bad})
    end.

%% After a comma there must be a value.
array_more(<<$], _/binary>> = Bad, _Values) -> throw({bad, Bad});
array_more(Text, Values) -> array(Text, Values).

object(<<$}, Rest/binary>>, Pairs) when map_size(Pairs) =:= 0 ->
    {Pairs, Rest};
object(<<$", Text/binary>>, Pairs) ->
    {Key, Rest} = string(Text, []),
    case space(Rest) of
        <<$:, More/binary>> ->
            {Value, After} = value(space(More)),
            case space(After) of
                <<$,, Next/binary>> -> object(space(Next), Pairs#{Key => Value});
                <<$}, End/binary>> -> {Pairs#{Key => Value}, End};
                Bad -> throw({bad, Bad})
            end;
        Bad ->
            throw({bad, Bad})
    end;
object(Bad, _Pairs) ->
    throw({bad, Bad}).

string(<<$", Rest/binary>>, Parts) ->
    {unicode:characters_to_binary(lists:reverse(Parts)), Rest};
string(<<$\\, $u, Rest/binary>>, Parts) ->
    {Char, More} = escaped(Rest),
    string(More, [Char | Parts]);
string(<<$\\, C, Rest/binary>> = Bad, Parts) ->
    case lists:keyfind(C, 1, [
        {$", $"}, {$\\, $\\}, {$/, $/}, {$b, $\b}, {$f, $\f}, {$n, $\n}, {$r, $\r}, {$t, $\t}
    ]) of
        {C, Char} -> string(Rest, [Char | Parts]);
        false -> throw({bad, Bad})
    end;
string(<<C/utf8, Rest/binary>>, Parts) when C >= $\s ->
    string(Rest, [C | Parts]);
string(Bad, _Parts) ->
    throw({bad, Bad}).

%% A character beyond 16 bits is two of them.
escaped(Text) ->
    case hex(Text) of
        {High, <<$\\, $u, Rest/binary>>} when High >= 16#D800, High < 16#DC00 ->
            case hex(Rest) of
                {Low, More} when Low >= 16#DC00, Low < 16#E000 ->
                    {16#10000 + (High - 16#D800) * 16#400 + (Low - 16#DC00), More};
                _ ->
                    throw({bad, Text})
            end;
        {Char, Rest} when Char < 16#D800; Char >= 16#E000 ->
            {Char, Rest};
        _ ->
            throw({bad, Text})
    end.

hex(<<Digits:4/binary, Rest/binary>> = Bad) ->
    try
        {binary_to_integer(Digits, 16), Rest}
    catch
        error:badarg -> throw({bad, Bad})
    end;
hex(Bad) ->
    throw({bad, Bad}).

number(Text) ->
    Pattern = <<"^-?(?:0|[1-9][0-9]*)(\\.[0-9]+)?([eE][-+]?[0-9]+)?">>,
    case re:run(Text, Pattern, [{capture, all, binary}]) of
        {match, [All]} ->
            {binary_to_integer(All), after_it(All, Text)};
        {match, [All, _Fraction]} ->
            {binary_to_float(All), after_it(All, Text)};
        {match, [All, Fraction, Exponent]} ->
            {float_of(All, Fraction, Exponent), after_it(All, Text)};
        nomatch ->
            throw({bad, Text})
    end.

%% binary_to_float/1 wants a fraction before an exponent.
float_of(All, <<>>, Exponent) ->
    Mantissa = binary:part(All, 0, byte_size(All) - byte_size(Exponent)),
    binary_to_float(<<Mantissa/binary, ".0", Exponent/binary>>);
float_of(All, _Fraction, _Exponent) ->
    binary_to_float(All).

after_it(All, Text) ->
    binary:part(Text, byte_size(All), byte_size(Text) - byte_size(All)).
