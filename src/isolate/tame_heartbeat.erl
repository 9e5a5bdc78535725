%% Whether a host still answers, and whether it needs another worker. Pure: each look at the host's
%% ring, every ?LOOK_MS, is one step. Looks are counted, not time, so a VM that was itself stopped
%% for a while does not take its hosts for dead.
%%
%%   quiet ── PING_LOOKS without a reply, or CHECK_LOOKS also with them: ping ──▶ asked
%%     ▲                                                                        │
%%     └──────────────────────────────── pong ──────────────────────────────────┤
%%                                        as many looks as answer_ms has: {kill, not_answering}
%%
%% With each ping the host is told the VM's clock (tame_host_start:clock/0).
%%
%% While calls are answered there is one ping every ?CHECK_LOOKS, because a host may answer calls
%% and have lost its control port. Besides, in any state:
%%
%%   - more calls in the host than workers, the oldest waiting for a whole look, and no reply since
%%     the last look: grow, up to GROWTH_MAX workers more. In the VM a NIF that waits for another
%%     call finds a free scheduler, or one of ten dirty I/O threads.
%%   - for as many looks as answer_ms has there are calls that their callers have given up and no
%%     worker is at, nor at any other call, and no reply: {kill, not_answering}. Pings are answered
%%     by another thread than calls.
-module(tame_heartbeat).

-export([new/2]).
-export([look/2]).
-export([pong/1]).
-export([look_ms/0]).

-export_type([state/0]).
-export_type([pulse/0]).
-export_type([action/0]).

-define(LOOK_MS, 100).
-define(PING_LOOKS, 10).
-define(CHECK_LOOKS, 50).
-define(GROWTH_MAX, 10).
-define(WORKERS_MAX, 64).

%% From tame_ring:pulse/1: replies so far, slots in use, how long the oldest call has been under
%% way. From tame_ring:abandoned/2: calls that their callers have given up and no worker is at.
-type pulse() :: {
    Answered :: non_neg_integer(),
    InUse :: non_neg_integer(),
    OldestMs :: non_neg_integer(),
    Untouched :: non_neg_integer()
}.
-type action() :: ping | grow | {kill, not_answering}.

-record(beat, {
    answer_looks :: pos_integer() | infinity,
    workers :: pos_integer(),
    workers_max :: pos_integer(),
    answered = 0 :: non_neg_integer(),
    %% Looks since the last pong.
    looks = 0 :: non_neg_integer(),
    %% Looks in a row without a reply.
    silent = 0 :: non_neg_integer(),
    %% Looks in a row with untouched calls.
    untouched = 0 :: non_neg_integer(),
    %% Looks since a ping that was not answered yet.
    asked = none :: none | non_neg_integer()
}).

-opaque state() :: #beat{}.

-spec new(pos_integer() | infinity, pos_integer()) -> state().
new(AnswerMs, Workers) ->
    #beat{
        answer_looks =
            if
                AnswerMs =:= infinity -> infinity;
                true -> max(1, AnswerMs div ?LOOK_MS)
            end,
        workers = Workers,
        workers_max = max(Workers, min(?WORKERS_MAX, Workers + ?GROWTH_MAX))
    }.

-spec look_ms() -> pos_integer().
look_ms() ->
    ?LOOK_MS.

-spec look(pulse(), state()) -> {[action()], state()}.
look({Answered, InUse, OldestMs, Untouched}, #beat{answered = Before} = Beat0) ->
    Beat = counted(Answered =/= Before, Untouched > 0, Beat0#beat{answered = Answered}),
    case is_dead(Beat) of
        true ->
            {[{kill, not_answering}], Beat};
        false ->
            {Ping, Asked} = asked(Beat),
            {Grow, Later} = grown(Answered =:= Before andalso OldestMs >= ?LOOK_MS, InUse, Asked),
            {Grow ++ Ping, Later}
    end.

counted(IsReply, IsUntouched, Beat) ->
    #beat{looks = Looks, silent = Silent, untouched = Untouched, asked = Asked} = Beat,
    Beat#beat{
        looks = Looks + 1,
        silent = if IsReply -> 0; true -> Silent + 1 end,
        untouched = if IsReply; not IsUntouched -> 0; true -> Untouched + 1 end,
        asked = if Asked =:= none -> none; true -> Asked + 1 end
    }.

is_dead(#beat{answer_looks = infinity}) -> false;
is_dead(#beat{answer_looks = Most, untouched = Untouched}) when Untouched >= Most -> true;
is_dead(#beat{answer_looks = Most, asked = Asked}) -> Asked =/= none andalso Asked >= Most.

asked(#beat{asked = none, silent = Silent, looks = Looks} = Beat) when
    Silent >= ?PING_LOOKS; Looks >= ?CHECK_LOOKS
->
    {[ping], Beat#beat{asked = 0}};
asked(Beat) ->
    {[], Beat}.

grown(true, InUse, #beat{workers = Workers, workers_max = Most} = Beat) when
    InUse > Workers, Workers < Most
->
    {[grow], Beat#beat{workers = Workers + 1}};
grown(_StandsStill, _InUse, Beat) ->
    {[], Beat}.

%% The host answered a ping.
-spec pong(state()) -> state().
pong(Beat) ->
    Beat#beat{looks = 0, silent = 0, asked = none}.
