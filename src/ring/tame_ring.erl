%% Calls into a host through memory that the VM shares with it.
%%
%%     {ok, Ring} = tame_ring:open(OsPid, Fd, #{}),       %% both as the host said in its hello
%%     {value, Term} = tame_ring:call(Ring, Function, [Arg], infinity),
%%     ok = tame_ring:close(Ring, {signal, sigkill})      %% the host is dead: callers get host_down
%%
%% A ring is one host's, and belongs to the process that opened it. It is closed by close/2, when
%% that process dies, or when no process has a reference to it any more; the next host has a ring of
%% its own. What happens in the memory: c_src/ring/ring.h.
%%
%% A native resource of the host is a reference in the VM, its proxy. The VM makes proxies and lends
%% them to the host before it needs them: these are leases. The host uses a lease when it sends the
%% first term with that reference.
%%
%% A reply is made by the process that called, on its scheduler: small ones at once, large ones in
%% slices, and those with many keys in maps on a dirty scheduler. No thread of the ring's own makes
%% a term.
-module(tame_ring).

-export([open/3]).
-export([call/4]).
-export([route/0]).
-export([lead/2]).
-export([rings/1]).
-export([call_by/4]).
-export([close/2]).
-export([choose/1]).
-export([home/2]).
-export([pulse/1]).
-export([leases/2]).
-export([used/2]).
-export([hold/2]).
-export([abandoned/2]).
-export([info/1]).
-export([scan/1]).
-export([read/2]).
-export([is_alive/1]).
-export([send/3]).
-export([flat_size/1]).

-export_type([ring/0]).
-export_type([route/0]).
-export_type([options/0]).
-export_type([reply/0]).
-export_type([scanned/0]).

%% Terms beyond one of these are made, and copied into a message, on a dirty scheduler: 0.3 ms.
-define(SLOW_MEMORY, 1 bsl 18).
-define(SLOW_KEYS, 4000).

-type ring() :: tame_ring_nif:ring().

%% The rings of the hosts that are up with a library, under one term, which stays while hosts, and
%% rings with them, come and go. It keeps its rings as a reference does.
-type route() :: tame_ring_nif:route().

-type options() :: #{
    %% Callers that may wait for a slot; one more gets {error, busy}. Default 1024.
    max_waiting => non_neg_integer(),
    %% How long a caller spins for its reply before it waits in receive. Default 20.
    spin_us => 0..1000,
    %% The most that a host may ask for, all in all. Default 4 GiB.
    max_bytes => pos_integer(),
    %% The memory that a reply may take in its caller, binaries included; an upper bound of it is
    %% found before the reply is made. Its bytes are held beside it until then. Default 1 GiB.
    max_reply_bytes => pos_integer()
}.

-type reply() ::
    {value, term()}
    | {raise, term()}
    | badarg
    | {error,
        %% As many callers wait as may, or the area for large arguments is.
        busy
        %% The arguments are larger than the request area, or the reply than the reply area.
        | too_large
        %% The reply would take more than max_reply_bytes: at least this number of bytes.
        | {reply_too_large, Bytes :: pos_integer()}
        | deadline
        %% The ring was closed before the host could have heard of this call: it may be made again,
        %% elsewhere.
        | closed
        %% The ring was closed while the host had the call. Reason: close/2's; owner_down; upgraded,
        %% when the library was replaced by one of another layout; `closed` when the ring was
        %% collected.
        | {host_down, Reason :: term()}
        %% The host wrote what no host may write: end it.
        | {bad_reply, What :: atom()}}.

%% Opens the ring that OS process OsPid has open as file descriptor Fd. The calling process is its
%% owner from now on: when it dies, the ring is closed with the reason owner_down.
%%
%% Reasons: no_such_ring (no such process or descriptor, or not ours to open), not_a_ring,
%% not_sealed, other_version, bad_geometry, bad_bell, unknown_bell, too_large (see max_bytes),
%% enomem, system_limit.
-spec open(pos_integer(), non_neg_integer(), options()) ->
    {ok, ring()} | {error, atom() | {bad_option, term(), term()}}.
open(OsPid, Fd, Options) when is_integer(OsPid), is_integer(Fd), is_map(Options) ->
    case [Option || {Key, Value} = Option <- maps:to_list(Options), not valid(Key, Value)] of
        [] ->
            #{
                max_waiting := MaxWaiting,
                spin_us := SpinUs,
                max_bytes := MaxBytes,
                max_reply_bytes := MaxReplyBytes
            } = maps:merge(defaults(), Options),
            tame_ring_nif:open(OsPid, Fd, MaxWaiting, SpinUs * 1000, MaxBytes, MaxReplyBytes);
        [{Key, Value} | _] ->
            {error, {bad_option, Key, Value}}
    end.

defaults() ->
    #{max_waiting => 1024, spin_us => 20, max_bytes => 1 bsl 32, max_reply_bytes => 1 bsl 30}.

valid(max_waiting, Value) -> is_integer(Value) andalso Value >= 0 andalso Value < 1 bsl 31;
valid(spin_us, Value) -> is_integer(Value) andalso Value >= 0 andalso Value =< 1000;
valid(max_bytes, Value) -> is_integer(Value) andalso Value > 0 andalso Value < 1 bsl 60;
valid(max_reply_bytes, Value) -> is_integer(Value) andalso Value > 0 andalso Value < 1 bsl 60;
valid(_, _) -> false.

%% Calls function number Function of the host. Timeout is in ms; time before the call is handed over
%% (encoding of large arguments) does not count.
-spec call(ring(), non_neg_integer(), list(), timeout()) -> reply().
call(Ring, Function, Args, Timeout) ->
    case tame_ring_nif:call(Ring, Function, Args) of
        {value, _} = Reply -> Reply;
        Begun -> ended(Ring, Function, Args, Begun, Timeout)
    end.

%% The binary is in memory outside the heap, and term_to_binary/1 yields by itself.
ended(Ring, Function, Args, encode, Timeout) ->
    Begun = tame_ring_nif:call_encoded(Ring, Function, term_to_binary(Args)),
    keep_alive(Args, reply(Ring, Begun, Timeout));
ended(Ring, Function, Args, {measure, Most}, Timeout) ->
    case tame_ring_size:is_within(Args, Most) of
        true -> ended(Ring, Function, Args, encode, Timeout);
        false -> {error, too_large}
    end;
ended(Ring, _Function, Args, Begun, Timeout) ->
    keep_alive(Args, reply(Ring, Begun, Timeout)).

%% A route that leads to no ring yet.
-spec route() -> route().
route() ->
    tame_ring_nif:route().

%% From now on the route leads to these rings, at most 64, and to no other. lost: the library was
%% replaced by one of another layout, and the route with it: make another.
-spec lead(route(), Rings :: tuple()) -> ok | lost.
lead(Route, Rings) ->
    tame_ring_nif:lead(Route, Rings).

%% Where the route leads to.
-spec rings(route()) -> Rings :: tuple().
rings(Route) ->
    tame_ring_nif:rings(Route).

%% As call/4, by that of the route's rings which has the fewest calls under way. by: which ring that
%% was, where the call has not come to a value at once. none: the route leads to no ring.
-spec call_by(route(), non_neg_integer(), list(), timeout()) ->
    {value, term()} | {by, ring(), reply()} | none.
call_by(Route, Function, Args, Timeout) ->
    case tame_ring_nif:call_by(Route, Function, Args) of
        {value, _} = Reply -> Reply;
        {by, Ring, Begun} -> {by, Ring, ended(Ring, Function, Args, Begun, Timeout)};
        none -> none
    end.

reply(Ring, {poll, Token}, Timeout) ->
    true = erlang:yield(),
    reply(Ring, tame_ring_nif:poll(Ring, Token), Timeout);
reply(Ring, {wait, Token}, Timeout) ->
    wait(Ring, Token, Timeout);
reply(Ring, Reply, _Timeout) ->
    made(Ring, Reply).

%% The reference is made, given away and received in one function, so that receive does not look at
%% messages that are older (test: the compiler says so).
wait(Ring, Token, Timeout) ->
    Ref = make_ref(),
    case tame_ring_nif:wait(Ring, Token, Ref) of
        wait ->
            receive
                {Ref, ready} -> made(Ring, tame_ring_nif:take(Ring, Token))
            after Timeout ->
                case tame_ring_nif:cancel(Ring, Token) of
                    ok ->
                        {error, deadline};
                    wait ->
                        %% Being sent just now, or in our queue already.
                        receive
                            {Ref, ready} -> made(Ring, tame_ring_nif:take(Ring, Token))
                        end
                end
            end;
        Reply ->
            made(Ring, Reply)
    end.

%% What the NIF has left to make. A reading names proxies that the VM holds until the term does.
made(Ring, {decode, Kind, Bytes}) ->
    decode(Ring, Kind, Bytes);
made(Ring, {decode, Kind, Bytes, Reading}) ->
    Reply = decode(Ring, Kind, Bytes),
    ok = tame_ring_nif:made(Reading),
    Reply;
made(_Ring, Reply) ->
    Reply.

%% Made as a message where it is not too large: the term stays where it was made, so that a caller
%% with a small heap is not collected to take it in. Else binary_to_term/2, which yields.
decode(Ring, Kind, Bytes) ->
    Ref = make_ref(),
    case tame_ring_nif:decode(Ref, Bytes) of
        sent ->
            receive
                {Ref, Term} -> {Kind, Term}
            end;
        wrong ->
            tame_ring_nif:bad_reply(Ring);
        large ->
            yielding(Ring, Kind, Bytes)
    end.

yielding(Ring, Kind, Bytes) ->
    Size = byte_size(Bytes),
    try binary_to_term(Bytes, [safe, used]) of
        {Term, Size} -> {Kind, Term};
        {_, _} -> tame_ring_nif:bad_reply(Ring)
    catch
        error:badarg -> tame_ring_nif:bad_reply(Ring)
    end.

%% Keeps the arguments alive until the reply is here: a proxy among them that no other term names
%% would otherwise be collected while the host may be about to return it.
keep_alive(Args, Reply) when is_list(Args) ->
    Reply.

%% The host is dead, or is to be treated so. Everybody who waits gets {error, {host_down, Reason}},
%% and every later call {error, closed}. The first reason stays.
-spec close(ring(), term()) -> ok.
close(Ring, Reason) ->
    tame_ring_nif:close(Ring, Reason).

%% The place in the tuple of the ring that has the fewest calls under way; of several, the first
%% from a place on that is the caller's scheduler's. A closed ring only where all are.
-spec choose(Rings :: tuple()) -> pos_integer().
choose(Rings) ->
    tame_ring_nif:choose(Rings).

%% The place in the tuple of the ring that a proxy belongs to. gone: it is a proxy of none of them,
%% so its host is dead. none: it is no proxy.
-spec home(Rings :: tuple(), reference()) -> pos_integer() | gone | none.
home(Rings, Ref) ->
    tame_ring_nif:home(Rings, Ref).

%% Whether the host lives: how many replies it has given so far, how many slots are in use, and for
%% how many milliseconds the oldest call that no worker of it is at has waited for one.
-spec pulse(ring()) ->
    {Answered :: non_neg_integer(), InUse :: non_neg_integer(), UntakenMs :: non_neg_integer()}.
pulse(Ring) ->
    tame_ring_nif:pulse(Ring).

%% Count proxies, at most 1024, to be lent to the host: send it the list. The VM holds each of them
%% until the host says, behind a reply that carries its reference, that it has used it. When such a
%% proxy is collected, the host is told by the ring. too_many: the host has not used 2,097,152 of
%% them, so end it.
-spec leases(ring(), 0..1024) -> [{Id :: pos_integer(), reference()}] | too_many.
leases(Ring, Count) ->
    tame_ring_nif:leases(Ring, Count).

%% For references that came another way (the control port): drops the VM's hold on these leases.
%% Call it when the term that carries them has been decoded and is held.
-spec used(ring(), [non_neg_integer()]) -> ok.
used(Ring, Ids) ->
    tame_ring_nif:used(Ring, Ids).

%% The leases behind these references that are still alive, by id; the VM holds each once more,
%% until the host lists it behind a reply or used/2 is called. For what a host is about to send
%% again. too_many: as for leases/2.
-spec hold(ring(), [reference()]) -> [pos_integer()] | too_many.
hold(Ring, Refs) ->
    tame_ring_nif:hold(Ring, Refs).

%% How many calls are not answered though their callers gave them up this many ms ago: those that a
%% worker of the host is at, and the others, which count only while no worker is at any call. Which
%% are which is the host's word.
-spec abandoned(ring(), non_neg_integer()) ->
    {Taken :: non_neg_integer(), Untouched :: non_neg_integer()}.
abandoned(Ring, Ms) ->
    tame_ring_nif:abandoned(Ring, Ms).

%% memory: the bytes that the term takes at most. names: hashes of the nodes that its pids, ports
%% and references name, each with its creation.
-type scanned() :: #{
    memory := non_neg_integer(), is_slow := boolean(), names := [non_neg_integer()]
}.

%% Looks at a term in external format without making it. {error, What}: it is no term, not a whole
%% one, compressed, one that no VM may decode (c_src/ring/etf_scan.h), or one with identifiers of
%% too many nodes.
-spec scan(binary()) -> {ok, scanned()} | {error, atom()}.
scan(Bytes) ->
    case tame_ring_nif:scan(Bytes) of
        {Memory, Pairs, KeyBytes, Names} ->
            IsSlow = Memory > ?SLOW_MEMORY orelse Pairs + KeyBytes > ?SLOW_KEYS,
            {ok, #{memory => Memory, is_slow => IsSlow, names => Names}};
        What ->
            {error, What}
    end.

%% The term of bytes that were scanned; error: an atom in it does not exist. One that is slow to
%% make is made on a dirty scheduler: the emulator puts all maps of a term in order in one go.
-spec read(binary(), scanned()) -> {ok, term()} | error.
read(Bytes, #{is_slow := true}) ->
    case tame_ring_nif:read(Bytes) of
        {ok, Term} -> {ok, Term};
        wrong -> error
    end;
read(Bytes, #{is_slow := false}) ->
    try binary_to_term(Bytes, [safe, used]) of
        {Term, Used} when Used =:= byte_size(Bytes) -> {ok, Term};
        {_, _} -> error
    catch
        error:badarg -> error
    end.

%% Whether a process or port of this node is alive, without waiting for it.
-spec is_alive(pid() | port()) -> boolean().
is_alive(PidOrPort) ->
    tame_ring_nif:is_alive(PidOrPort).

%% Sends a term that takes so much memory to a process of this node. A large one is copied on a
%% dirty scheduler: 1 MiB holds a scheduler for a millisecond, 256 MiB for 0.7 s.
-spec send(pid(), term(), non_neg_integer()) -> ok.
send(Pid, Message, Memory) when Memory > ?SLOW_MEMORY ->
    tame_ring_nif:send(Pid, Message);
send(Pid, Message, _Memory) ->
    Pid ! Message,
    ok.

%% The words that a term takes on a heap. none: this emulator cannot say it off the scheduler
%% (enif_term_size).
-spec flat_size(term()) -> non_neg_integer() | none.
flat_size(Term) ->
    tame_ring_nif:flat_size(Term).

%% Counters: calls, spins, spins_paid, polls_paid (after spinning, in turns with other processes),
%% waits (calls that waited in receive), lined (calls that waited for a slot), busy, bad_replies;
%% and what is now: slots_in_use, in_line, region_bytes (of requests), leases_unused, resources
%% (proxies that the host has used and the VM has not collected yet); and the geometry.
-spec info(ring()) -> #{atom() => non_neg_integer()}.
info(Ring) ->
    tame_ring_nif:info(Ring).
