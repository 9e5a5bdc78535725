%% Crashes of a host, and the calls around each of them. It runs in a VM of its own, where the
%% application tame runs and tame_crash is isolated.
%%
%% One process makes the call that crashes and then asks until it is answered. Another one calls all
%% the time: how many of its calls are answered in each millisecond is what the crash does to
%% everybody else.
-module(tame_crashes).

-export([run/1]).

%% Internal.
-export([per_ms/2]).

-export_type([crash/0]).

%% Times in ns from the crashing call on: when it raised, and when the next call was answered.
%% error: what it raised. calls: for each whole millisecond for which the other process was looked
%% at, counted from the crashing call, how many of its calls were answered. others_failed: how many
%% of its calls raised.
-type crash() :: #{
    raised_ns := non_neg_integer(),
    error := term(),
    answered_ns := non_neg_integer(),
    calls := [{Ms :: integer(), Count :: non_neg_integer()}],
    others_failed := non_neg_integer()
}.

%% For how long the other process is looked at before the crash, and after the first answer.
-define(LEAD_MS, 20).
-define(TAIL_MS, 20).

%% Words. What it keeps, a small integer for each call, fits in for a second and more; so no garbage
%% collection is in the picture.
-define(HEAP_WORDS, 8_000_000).

-define(TERM, {some, <<"small term">>, [1, 2.5]}).

%% Crashes the host that often, pause_ms apart.
-spec run(#{crashes := pos_integer(), pause_ms := non_neg_integer()}) -> [crash()].
run(#{crashes := Crashes, pause_ms := PauseMs}) ->
    [crash(PauseMs) || _ <- lists:seq(1, Crashes)].

crash(PauseMs) ->
    sleep(PauseMs),
    {Caller, Monitor} = spawn_opt(fun caller/0, [monitor, {min_heap_size, ?HEAP_WORDS}]),
    sleep(?LEAD_MS),
    Start = now_ns(),
    Error = raised(fun tame_crash:crash/0),
    Raised = now_ns(),
    _ = answer(),
    Answered = now_ns(),
    sleep(?TAIL_MS),
    Caller ! {?MODULE, self(), stop},
    {Began, Ended, Calls, Failed} =
        receive
            {?MODULE, Caller, Seen} -> Seen;
            {'DOWN', Monitor, process, Caller, Reason} -> exit({caller_down, Reason})
        end,
    true = demonitor(Monitor, [flush]),
    #{
        raised_ns => Raised - Start,
        error => Error,
        answered_ns => Answered - Start,
        calls => per_ms([At - Start || At <- Calls], {Began - Start, Ended - Start}),
        others_failed => Failed
    }.

raised(Fun) ->
    try
        {returned, Fun()}
    catch
        error:Reason -> Reason
    end.

%% The call after the crash waits until a host is up; one that came before the end of the host was
%% noticed raises, and the next one is asked.
answer() ->
    try
        ?TERM = tame_crash:echo(?TERM)
    catch
        error:{tame, _} -> answer()
    end.

%% ---- the other process -------------------------------------------------------------------------

caller() ->
    calls(now_ns(), [], 0).

calls(Began, Calls, Failed) ->
    receive
        {?MODULE, From, stop} -> From ! {?MODULE, self(), {Began, now_ns(), Calls, Failed}}
    after 0 ->
        try tame_crash:echo(?TERM) of
            ?TERM -> calls(Began, [now_ns() | Calls], Failed)
        catch
            error:{tame, _} -> calls(Began, Calls, Failed + 1)
        end
    end.

%% How many of these moments lie in each whole millisecond of the span. Pure.
%%
%%     1> tame_crashes:per_ms([-1, 0, 999_999, 1_000_000], {-1_500_000, 2_500_000}).
%%     [{-1,1},{0,2},{1,1}]
-spec per_ms([integer()], {From :: integer(), To :: integer()}) ->
    [{integer(), non_neg_integer()}].
per_ms(MomentsNs, {FromNs, ToNs}) ->
    Counts = lists:foldl(
        fun(Ns, Counts) -> maps:update_with(ms(Ns), fun(Count) -> Count + 1 end, 1, Counts) end,
        #{},
        MomentsNs
    ),
    %% Rounded up and down, so that the first and the last are whole.
    First = -ms(-FromNs),
    [{Ms, maps:get(Ms, Counts, 0)} || Ms <- lists:seq(First, max(First, ms(ToNs)) - 1)].

%% Downward, below zero as well.
ms(Ns) when Ns >= 0 -> Ns div 1_000_000;
ms(Ns) -> -((-Ns + 999_999) div 1_000_000).

now_ns() ->
    erlang:monotonic_time(nanosecond).

sleep(Ms) ->
    receive after Ms -> ok end.
