-module(sd_tests).

-include_lib("eunit/include/eunit.hrl").

-define(LARGE, 10000000).

the_check_value_of_the_standard_test() ->
    Port = sd:open(),
    ?assertEqual(16#995DC9BBDF1939FA, sd:crc64(Port, "123456789")),
    ?assertEqual(0, sd:crc64(Port, "")),
    sd:close(Port).

%% Three ways, on both sides of the size from which on work is done outside.
all_ways_agree_test() ->
    Port = sd:open(),
    [
        begin
            Bytes = rand:bytes(Size),
            Crc = slow_crc64(Bytes),
            ?assertEqual({Size, Crc}, {Size, sd:crc64(Port, Bytes)}),
            sd:send(Port, Bytes),
            ?assertEqual({Size, Crc}, {Size, sd:crc64_next(Port)}),
            {Head, Tail} = split_binary(Bytes, Size div 3),
            sd:send(Port, [Head, [Tail]]),
            ?assertEqual({Size, Crc}, {Size, sd:crc64_next(Port)})
        end
     || Size <- [0, 1, 9, 8191, 8192, 8193, 100000]
    ],
    sd:close(Port).

answers_come_in_the_order_of_the_commands_test() ->
    Port = sd:open(),
    All = [rand:bytes(Size) || Size <- [200000, 10, 50000, 0, 8192, 100000, 1]],
    [sd:send(Port, Bytes) || Bytes <- All],
    ?assertEqual([slow_crc64(Bytes) || Bytes <- All], [sd:crc64_next(Port) || _ <- All]),
    sd:close(Port).

%% port_control/3 returns before the work is done, and the scheduler is free meanwhile: else the
%% whole would be one slice.
large_work_is_done_outside_test() ->
    Port = sd:open(),
    Bytes = binary:copy(<<"x">>, ?LARGE),
    ?assertEqual([], port_control(Port, 1, Bytes)),
    ?assertEqual(sd:crc64_next(Port), sd:crc64(Port, Bytes)),
    sd:close(Port).

who_closes_meanwhile_gets_no_answer_test() ->
    Port = sd:open(),
    sd:send(Port, binary:copy(<<"x">>, ?LARGE)),
    true = sd:close(Port),
    %% Until its work outside has ended the VM still takes commands for it.
    await_closed(Port),
    ?assertError(badarg, sd:crc64(Port, "x")),
    receive {Port, Answer} -> ?assertEqual(none, Answer) after 0 -> ok end.

await_closed(Port) ->
    case erlang:port_info(Port) of
        undefined -> ok;
        _ -> timer:sleep(1), await_closed(Port)
    end.

many_ports_at_once_test() ->
    Bytes = rand:bytes(100000),
    Crc = slow_crc64(Bytes),
    Pids = [spawn_monitor(fun() -> exit({crc, sd:crc64(sd:open(), Bytes)}) end) || _ <- lists:seq(1, 100)],
    [receive {'DOWN', Monitor, process, Pid, Reason} -> ?assertEqual({crc, Crc}, Reason) end || {Pid, Monitor} <- Pids].

an_unknown_command_is_badarg_test() ->
    Port = sd:open(),
    ?assertError(badarg, port_control(Port, 2, "x")),
    sd:close(Port).

%% The same in Erlang.
slow_crc64(Bytes) ->
    Table = list_to_tuple([next_bits(8, Byte) || Byte <- lists:seq(0, 255)]),
    slow_crc64(Bytes, Table, 16#FFFFFFFFFFFFFFFF).

slow_crc64(<<Byte, Bytes/binary>>, Table, Crc) ->
    slow_crc64(Bytes, Table, element(((Crc bxor Byte) band 255) + 1, Table) bxor (Crc bsr 8));
slow_crc64(<<>>, _Table, Crc) ->
    Crc bxor 16#FFFFFFFFFFFFFFFF.

next_bits(0, Crc) -> Crc;
next_bits(N, Crc) when Crc band 1 =:= 1 -> next_bits(N - 1, (Crc bsr 1) bxor 16#C96C5795D7870F42);
next_bits(N, Crc) -> next_bits(N - 1, Crc bsr 1).
