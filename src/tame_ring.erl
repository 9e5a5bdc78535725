%% Calls into a host through memory that the VM shares with it.
%%
%%     {ok, Ring} = tame_ring:open(OsPid, Fd, #{}),       %% both as the host said in its hello
%%     {value, Term} = tame_ring:call(Ring, Function, [Arg], infinity),
%%     ok = tame_ring:close(Ring, {signal, sigkill})      %% the host is dead: callers get host_down
%%
%% A ring is one host's. It is closed by close/2, or when nobody holds it any more; the next host has
%% a ring of its own. What happens in the memory: c_src/ring/ring.h.
-module(tame_ring).

-export([open/3]).
-export([call/4]).
-export([close/2]).
-export([leases/2]).
-export([used/2]).
-export([hold/2]).
-export([abandoned/2]).
-export([info/1]).

-export_type([ring/0]).
-export_type([options/0]).
-export_type([reply/0]).

-type ring() :: tame_ring_nif:ring().

-type options() :: #{
    %% Callers that may stand in line for a slot; one more gets {error, busy}. Default 1024.
    max_waiting => non_neg_integer(),
    %% How long a caller looks for its reply before it waits in receive. Default 20.
    spin_us => 0..1000,
    %% The most that a host may ask for, all in all. Default 4 GiB.
    max_bytes => pos_integer()
}.

-type reply() ::
    {value, term()}
    | {raise, term()}
    | badarg
    | {error,
        %% The line is full, or the area for large arguments is.
        busy
        %% The arguments are larger than the request area, or the reply than the reply area.
        | too_large
        | deadline
        %% close/2 had been called before the host could have heard of this call.
        | closed
        %% close/2 was called while the host had the call, with this reason; `closed` when the ring was collected.
        | {host_down, Reason :: term()}
        %% The host wrote what no host may write: end it.
        | {bad_reply, What :: atom()}}.

%% Opens the ring that OS process OsPid has open as file descriptor Fd.
%%
%% Reasons: no_such_ring (no such process or descriptor, or not ours to open), not_a_ring, not_sealed,
%% other_version, bad_geometry, bad_bell, unknown_bell, too_large (see max_bytes), enomem, system_limit.
-spec open(pos_integer(), non_neg_integer(), options()) ->
    {ok, ring()} | {error, atom() | {bad_option, term(), term()}}.
open(OsPid, Fd, Options) when is_integer(OsPid), is_integer(Fd), is_map(Options) ->
    case [Option || {Key, Value} = Option <- maps:to_list(Options), not valid(Key, Value)] of
        [] ->
            #{max_waiting := MaxWaiting, spin_us := SpinUs, max_bytes := MaxBytes} =
                maps:merge(defaults(), Options),
            tame_ring_nif:open(OsPid, Fd, MaxWaiting, SpinUs * 1000, MaxBytes);
        [{Key, Value} | _] ->
            {error, {bad_option, Key, Value}}
    end.

defaults() ->
    #{max_waiting => 1024, spin_us => 20, max_bytes => 1 bsl 32}.

valid(max_waiting, Value) -> is_integer(Value) andalso Value >= 0 andalso Value < 1 bsl 31;
valid(spin_us, Value) -> is_integer(Value) andalso Value >= 0 andalso Value =< 1000;
valid(max_bytes, Value) -> is_integer(Value) andalso Value > 0 andalso Value < 1 bsl 60;
valid(_, _) -> false.

%% Calls function number Function of the host. Timeout is in ms; time before the call is handed over
%% (encoding of large arguments) does not count.
-spec call(ring(), non_neg_integer(), list(), timeout()) -> reply().
call(Ring, Function, Args, Timeout) ->
    case tame_ring_nif:call(Ring, Function, Args) of
        {wait, Ref, Id} ->
            keep(Args, wait(Ring, Ref, Id, Timeout));
        encode ->
            %% The binary is in memory outside the heap, and term_to_binary/1 yields by itself.
            case tame_ring_nif:call_encoded(Ring, Function, term_to_binary(Args)) of
                {wait, Ref, Id} -> keep(Args, wait(Ring, Ref, Id, Timeout));
                Reply -> Reply
            end;
        Reply ->
            Reply
    end.

wait(Ring, Ref, Id, Timeout) ->
    receive
        {Ref, Reply} -> Reply
    after Timeout ->
        case tame_ring_nif:cancel(Ring, Id) of
            ok ->
                {error, deadline};
            wait ->
                %% Being decoded just now, or in our queue already.
                receive
                    {Ref, Reply} -> Reply
                end
        end
    end.

%% Keeps the arguments alive until the reply is here: a proxy among them that nobody else holds would
%% else be collected while the host may be about to return it.
keep(Args, Reply) when is_list(Args) ->
    Reply.

%% The host is dead, or is to be treated so. Everybody who waits gets {error, {host_down, Reason}},
%% and every later call {error, closed}. The first reason stays.
-spec close(ring(), term()) -> ok.
close(Ring, Reason) ->
    tame_ring_nif:close(Ring, Reason).

%% Count proxies, at most 1024, to be lent to the host: send it the list. The VM holds each of them
%% until the host says, behind a reply that carries its reference, that it has used it. When such a proxy is
%% collected, the host is told by the ring.
-spec leases(ring(), 0..1024) -> [{Id :: pos_integer(), reference()}].
leases(Ring, Count) ->
    tame_ring_nif:leases(Ring, Count).

%% For references that came another way (the control port): drops the VM's hold on these leases. Call
%% it when the term that carries them has been decoded and is held.
-spec used(ring(), [non_neg_integer()]) -> ok.
used(Ring, Ids) ->
    tame_ring_nif:used(Ring, Ids).

%% The leases behind these references that are still alive, by id; the VM holds each once more, until the
%% host lists it behind a reply or used/2 is called. For what a host is about to send again.
-spec hold(ring(), [reference()]) -> [pos_integer()].
hold(Ring, Refs) ->
    tame_ring_nif:hold(Ring, Refs).

%% How many calls the host is at though nobody has waited for them for so many ms.
-spec abandoned(ring(), non_neg_integer()) -> non_neg_integer().
abandoned(Ring, Ms) ->
    tame_ring_nif:abandoned(Ring, Ms).

%% Counters: calls, spins, spins_paid, looks_paid (after spinning, in turns with other processes), waits (calls that waited in receive), lined (that stood in line), busy,
%% bad_replies; and what is now: slots_in_use, in_line, region_bytes (of requests), leases_unused;
%% and the geometry.
-spec info(ring()) -> #{atom() => non_neg_integer()}.
info(Ring) ->
    tame_ring_nif:info(Ring).
