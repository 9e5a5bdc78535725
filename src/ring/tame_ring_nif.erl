%% Binds the VM's side of the ring (c_src/ring/tame_ring_nif.c); nothing else. See tame_ring.
-module(tame_ring_nif).

-define(NIFS, [
    open/6,
    call/3,
    call_by/3,
    call_encoded/3,
    poll/2,
    wait/3,
    take/2,
    decode/2,
    made/1,
    bad_reply/1,
    cancel/2,
    close/2,
    route/0,
    lead/2,
    rings/1,
    choose/1,
    home/2,
    pulse/1,
    leases/2,
    used/2,
    hold/2,
    abandoned/2,
    info/1,
    encode/1,
    scan/1,
    read/1,
    is_alive/1,
    send/2,
    flat_size/1
]).

-export(?NIFS).
-nifs(?NIFS).

-export_type([ring/0]).
-export_type([route/0]).
-export_type([token/0]).
-export_type([begun/0]).
-export_type([decode/0]).

-on_load(load/0).

-type ring() :: reference().
-type route() :: reference().

%% A call that is under way.
-type token() :: non_neg_integer().

%% The reply is Kind and the term that these bytes are. When it is made, or cannot be, made/1 is to
%% be called with the reading, if there is one: the reply brings proxies.
-type decode() ::
    {decode, value | raise, binary()} | {decode, value | raise, binary(), Reading :: reference()}.

%% A call that was made: its reply, or what is to be done to have it. encode: these arguments are
%% for term_to_binary/1 and call_encoded/3. {measure, Most}: they are, if they take no more bytes
%% than that, and may take many more. {poll, Token}: poll/2 is to be called when others had their
%% turn. {wait, Token}: wait/3 is to be called.
-type begun() ::
    tame_ring:reply() | decode() | {poll | wait, token()} | encode | {measure, pos_integer()}.

load() ->
    erlang:load_nif(filename:rootname(tame_native:path("tame_ring_nif.so")), 0).

%% Maps the ring that OS process OsPid has open as file descriptor Fd, and starts its reader thread.
%% The calling process becomes the owner.
-spec open(integer(), integer(), Count, Count, Count, Count) ->
    {ok, ring()} | {error, atom()}
when
    Count :: non_neg_integer().
open(_OsPid, _Fd, _MaxWaiting, _SpinNs, _MaxBytes, _MaxReplyBytes) ->
    erlang:nif_error(nif_not_loaded).

-spec call(ring(), non_neg_integer(), list()) -> begun().
call(_Ring, _Function, _Args) ->
    erlang:nif_error(nif_not_loaded).

%% By the least busy ring of the route, which is in the answer unless that is a value. none: the
%% route leads to no ring.
-spec call_by(route(), non_neg_integer(), list()) -> {value, term()} | {by, ring(), begun()} | none.
call_by(_Route, _Function, _Args) ->
    erlang:nif_error(nif_not_loaded).

%% Arguments as term_to_binary/1 gives them; copied in slices.
-spec call_encoded(ring(), non_neg_integer(), binary()) ->
    tame_ring:reply() | decode() | {poll | wait, token()}.
call_encoded(_Ring, _Function, _Encoded) ->
    erlang:nif_error(nif_not_loaded).

%% As call/3.
-spec poll(ring(), token()) -> tame_ring:reply() | decode() | {poll | wait, token()}.
poll(_Ring, _Token) ->
    erlang:nif_error(nif_not_loaded).

%% wait: the message {Ref, ready} will come, unless cancel/2 says otherwise.
-spec wait(ring(), token(), reference()) -> tame_ring:reply() | decode() | wait.
wait(_Ring, _Token, _Ref) ->
    erlang:nif_error(nif_not_loaded).

%% The reply of a call whose message has come.
-spec take(ring(), token()) -> tame_ring:reply() | decode().
take(_Ring, _Token) ->
    erlang:nif_error(nif_not_loaded).

%% sent: {Ref, Term} is in the caller's mailbox, Term being what these bytes are. wrong: they are no
%% term. large: binary_to_term/2 is to make it, which yields.
-spec decode(reference(), binary()) -> sent | wrong | large.
decode(_Ref, _Bytes) ->
    erlang:nif_error(nif_not_loaded).

-spec made(Reading :: reference()) -> ok.
made(_Reading) ->
    erlang:nif_error(nif_not_loaded).

%% The reply of a call whose bytes binary_to_term/2 has refused.
-spec bad_reply(ring()) -> tame_ring:reply().
bad_reply(_Ring) ->
    erlang:nif_error(nif_not_loaded).

%% ok: the call is given up. wait: the message is on its way.
-spec cancel(ring(), token()) -> ok | wait.
cancel(_Ring, _Token) ->
    erlang:nif_error(nif_not_loaded).

-spec close(ring(), term()) -> ok.
close(_Ring, _Reason) ->
    erlang:nif_error(nif_not_loaded).

-spec route() -> route().
route() ->
    erlang:nif_error(nif_not_loaded).

-spec lead(route(), Rings :: tuple()) -> ok | lost.
lead(_Route, _Rings) ->
    erlang:nif_error(nif_not_loaded).

-spec rings(route()) -> tuple().
rings(_Route) ->
    erlang:nif_error(nif_not_loaded).

-spec choose(Rings :: tuple()) -> pos_integer().
choose(_Rings) ->
    erlang:nif_error(nif_not_loaded).

-spec home(tuple(), reference()) -> pos_integer() | gone | none.
home(_Rings, _Ref) ->
    erlang:nif_error(nif_not_loaded).

-spec pulse(ring()) -> {non_neg_integer(), non_neg_integer(), non_neg_integer()}.
pulse(_Ring) ->
    erlang:nif_error(nif_not_loaded).

-spec leases(ring(), non_neg_integer()) -> [{pos_integer(), reference()}] | too_many.
leases(_Ring, _Count) ->
    erlang:nif_error(nif_not_loaded).

-spec used(ring(), [non_neg_integer()]) -> ok.
used(_Ring, _Ids) ->
    erlang:nif_error(nif_not_loaded).

-spec hold(ring(), [reference()]) -> [pos_integer()] | too_many.
hold(_Ring, _Refs) ->
    erlang:nif_error(nif_not_loaded).

-spec abandoned(ring(), non_neg_integer()) -> {non_neg_integer(), non_neg_integer()}.
abandoned(_Ring, _Ms) ->
    erlang:nif_error(nif_not_loaded).

-spec info(ring()) -> #{atom() => non_neg_integer()}.
info(_Ring) ->
    erlang:nif_error(nif_not_loaded).

%% What call/3 writes for a term, for the tests of the encoder.
-spec encode(term()) -> binary() | encode.
encode(_Term) ->
    erlang:nif_error(nif_not_loaded).

%% What the scan of a reply finds in external format: the memory that the term takes at most, the
%% pairs of all maps, the bytes of all keys, hashes of the names of nodes; or what is wrong.
-spec scan(binary()) ->
    {non_neg_integer(), non_neg_integer(), non_neg_integer(), [non_neg_integer()]} | atom().
scan(_Bytes) ->
    erlang:nif_error(nif_not_loaded).

%% The term of bytes that were scanned, made on a dirty scheduler, without new atoms.
-spec read(binary()) -> {ok, term()} | wrong.
read(_Bytes) ->
    erlang:nif_error(nif_not_loaded).

%% Never waits.
-spec is_alive(pid() | port()) -> boolean().
is_alive(_PidOrPort) ->
    erlang:nif_error(nif_not_loaded).

%% Copies the message on a dirty scheduler.
-spec send(pid(), term()) -> ok.
send(_Pid, _Message) ->
    erlang:nif_error(nif_not_loaded).

%% On a dirty scheduler.
-spec flat_size(term()) -> non_neg_integer() | none.
flat_size(_Term) ->
    erlang:nif_error(nif_not_loaded).
