-module(utf8_tests).

-include_lib("eunit/include/eunit.hrl").

text_comes_back_test() ->
    [?assertEqual(Text, utf8:check(Text)) || Text <- [<<>>, <<"a">>, <<"ü€𝄞"/utf8>>, <<16#10FFFF/utf8>>]].

what_is_no_text_is_badarg_test() ->
    [
        ?assertError(badarg, utf8:check(Bytes))
     || Bytes <- [<<16#80>>, <<16#C0, 16#80>>, <<16#ED, 16#A0, 16#80>>, <<16#F4, 16#90, 16#80, 16#80>>, <<16#E2, 16#82>>, text]
    ].

agrees_with_the_vm_on_random_bytes_test() ->
    [?assertEqual(is_text(Bytes), is_checked(Bytes)) || _ <- lists:seq(1, 10000), Bytes <- [random()]].

random() ->
    << <<(rand:uniform(256) - 1)>> || _ <- lists:seq(1, rand:uniform(5)) >>.

is_text(Bytes) ->
    is_list(unicode:characters_to_list(Bytes)).

is_checked(Bytes) ->
    try utf8:check(Bytes) =:= Bytes
    catch error:badarg -> false
    end.
