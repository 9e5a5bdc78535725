%% What becomes of the jobs of lives.cpp: each check/1 prints `right', and leaves no struct behind.
-module(lives).
-export([check/1]).
-compile(export_all).
-compile(nowarn_export_all).
-compile({parse_transform, tame_job}).
-tame([
    thrower_auto/3, thrower_inline/3, thrower_yielding/3, thrower_dirty_cpu/3, thrower_dirty_io/3,
    thrower_yielding_dirty/3, thrower_thread/3, thrower_pool/3,
    viewer_auto/4, viewer_inline/4, viewer_yielding/4, viewer_dirty_cpu/4, viewer_dirty_io/4,
    viewer_yielding_dirty/4, viewer_thread/4, viewer_pool/4,
    maker_auto/2, maker_inline/2, maker_yielding/2, maker_dirty_cpu/2, maker_dirty_io/2,
    maker_yielding_dirty/2, maker_thread/2, maker_pool/2,
    adder_auto/2, adder_inline/2, adder_yielding/2, adder_dirty_cpu/2, adder_dirty_io/2,
    adder_yielding_dirty/2, adder_thread/2, adder_pool/2
]).
-tame([
    {emitter_auto, 2, #{stream => true}}, {emitter_inline, 2, #{stream => true}},
    {emitter_yielding, 2, #{stream => true}}, {emitter_dirty_cpu, 2, #{stream => true}},
    {emitter_dirty_io, 2, #{stream => true}}, {emitter_yielding_dirty, 2, #{stream => true}},
    {emitter_thread, 2, #{stream => true}}, {emitter_pool, 2, #{stream => true}},
    grower_auto/1, grower_inline/1, grower_yielding/1, grower_dirty_cpu/1, grower_dirty_io/1,
    grower_yielding_dirty/1, grower_thread/1, grower_pool/1, outsider/0,
    {copier, 2, #{iodata => [1, 2]}}
]).
-nifs([new_counter/1, new_unlisted/0, value/1, counts/0, limit/0, throws/1]).
-on_load(load/0).

load() -> erlang:load_nif("./lives", 7).

new_counter(_) -> erlang:nif_error(nif_not_loaded).
new_unlisted() -> erlang:nif_error(nif_not_loaded).
value(_) -> erlang:nif_error(nif_not_loaded).
counts() -> erlang:nif_error(nif_not_loaded).
limit() -> erlang:nif_error(nif_not_loaded).
throws(_) -> erlang:nif_error(nif_not_loaded).

places() ->
    [auto, inline, yielding, dirty_cpu, dirty_io, yielding_dirty, thread, pool].

at(Job, Place, Args) ->
    apply(?MODULE, list_to_atom(lists:concat([Job, "_", Place])), Args).

check(What) ->
    check_one(What),
    garbage_collect(),
    {true, What} = {none_lives(5000), What},
    io:put_chars("right").

none_lives(Ms) ->
    {Made, Living} = counts(),
    Made > 0 orelse error(nothing_was_made),
    Living =:= 0 orelse (Ms > 0 andalso begin timer:sleep(10), none_lives(Ms - 10) end).

%% Every exception in every function and placement; then the same job works.
check_one(exceptions) ->
    [
        {Where, What, Place, Reason} =
            {Where, What, Place, reason(fun() -> at(thrower, Place, [Where, What, 100000]) end)}
     || Place <- places(),
        Where <- [constructor, units, first_step, last_step, build, result],
        {What, Reason} <- exceptions()
    ],
    [{ok, true} = at(thrower, Place, [none, none, Steps]) || Place <- places(), Steps <- [1, 300000]],
    [
        {Place, Reason} = {Place, reason(fun() -> at(maker, Place, [What, #{<<"a">> => 1}]) end)}
     || Place <- places(), {What, Reason} <- [{ok, {value, true}} | exceptions()]
    ],
    [
        {What, Reason} = {What, reason(fun() -> throws(What) end)}
     || {What, Reason0} <- exceptions(),
        Reason <- [case Reason0 of badarg -> {badarg, {2, <<"must be something else">>}}; R -> R end]
    ],
    ok = throws(none),
    "must be something else" =
        try thrower_pool(result, badarg, 1)
        catch
            error:badarg:Stack ->
                [{lives, thrower_pool, [result, badarg, 1], Info} | _] = Stack,
                #{module := Module} = proplists:get_value(error_info, Info),
                lists:flatten(maps:get(2, Module:format_error(badarg, Stack)))
        end;
%% Views of arguments stay what they are, over slices, threads and collections of the caller's heap.
check_one(views) ->
    [
        begin
            Large = binary:copy(<<"0123456789">>, 100),
            Small = binary:copy(<<I>>, I),
            <<_:5, Bits:70/binary, _/bitstring>> = Large,
            Expected = {true, Small, binary:part(Large, 0, 10)},
            Args = [Small, binary:part(Large, 0, 10 * (I + 1)), Bits, 3000],
            {Place, Expected} = {Place, at(viewer, Place, Args)},
            Collects = spawn_link(fun() -> collects(I) end),
            Call = spawn_monitor(fun() -> exit(at(viewer, Place, Args)) end),
            Collects ! element(1, Call),
            receive {'DOWN', _, process, _, Result} -> Expected = Result end,
            unlink(Collects),
            exit(Collects, kill)
        end
     || Place <- places(), I <- [0, 1, 64, 65]
    ];
check_one(streams) ->
    [
        begin
            [<<"0">>, <<"1">>, <<"2">>] = all(at(emitter, Place, [3, 9])),
            [] = all(at(emitter, Place, [0, 9])),
            [<<"0">> | Next] = (at(emitter, Place, [1000, 2]))(),
            [<<"1">> | Last] = Next(),
            {Place, {emitted, 2}} = {Place, reason(Last)},
            [<<"0">> | _Dropped] = (at(emitter, Place, [1000, 2000]))()
        end
     || Place <- places()
    ];
check_one(iodata) ->
    [
        begin
            Bytes = iolist_to_binary([A, B]),
            Bytes = copier(A, B)
        end
     || A <- io_lists(), B <- io_lists()
    ],
    {badarg, badarg, badarg} =
        {reason(fun() -> copier(a, <<>>) end), reason(fun() -> copier(<<>>, [a]) end),
         reason(fun() -> copier([<<"a">>], [<<>> | b]) end)};
check_one(outputs) ->
    [
        begin
            Grown = at(grower, Place, [Size]),
            Period = << <<Byte>> || Byte <- lists:seq(0, 250) >>,
            {Place, Size, true} =
                {Place, Size, Grown =:= binary:part(binary:copy(Period, Size div 251 + 1), 0, Size)}
        end
     || Place <- places(), Size <- [0, 1, 5000, 3000000]
    ],
    {tame, output_outside_state} = reason(fun() -> outsider() end);
%% One at a time, also where callers die; the context lives on.
check_one(claims) ->
    Counter = new_counter(0),
    {badarg, {1, <<"must not be negative">>}} = reason(fun() -> new_counter(-1) end),
    {badarg, {1, <<"must be a resource of the type counter">>}} = reason(fun() -> value(make_ref()) end),
    {tame, {exception, <<"the library does not list the type unlisted">>}} = reason(fun new_unlisted/0),
    badarg = reason(fun() -> adder_auto(1, make_ref()) end),
    badarg = reason(fun() -> adder_auto(-1, Counter) end),
    7 = limit(),
    Times = 20000,
    Calls = [spawn_monitor(fun() -> at(adder, Place, [Times, Counter]) end) || _ <- [1, 2, 3, 4], Place <- places()],
    [receive {'DOWN', Ref, process, _, Reason} -> normal = Reason end || {_, Ref} <- Calls],
    Sum = 32 * Times,
    Sum = value(Counter),
    killed(fun(Place) -> at(adder, Place, [2000000, Counter]) end),
    true = adder_pool(1, Counter) > Sum;
check_one(killed) ->
    killed(fun(Place) -> at(thrower, Place, [none, none, 3000000000]) end, places() -- [inline, dirty_cpu, dirty_io]),
    killed(fun(Place) -> at(viewer, Place, [<<"a">>, binary:copy(<<"b">>, 100), <<>>, 10000]) end).

killed(Fun) -> killed(Fun, places()).

%% Callers that die at any moment of a call.
killed(Fun, Places) ->
    Calls = [
        begin
            Call = spawn_monitor(fun() -> Fun(Place) end),
            {Call, N rem 7}
        end
     || N <- lists:seq(1, 12), Place <- Places
    ],
    [begin [erlang:yield() || _ <- lists:seq(1, After * 20)], exit(Pid, kill) end || {{Pid, _}, After} <- Calls],
    [receive {'DOWN', Ref, process, _, _} -> ok end || {{_, Ref}, _} <- Calls].

collects(I) ->
    receive Pid -> collects(Pid, I, 300) end.

%% The caller's heap moves at each of these.
collects(_, _, 0) -> ok;
collects(Pid, I, N) ->
    garbage_collect(Pid),
    Pid ! lists:seq(1, I),
    collects(Pid, I, N - 1).

all(Next) ->
    case Next() of
        [Part | More] -> [Part | all(More)];
        [] -> []
    end.

io_lists() ->
    Large = binary:copy(<<"large">>, 1000),
    [<<>>, [], <<"a">>, [<<"a">>], ["ab", [$c, <<>>] | <<"d">>], [Large, [[Large]] | <<"e">>]].

exceptions() ->
    [
        {bad_alloc, enomem},
        {badarg, badarg},
        {error, {reason, 17, <<"text">>}},
        {plain, reason},
        {invalid_argument, {tame, {exception, <<"what it says">>}}},
        {long_atom, {tame, {exception, <<"an atom has at most 255 characters">>}}},
        {number, {tame, {exception, <<"no std::exception">>}}},
        {no_term, {tame, bad_reason}},
        {unmade_bad_alloc, enomem},
        {unmade_invalid_argument, {tame, {exception, <<"what it says">>}}},
        {unmade_error, {tame, {exception, <<"tame::error">>}}},
        {unmade_number, {tame, {exception, <<"no std::exception">>}}}
    ].

reason(Fun) ->
    try {value, Fun()}
    catch error:Reason -> Reason
    end.
