%% Binds the VM's side of the ring (c_src/ring/tame_ring_nif.c); nothing else. See tame_ring.
-module(tame_ring_nif).

-export([open/5]).
-export([call/3]).
-export([call_encoded/3]).
-export([cancel/2]).
-export([close/2]).
-export([leases/2]).
-export([used/2]).
-export([hold/2]).
-export([abandoned/2]).
-export([info/1]).
-export([encode/1]).

-export_type([ring/0]).
-export_type([wait/0]).

-nifs([
    open/5,
    call/3,
    call_encoded/3,
    cancel/2,
    close/2,
    leases/2,
    used/2,
    hold/2,
    abandoned/2,
    info/1,
    encode/1
]).

-on_load(load/0).

-type ring() :: reference().

%% {Ref, Reply} will come by message; Id is what cancel/2 wants.
-type wait() :: {wait, reference(), non_neg_integer()}.

load() ->
    erlang:load_nif(filename:rootname(tame_native:path("tame_ring_nif.so")), 0).

%% Maps the ring that OS process OsPid has open as file descriptor Fd, and starts its reader thread.
-spec open(integer(), integer(), non_neg_integer(), non_neg_integer(), non_neg_integer()) ->
    {ok, ring()} | {error, atom()}.
open(_OsPid, _Fd, _MaxWaiting, _SpinNs, _MaxBytes) ->
    erlang:nif_error(nif_not_loaded).

%% encode: these arguments are for term_to_binary/1 and call_encoded/3.
-spec call(ring(), non_neg_integer(), list()) -> tame_ring:reply() | wait() | encode.
call(_Ring, _Function, _Args) ->
    erlang:nif_error(nif_not_loaded).

%% Arguments as term_to_binary/1 gives them; copied in slices.
-spec call_encoded(ring(), non_neg_integer(), binary()) -> tame_ring:reply() | wait().
call_encoded(_Ring, _Function, _Encoded) ->
    erlang:nif_error(nif_not_loaded).

%% ok: nobody waits any more. wait: the message is on its way.
-spec cancel(ring(), non_neg_integer()) -> ok | wait.
cancel(_Ring, _Id) ->
    erlang:nif_error(nif_not_loaded).

-spec close(ring(), term()) -> ok.
close(_Ring, _Reason) ->
    erlang:nif_error(nif_not_loaded).

-spec leases(ring(), non_neg_integer()) -> [{pos_integer(), reference()}].
leases(_Ring, _Count) ->
    erlang:nif_error(nif_not_loaded).

-spec used(ring(), [non_neg_integer()]) -> ok.
used(_Ring, _Ids) ->
    erlang:nif_error(nif_not_loaded).

-spec hold(ring(), [reference()]) -> [pos_integer()].
hold(_Ring, _Refs) ->
    erlang:nif_error(nif_not_loaded).

-spec abandoned(ring(), non_neg_integer()) -> non_neg_integer().
abandoned(_Ring, _Ms) ->
    erlang:nif_error(nif_not_loaded).

-spec info(ring()) -> #{atom() => non_neg_integer()}.
info(_Ring) ->
    erlang:nif_error(nif_not_loaded).

%% What call/3 writes for a term, for the tests of the encoder.
-spec encode(term()) -> binary() | encode.
encode(_Term) ->
    erlang:nif_error(nif_not_loaded).
