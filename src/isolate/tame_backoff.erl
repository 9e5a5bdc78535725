%% How long a host that crashes stays down, and when it is not started again. Pure.
%%
%% A host starts again at once after the first crash. The pause after the second crash in a row is
%% the first value of the option backoff_ms; it doubles with each crash, up to the second value. A
%% crash after ?STEADY_MS up counts as a first crash. After more crashes than the option intensity
%% allows, the host has failed.
-module(tame_backoff).

-export([new/0]).
-export([crashed/4]).
-export([in_row/1]).
-export([has_failed/2]).
-export([delay_ms/2]).

-export_type([state/0]).

-define(STEADY_MS, 1000).
%% A host that does not even start is not tried in a loop, even if the options say so.
-define(START_AGAIN_MS, 20).

-record(backoff, {
    %% When it crashed, in ms, newest first, no older than the intensity looks back.
    crashes = [] :: [integer()],
    in_row = 0 :: non_neg_integer(),
    crashed_in = up :: starting | up
}).

-opaque state() :: #backoff{}.

-spec new() -> state().
new() ->
    #backoff{}.

%% It crashed while it started, or when it had been up for this long.
-spec crashed(When, integer(), tame_isolate_options:options(), state()) -> state() when
    When :: starting | {up, UpMs :: non_neg_integer()}.
crashed(When, NowMs, Options, #backoff{crashes = Crashes, in_row = InRow}) ->
    Recent =
        case Options of
            #{intensity := {_, Ms}} -> [AtMs || AtMs <- Crashes, NowMs - AtMs < Ms];
            #{intensity := infinity} -> []
        end,
    #backoff{
        crashes = [NowMs | Recent],
        in_row =
            case When of
                {up, UpMs} when UpMs >= ?STEADY_MS -> 1;
                _ -> InRow + 1
            end,
        crashed_in = if When =:= starting -> starting; true -> up end
    }.

%% Crashes in a row.
-spec in_row(state()) -> non_neg_integer().
in_row(#backoff{in_row = InRow}) ->
    InRow.

-spec has_failed(tame_isolate_options:options(), state()) -> boolean().
has_failed(#{intensity := infinity}, _Backoff) -> false;
has_failed(#{intensity := {Most, _}}, #backoff{crashes = Crashes}) -> length(Crashes) > Most.

-spec delay_ms(tame_isolate_options:options(), state()) -> non_neg_integer().
delay_ms(_Options, #backoff{in_row = InRow}) when InRow =< 1 ->
    0;
delay_ms(Options, #backoff{crashed_in = starting} = Backoff) ->
    max(?START_AGAIN_MS, delay_ms(Options, Backoff#backoff{crashed_in = up}));
delay_ms(#{backoff_ms := {First, Ceiling}}, #backoff{in_row = InRow}) ->
    min(Ceiling, First bsl min(InRow - 2, 20)).
