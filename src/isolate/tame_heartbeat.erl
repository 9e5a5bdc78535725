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
%%   - a call that no worker has taken for a whole look, and no reply since the last look: grow. The
%%     host wakes a worker that sleeps, or adds one, up to ten. In the VM a NIF that waits for
%%     another call, or a destructor that does, finds a free scheduler, or one of ten dirty I/O
%%     threads.
%%   - for as many looks as answer_ms has there are calls that their callers have given up and no
%%     worker is at, nor at any other call, and no reply: {kill, not_answering}. Pings are answered
%%     by another thread than calls.
-module(tame_heartbeat).

-export([new/1]).
-export([look/2]).
-export([pong/1]).
-export([look_ms/0]).

-export_type([state/0]).
-export_type([pulse/0]).
-export_type([action/0]).

-define(LOOK_MS, 100).
-define(PING_LOOKS, 10).
-define(CHECK_LOOKS, 50).

%% From tame_ring:pulse/1: replies so far, how long the oldest call that no worker is at has waited.
%% From tame_ring:abandoned/2: calls that their callers have given up and no worker is at.
-type pulse() :: {
    Answered :: non_neg_integer(),
    UntakenMs :: non_neg_integer(),
    Untouched :: non_neg_integer()
}.
-type action() :: ping | grow | {kill, not_answering}.

-record(beat, {
    answer_looks :: pos_integer() | infinity,
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

-spec new(pos_integer() | infinity) -> state().
new(AnswerMs) ->
    #beat{
        answer_looks =
            if
                AnswerMs =:= infinity -> infinity;
                true -> max(1, AnswerMs div ?LOOK_MS)
            end
    }.

-spec look_ms() -> pos_integer().
look_ms() ->
    ?LOOK_MS.

-spec look(pulse(), state()) -> {[action()], state()}.
look({Answered, UntakenMs, Untouched}, #beat{answered = Before} = Beat0) ->
    Beat = counted(Answered =/= Before, Untouched > 0, Beat0#beat{answered = Answered}),
    case is_dead(Beat) of
        true ->
            {[{kill, not_answering}], Beat};
        false ->
            {Ping, Asked} = asked(Beat),
            Grow = [grow || Answered =:= Before, UntakenMs >= ?LOOK_MS],
            {Grow ++ Ping, Asked}
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

%% The host answered a ping.
-spec pong(state()) -> state().
pong(Beat) ->
    Beat#beat{looks = 0, silent = 0, asked = none}.
