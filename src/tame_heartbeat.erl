%% Whether a host still answers, and whether it needs another worker. Pure: one look at the host's ring, each
%% ?LOOK_MS, is one step, so that a VM that was stopped itself, and then takes its looks late, blames no host.
%%
%%            replies since the last look, or a pong
%%   quiet ◀────────────────────────────────────────── any state
%%     │ PING_LOOKS without a reply: ping
%%     ▼
%%   asked ── as many looks as answer_ms has, without a reply and without a pong: {kill, not_answering}
%%
%% While calls flow nothing is sent. Besides, in any state:
%%
%%   - more calls in the host than workers, the oldest waiting for a whole look, and no reply since the last look:
%%     grow, up to GROWTH_MAX workers more. In the VM a NIF that waits for another call finds a free scheduler, or
%%     one of ten dirty I/O threads.
%%   - for as many looks as answer_ms has there are calls that nobody wants any more and no worker is at, nor at any
%%     other call, and no reply: {kill, not_answering}. Pings are answered by another thread than calls.
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
-define(GROWTH_MAX, 10).
-define(WORKERS_MAX, 64).

%% As tame_ring:pulse/1 says it: replies so far, slots in use, how long the oldest call has been under way. And as
%% tame_ring:abandoned/2: calls that nobody wants, that no worker is at.
-type pulse() :: {non_neg_integer(), non_neg_integer(), non_neg_integer(), Untouched :: non_neg_integer()}.
-type action() :: ping | grow | {kill, not_answering}.

-record(beat, {
    answer_looks :: pos_integer() | infinity,
    workers :: pos_integer(),
    workers_max :: pos_integer(),
    answered = 0 :: non_neg_integer(),
    %% looks without a reply; looks with calls that are untouched; looks since the ping that was not answered yet
    silent = 0 :: non_neg_integer(),
    untouched = 0 :: non_neg_integer(),
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
look({Answered, _, _, _}, #beat{answered = Before} = Beat) when Answered =/= Before ->
    {[], (pong(Beat))#beat{answered = Answered, untouched = 0}};
look({_, _, _, Untouched}, #beat{untouched = Looks, answer_looks = Most} = Beat) when Untouched > 0, Looks + 1 >= Most ->
    {[{kill, not_answering}], Beat};
look({_, InUse, OldestMs, Untouched}, #beat{workers = Workers, workers_max = Most} = Beat) when
    InUse > Workers, OldestMs >= ?LOOK_MS, Workers < Most
->
    {Actions, Later} = silent(touched(Untouched, Beat)),
    {[grow | Actions], Later#beat{workers = Workers + 1}};
look({_, _, _, Untouched}, Beat) ->
    silent(touched(Untouched, Beat)).

touched(0, Beat) -> Beat#beat{untouched = 0};
touched(_Some, #beat{untouched = Looks} = Beat) -> Beat#beat{untouched = Looks + 1}.

silent(#beat{asked = none, silent = Silent} = Beat) when Silent + 1 < ?PING_LOOKS ->
    {[], Beat#beat{silent = Silent + 1}};
silent(#beat{asked = none} = Beat) ->
    {[ping], Beat#beat{asked = 0}};
silent(#beat{asked = Asked, answer_looks = Most} = Beat) when Asked + 1 < Most ->
    {[], Beat#beat{asked = Asked + 1}};
silent(Beat) ->
    {[{kill, not_answering}], Beat}.

%% The host answered a ping.
-spec pong(state()) -> state().
pong(Beat) ->
    Beat#beat{silent = 0, asked = none}.
