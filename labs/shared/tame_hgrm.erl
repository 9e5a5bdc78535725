%% Writes HdrHistogram's classic percentile distribution (".hgrm"), the text that its tools and
%% its public plotter read. Times come in as nanoseconds and are written as microseconds.
%%
%% A test compares the text byte for byte with that of the Java library.
-module(tame_hgrm).

-export([format/1]).

-export_type([figures/0]).

%% What tame_histogram:hgrm/2 takes from one histogram at one moment.
-type figures() :: #{
    rows := [tame_histogram:row()],
    mean_ns := float(),
    stddev_ns := float(),
    max_ns := non_neg_integer(),
    count := non_neg_integer(),
    buckets := pos_integer(),
    sub_buckets := pos_integer()
}.

%% The text of a histogram's figures.
%%
%%     1> F = #{rows => [{0.0,1500,1},{100.0,1500,1}], mean_ns => 1500.0, stddev_ns => 0.0,
%%              max_ns => 1500, count => 1, buckets => 26, sub_buckets => 2048}.
%%     2> io:put_chars(tame_hgrm:format(F)).
%%            Value     Percentile TotalCount 1/(1-Percentile)
%%
%%            1.500 0.000000000000          1           1.00
%%            1.500 1.000000000000          1
%%     #[Mean    =        1.500, StdDeviation   =        0.000]
%%     #[Max     =        1.500, Total count    =            1]
%%     #[Buckets =           26, SubBuckets     =         2048]
%%     ok
-spec format(figures()) -> iodata().
format(#{
    rows := Rows,
    mean_ns := MeanNs,
    stddev_ns := StddevNs,
    max_ns := MaxNs,
    count := Count,
    buckets := Buckets,
    sub_buckets := SubBuckets
}) ->
    [
        "       Value     Percentile TotalCount 1/(1-Percentile)\n\n",
        [row(Row) || Row <- Rows],
        footer("Mean    ", us(MeanNs), "StdDeviation  ", us(StddevNs)),
        footer("Max     ", us(MaxNs), "Total count   ", integer(Count, 12)),
        footer("Buckets ", integer(Buckets, 12), "SubBuckets    ", integer(SubBuckets, 12))
    ].

%% The last row has no fourth column, because it would be infinite.
row({100.0, ValueNs, Count}) ->
    [us(ValueNs), " ", decimal(1.0, 12, 0), " ", integer(Count, 10), "\n"];
row({Percentile, ValueNs, Count}) ->
    Share = Percentile / 100.0,
    [
        us(ValueNs), " ", decimal(Share, 12, 0), " ", integer(Count, 10), " ",
        decimal(1 / (1.0 - Share), 2, 14), "\n"
    ].

footer(Name1, Text1, Name2, Text2) ->
    ["#[", Name1, "= ", Text1, ", ", Name2, " = ", Text2, "]\n"].

us(ValueNs) ->
    decimal(ValueNs / 1000.0, 3, 12).

integer(Int, Width) ->
    pad(integer_to_list(Int), Width).

%% A float from 0 with a fixed number of decimals, aligned right. It rounds the shortest decimal
%% that stands for the float, and halves upwards, as Java does; io_lib rounds the exact binary
%% value, which differs in the last digit of some rows (0.99981689453125 in 12 decimals).
decimal(Float, Decimals, Width) ->
    {Digits, Exponent} = shortest(Float),
    Scaled = round_half_up(Digits, Exponent + Decimals),
    One = power_of_10(Decimals),
    Fraction = string:pad(integer_to_list(Scaled rem One), Decimals, leading, $0),
    pad([integer_to_list(Scaled div One), ".", Fraction], Width).

%% The float as Digits * 10^Exponent, with the fewest digits that read back as the same float.
shortest(Float) ->
    {Mantissa, Exponent} =
        case string:split(float_to_list(Float, [short]), "e") of
            [Text] -> {Text, 0};
            [Text, Power] -> {Text, list_to_integer(Power)}
        end,
    [Whole, Fraction] = string:split(Mantissa, "."),
    {list_to_integer(Whole ++ Fraction), Exponent - length(Fraction)}.

round_half_up(Digits, Exponent) when Exponent >= 0 ->
    Digits * power_of_10(Exponent);
round_half_up(Digits, Exponent) ->
    Unit = power_of_10(-Exponent),
    (2 * Digits + Unit) div (2 * Unit).

%% Not math:pow/2, which is a float and inexact from 10^23 on.
power_of_10(N) ->
    list_to_integer([$1 | lists:duplicate(N, $0)]).

pad(Text, Width) ->
    string:pad(Text, Width, leading).
