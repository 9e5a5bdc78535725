-module(utf8_tests).

-include_lib("eunit/include/eunit.hrl").

text_is_valid_test() ->
    [?assert(utf8:valid(Text)) || Text <- [<<>>, <<"a">>, <<"ü€𝄞"/utf8>>, <<16#10FFFF/utf8>>]].

other_bytes_are_not_test() ->
    [
        ?assertNot(utf8:valid(Bytes))
     || Bytes <- [<<16#80>>, <<16#C0, 16#80>>, <<16#ED, 16#A0, 16#80>>, <<16#F4, 16#90, 16#80, 16#80>>, <<16#E2, 16#82>>]
    ].

what_is_no_binary_is_badarg_test() ->
    ?assertError(badarg, utf8:valid(text)).

%% Large enough for many slices; the sequences of three bytes lie across their ends.
a_large_text_is_cut_right_test() ->
    Text = binary:copy(<<"€"/utf8>>, 10000000),
    ?assert(utf8:valid(Text)),
    ?assertNot(utf8:valid(<<Text/binary, 16#E2>>)).

agrees_with_the_vm_on_random_bytes_test() ->
    [?assertEqual(is_text(Bytes), utf8:valid(Bytes)) || _ <- lists:seq(1, 10000), Bytes <- [random()]].

random() ->
    << <<(rand:uniform(256) - 1)>> || _ <- lists:seq(1, rand:uniform(5)) >>.

is_text(Bytes) ->
    is_list(unicode:characters_to_list(Bytes)).
