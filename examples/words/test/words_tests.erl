-module(words_tests).

-include_lib("eunit/include/eunit.hrl").

counts_words_test() ->
    ?assertEqual(#{}, words:count(<<>>, 1)),
    ?assertEqual(#{<<"a">> => 1}, words:count(<<"a">>, 1)),
    ?assertEqual(
        #{<<"the">> => 2, <<"cat">> => 1, <<"sat">> => 1, <<"größe"/utf8>> => 1},
        words:count(<<"The cat, 'the' sat 12 Größe."/utf8>>, 1)
    ),
    ?assertEqual(#{<<"the">> => 2}, words:count(<<"the cat The">>, 2)).

what_is_wrong_is_named_test() ->
    ?assertError(badarg, words:count(text, 1)),
    ?assertEqual({2, "must be an integer from 0 to 18446744073709551615"}, refused(<<>>, -1)).

an_exception_is_an_error_test() ->
    Long = binary:copy(<<"a">>, 1001),
    ?assertError({tame, {exception, <<"a word of more than 1000 bytes">>}}, words:count(Long, 1)),
    %% Midway, after many slices.
    Text = <<(binary:copy(<<"word ">>, 2000000))/binary, Long/binary>>,
    ?assertError({tame, {exception, _}}, words:count(Text, 1)).

%% Many slices, in count and in build, against the same in Erlang.
agrees_with_erlang_test_() ->
    {timeout, 60, fun() ->
        Words = [integer_to_binary(rand:uniform(50000) + 50000, 26) || _ <- lists:seq(1, 300000)],
        Text = iolist_to_binary([[letters(Word), $\n] || Word <- Words]),
        Expected = lists:foldl(
            fun(Word, Counts) -> maps:update_with(letters(Word), fun(N) -> N + 1 end, 1, Counts) end, #{}, Words
        ),
        ?assertEqual(Expected, words:count(Text, 1)),
        ?assertEqual(Expected, words:count_yielding(Text, 1))
    end}.

letters(Word) ->
    << <<($a + C rem 26)>> || <<C>> <= Word >>.

refused(Text, Least) ->
    try
        words:count(Text, Least)
    catch
        error:badarg:Stack ->
            [{_, _, _, Info} | _] = Stack,
            #{module := Module} = proplists:get_value(error_info, Info),
            [{Number, Sentence}] = [{N, S} || {N, S} <- maps:to_list(Module:format_error(badarg, Stack)), is_integer(N)],
            {Number, lists:flatten(Sentence)}
    end.
