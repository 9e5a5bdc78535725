%% The figures of README.md. Four calls at once, on a VM with one scheduler and one dirty CPU scheduler, beside two neighbours: one is
%% always ready to run and gives way at once; the other makes short calls of a dirty NIF. How long they wait is
%% how long they had no turn.
-module(measure).

-export([main/0]).

%% Internal.
-export([run/1]).

-define(ROUNDS, 5).
-define(CALLS, 4).
-define(MIB, 8).

%% Prints the table of README.md: medians of the rounds, with the least and the greatest. Each turn has a VM of its
%% own, and each round an order of its own.
-spec main() -> ok.
main() ->
    Variants = [none, count, count_yielding, by_hand],
    Turns = [{Variant, turn(Variant)} || _ <- lists:seq(1, ?ROUNDS), Variant <- shuffled(Variants)],
    io:format("OTP ~s, median (least–greatest) of ~b rounds~n~n"
              "| | MiB/s | ready: 99 % under, ms | longest | dirty: 99 % under, ms | longest |~n"
              "| --- | --- | --- | --- | --- | --- |~n", [erlang:system_info(otp_release), ?ROUNDS]),
    [print(Variant, [Figures || {V, Figures} <- Turns, V =:= Variant]) || Variant <- Variants],
    ok.

shuffled(Variants) ->
    [Variant || {_, Variant} <- lists:sort([{rand:uniform(), Variant} || Variant <- Variants])].

turn(Variant) ->
    Ours = [Path || Path <- code:get_path(), not lists:prefix(code:root_dir(), Path)],
    {ok, Peer, _} = peer:start(#{connection => standard_io,
                                 args => ["+S", "1", "+SDcpu", "1", "-pa" | Ours]}),
    Figures = peer:call(Peer, ?MODULE, run, [Variant], infinity),
    ok = peer:stop(Peer),
    Figures.

print(Variant, Rounds) ->
    Columns = [[lists:nth(N, Figures) || Figures <- Rounds] || N <- lists:seq(1, 5)],
    io:format("| ~ts |~ts~n", [label(Variant), [[" ", cell(Column), " |"] || Column <- Columns]]).

label(none) -> "nobody calls";
label(count) -> "`words:count/2` (`TAME_AUTO`)";
label(count_yielding) -> "`words:count_yielding/2` (`TAME_YIELDING`)";
label(by_hand) -> "the dirty NIF by hand".

cell([none | _]) ->
    "–";
cell(Values) ->
    Sorted = lists:sort(Values),
    Median = lists:nth(length(Sorted) div 2 + 1, Sorted),
    [figure(Median), " (", figure(hd(Sorted)), "–", figure(lists:last(Sorted)), ")"].

figure(Value) when Value >= 100 -> integer_to_list(round(Value));
figure(Value) when Value >= 10 -> io_lib:format("~.1f", [Value]);
figure(Value) -> io_lib:format("~.2f", [Value]).

%% MiB/s; and the 99 % and the longest, in ms, of the neighbour that is ready and of the dirty one. `none' is the
%% control: nobody calls, for three seconds.
-spec run(none | count | count_yielding | by_hand) -> [none | float()].
run(Variant) ->
    Text = text(),
    Call = fun() -> call(Variant, Text) end,
    _ = Call(), % loads, and knows the rate
    Neighbours = [start(fun erlang:yield/0), start(fun() -> by_hand:count(<<"a">>, 1) end)],
    {Us, _} = timer:tc(fun() ->
        Calls = [spawn_monitor(Call) || _ <- lists:seq(1, ?CALLS)],
        [receive {'DOWN', Ref, process, _, normal} -> ok end || {_, Ref} <- Calls]
    end),
    [Ready, Dirty] = [stop(Neighbour) || Neighbour <- Neighbours],
    [rate(Variant, Us), most(Ready), longest(Ready), most(Dirty), longest(Dirty)].

rate(none, _) -> none;
rate(_, Us) -> ?CALLS * ?MIB * 1.0e6 / Us.

call(none, _Text) -> timer:sleep(3000);
call(by_hand, Text) -> by_hand:count(Text, 2);
call(Variant, Text) -> words:Variant(Text, 2).

%% The same text each time: some 79,000 different words, a few of them often.
text() ->
    _ = rand:seed(exsss, 1),
    Size = ?MIB * 1024 * 1024,
    binary:part(iolist_to_binary(text(Size, [])), 0, Size).

text(Left, Text) when Left =< 0 ->
    Text;
text(Left, Text) ->
    X = rand:uniform(),
    Word = integer_to_binary(1000000 + trunc(X * X * X * 200000), 36),
    Letters = << <<($a + C rem 26)>> || <<C>> <= Word >>,
    text(Left - byte_size(Letters) - 1, [Letters, $\s | Text]).

start(Turn) ->
    Self = self(),
    Pid = spawn(fun() ->
        Self ! {ready, self()},
        neighbour(Turn, now_us(), [])
    end),
    receive {ready, Pid} -> Pid end.

stop(Pid) ->
    Pid ! {stop, self()},
    receive {waits, Pid, Waits} -> lists:reverse(lists:sort(Waits)) end.

neighbour(Turn, Last, Waits) ->
    receive
        {stop, From} -> From ! {waits, self(), Waits}
    after 0 ->
        _ = Turn(),
        Now = now_us(),
        neighbour(Turn, Now, [Now - Last || Now - Last >= 20] ++ Waits)
    end.

now_us() -> erlang:monotonic_time(microsecond).
longest(Waits) -> hd(Waits ++ [0]) / 1000.
most(Waits) -> lists:nth(length(Waits) div 100 + 1, Waits ++ [0]) / 1000.
