%% Reads JSON (RFC 8259): what our own programs print, and reports that they wrote. OTP has a module
%% for it from 27 on only. Objects are maps with binary keys; null is the atom null.
%%
%% A library that is probed may have written the text, so nesting and numbers are bounded.
-module(tame_json).

-export([decode/1]).

-export_type([value/0]).

-type value() ::
    null | boolean() | number() | binary() | [value()] | #{binary() => value()}.

%% Arrays and objects in each other.
-define(DEPTH_MAX, 100).
%% The time that it takes to read an integer rises with the square of its digits.
-define(NUMBER_BYTES_MAX, 1024).

%% {error, Byte}: what stands there, counted from 0, is no JSON.
-spec decode(binary()) -> {ok, value()} | {error, non_neg_integer()}.
decode(Text) ->
    try
        {Value, Rest} = value(space(Text), ?DEPTH_MAX),
        <<>> = space(Rest),
        {ok, Value}
    catch
        throw:{bad, Rest0} -> {error, byte_size(Text) - byte_size(Rest0)};
        error:{badmatch, Rest0} when is_binary(Rest0) -> {error, byte_size(Text) - byte_size(Rest0)}
    end.

space(<<C, Rest/binary>>) when C =:= $\s; C =:= $\t; C =:= $\n; C =:= $\r -> space(Rest);
space(Rest) -> Rest.

value(<<"null", Rest/binary>>, _Depth) -> {null, Rest};
value(<<"true", Rest/binary>>, _Depth) -> {true, Rest};
value(<<"false", Rest/binary>>, _Depth) -> {false, Rest};
value(<<$", Rest/binary>>, _Depth) -> string(Rest, []);
value(<<C, _/binary>> = Bad, 0) when C =:= $[; C =:= ${ -> throw({bad, Bad});
value(<<$[, Rest/binary>>, Depth) -> array(space(Rest), [], Depth - 1);
value(<<${, Rest/binary>>, Depth) -> object(space(Rest), #{}, Depth - 1);
value(Rest, _Depth) -> number(Rest).

array(<<$], Rest/binary>>, [], _Depth) ->
    {[], Rest};
array(Text, Values, Depth) ->
    {Value, Rest} = value(Text, Depth),
    case space(Rest) of
        <<$,, More/binary>> -> array_more(space(More), [Value | Values], Depth);
        <<$], After/binary>> -> {lists:reverse(Values, [Value]), After};
        Bad -> throw({bad, Bad})
    end.

%% After a comma there must be a value.
array_more(<<$], _/binary>> = Bad, _Values, _Depth) -> throw({bad, Bad});
array_more(Text, Values, Depth) -> array(Text, Values, Depth).

object(<<$}, Rest/binary>>, Pairs, _Depth) when map_size(Pairs) =:= 0 ->
    {Pairs, Rest};
object(<<$", Text/binary>>, Pairs, Depth) ->
    {Key, Rest} = string(Text, []),
    case space(Rest) of
        <<$:, More/binary>> ->
            {Value, After} = value(space(More), Depth),
            case space(After) of
                <<$,, Next/binary>> -> object(space(Next), Pairs#{Key => Value}, Depth);
                <<$}, End/binary>> -> {Pairs#{Key => Value}, End};
                Bad -> throw({bad, Bad})
            end;
        Bad ->
            throw({bad, Bad})
    end;
object(Bad, _Pairs, _Depth) ->
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
    %% binary_to_integer/2 would take a sign.
    case re:run(Digits, <<"^[0-9a-fA-F]{4}$">>, [dollar_endonly, {capture, none}]) of
        match -> {binary_to_integer(Digits, 16), Rest};
        nomatch -> throw({bad, Bad})
    end;
hex(Bad) ->
    throw({bad, Bad}).

number(Text) ->
    Pattern = <<"^-?(?:0|[1-9][0-9]*)(\\.[0-9]+)?([eE][-+]?[0-9]+)?">>,
    Start = binary:part(Text, 0, min(byte_size(Text), ?NUMBER_BYTES_MAX + 1)),
    case re:run(Start, Pattern, [{capture, all, binary}]) of
        {match, [All | _]} when byte_size(All) > ?NUMBER_BYTES_MAX ->
            throw({bad, Text});
        {match, [All]} ->
            {binary_to_integer(All), after_it(All, Text)};
        {match, [All, Fraction | Exponent]} ->
            try
                {float_of(All, Fraction, Exponent), after_it(All, Text)}
            catch
                %% 1e999
                error:badarg -> throw({bad, Text})
            end;
        nomatch ->
            throw({bad, Text})
    end.

%% binary_to_float/1 wants a fraction before an exponent.
float_of(All, <<>>, [Exponent]) ->
    Mantissa = binary:part(All, 0, byte_size(All) - byte_size(Exponent)),
    binary_to_float(<<Mantissa/binary, ".0", Exponent/binary>>);
float_of(All, _Fraction, _Exponent) ->
    binary_to_float(All).

after_it(All, Text) ->
    binary:part(Text, byte_size(All), byte_size(Text) - byte_size(All)).
