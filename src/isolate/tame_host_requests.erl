%% What a host asks of the VM while its library is called: answers to its queries, and messages of
%% the library that are to be delivered. Nothing here waits, neither for a process nor for a port.
-module(tame_host_requests).

-export([new/1]).
-export([answer/4]).
-export([answered/3]).
-export([deliver/4]).
-export([looked/2]).
-export([down/2]).
-export([closed/1]).
-export([leases/1]).

-export_type([state/0]).

-define(LEASES, 256).
%% Each takes some 300 bytes.
-define(MONITORS_MAX, 500000).
-define(PORT_BYTES_MAX, 1 bsl 20).
%% Questions that wait for a process of the VM.
-define(ASKED_MAX, 1000).
-define(TOO_MANY_LEASES, "a query for leases, with two million that it has not used").
%% Lines of a host's log, in each second.
-define(LOGS_MAX, 10).

-record(requests, {
    group :: tame_group:group(),
    max_atoms :: non_neg_integer(),
    %% Each monitor twice: by its reference, and by the number that the host gave it.
    monitors = #{} :: #{reference() => integer(), integer() => reference()},
    %% Queries whose answer a process of the VM has to say.
    asked = #{} :: #{reference() => {non_neg_integer(), pid()}},
    unread = tame_unread:new() :: tame_unread:unread(),
    logs = {0, 0} :: {Second :: integer(), Count :: non_neg_integer()}
}).

-opaque state() :: #requests{}.

-spec new(tame_host:spec()) -> state().
new(#{group := Group, options := #{max_atoms := Most}}) ->
    #requests{group = Group, max_atoms = Most}.

%% ---- queries --------------------------------------------------------------------------------

%% The frames that go to the host for the query of this number; the last is the answer, if there is
%% one yet.
-spec answer(non_neg_integer(), tame_control:query(), none | tame_ring:ring(), state()) ->
    {[term()], state()} | {bad, iolist()}.
answer(Id, Query, Ring, Requests) ->
    case answer(Query, Ring, Requests) of
        {bad, _} = Bad ->
            Bad;
        {{ask, _Pid}, _, #requests{asked = Asked}} when map_size(Asked) >= ?ASKED_MAX ->
            {bad, io_lib:format("a query, with ~b that wait for an answer", [?ASKED_MAX])};
        {{ask, Pid}, Frames, Later} ->
            {Frames, ask(Id, Pid, Later)};
        {Answer, Frames, Later} ->
            {Frames ++ [{answer, Id, Answer}], Later}
    end.

answer(leases, Ring, Requests) when Ring =/= none ->
    case leases(Ring) of
        too_many -> {bad, ?TOO_MANY_LEASES};
        Leases -> {ok, [Leases], Requests}
    end;
%% The host names them by reference: those are alive since the frame was read.
answer({hold, _Call, Refs}, Ring, Requests) when Ring =/= none ->
    case tame_ring:hold(Ring, Refs) of
        too_many -> {bad, ?TOO_MANY_LEASES};
        Ids -> {Ids, [], Requests}
    end;
answer({flat_size, Term}, _Ring, Requests) ->
    case tame_ring:flat_size(Term) of
        none -> {bad, "a query for flat_size, which a host of this OTP does not ask"};
        Words -> {Words, [], Requests}
    end;
answer(Early, none, _Requests) when Early =:= leases; element(1, Early) =:= hold ->
    {bad, "a query that may not come before its ring"};
answer({monitor, Id, _Pid}, _Ring, #requests{monitors = Monitors}) when is_map_key(Id, Monitors) ->
    {bad, io_lib:format("monitor ~b, which it has already", [Id])};
answer({monitor, Id, Pid}, _Ring, #requests{monitors = Monitors} = Requests) ->
    %% No `down' follows for a process that is dead already: the answer says so. Else it is the
    %% reference, which the library may be shown. With too many others nothing is watched: a library
    %% that takes the process for dead is safe.
    case map_size(Monitors) < 2 * ?MONITORS_MAX andalso tame_ring:is_alive(Pid) of
        true ->
            Ref = monitor(process, Pid),
            {Ref, [], Requests#requests{monitors = Monitors#{Ref => Id, Id => Ref}}};
        false ->
            {false, [], Requests}
    end;
answer({demonitor, Id}, _Ring, #requests{monitors = Monitors} = Requests) ->
    case Monitors of
        #{Id := Ref} ->
            Others = maps:without([Id, Ref], Monitors),
            {demonitor(Ref, [flush, info]), [], Requests#requests{monitors = Others}};
        #{} ->
            {false, [], Requests}
    end;
answer(Query, _Ring, Requests) ->
    {answer(Query, Requests), [], Requests}.

answer({existing_atom, Name}, _Requests) ->
    existing_atom(Name) =/= none;
answer({new_atoms, Names}, #requests{group = Group, max_atoms = Most}) ->
    new_atoms(Names, Group, Most);
answer({phash2, Term}, _Requests) ->
    erlang:phash2(Term);
answer({whereis, Name}, #requests{group = Group}) ->
    whereis_given(existing_atom(Name), Group);
answer({alive, PidOrPort}, _Requests) ->
    tame_ring:is_alive(PidOrPort);
answer({port_command, Port, Data}, #requests{group = Group}) ->
    tame_given:is_given(Group, Port) andalso port_took(Port, Data);
answer(sync, _Requests) ->
    ok;
answer(make_ref, _Requests) ->
    make_ref();
answer({unique_integer, Modifiers}, _Requests) ->
    erlang:unique_integer(Modifiers).

%% References for the host to name native resources by.
-spec leases(tame_ring:ring()) -> {leases, [{pos_integer(), reference()}]} | too_many.
leases(Ring) ->
    case tame_ring:leases(Ring, ?LEASES) of
        too_many -> too_many;
        Leases -> {leases, Leases}
    end.

new_atom(Name, New) ->
    case existing_atom(Name) of
        none -> [Name | New];
        _ -> New
    end.

existing_atom(Name) ->
    try
        binary_to_existing_atom(Name, utf8)
    catch
        error:_ -> none
    end.

%% Atoms are never garbage-collected: a library that makes them without end must not fill the VM's
%% table. Atoms that exist already cost nothing, and one that is named twice is one. Not by a
%% comprehension: each exception would look through the stack of all names before it.
new_atoms(Names, Group, Most) ->
    New = lists:foldl(fun new_atom/2, [], lists:usort(Names)),
    case tame_group:count_atoms(Group, length(New)) > Most of
        true ->
            _ = tame_group:count_atoms(Group, -length(New)),
            false;
        false ->
            _ = [binary_to_atom(Name, utf8) || Name <- New],
            ok
    end.

%% The library is given what is found, unless that is a process of the system: which says of itself
%% whether it is one, when it runs.
whereis_given(none, _Group) ->
    undefined;
whereis_given(Name, Group) ->
    Found = whereis(Name),
    case is_pid(Found) andalso not tame_given:is_given(Group, Found) of
        true ->
            {ask, Found};
        false ->
            _ = is_port(Found) andalso tame_given:note(Group, Found),
            Found
    end.

%% Has a process asked whether it is private, for the query of this number. answered/3 follows.
ask(Id, Pid, #requests{asked = Asked} = Requests) ->
    Ref = make_ref(),
    ok = tame_given:ask_private(Ref, Pid),
    Requests#requests{asked = Asked#{Ref => {Id, Pid}}}.

%% {tame_private, Ref, IsPrivate} has come: the query's number and its answer.
-spec answered(reference(), boolean(), state()) -> {non_neg_integer(), term(), state()} | error.
answered(Ref, IsPrivate, #requests{group = Group, asked = Asked} = Requests) ->
    case maps:take(Ref, Asked) of
        {{Id, _Pid}, Others} when IsPrivate ->
            {Id, undefined, Requests#requests{asked = Others}};
        {{Id, Pid}, Others} ->
            ok = tame_given:note(Group, Pid),
            {Id, Pid, Requests#requests{asked = Others}};
        error ->
            error
    end.

%% A port that is busy takes nothing. One that is not takes all at once: its driver copies it, which
%% holds the scheduler for 5 ms where it is 1 MiB. iolist_to_binary/1 yields.
port_took(Port, Data) ->
    try
        Bytes = iolist_to_binary(Data),
        byte_size(Bytes) =< ?PORT_BYTES_MAX andalso port_command(Port, Bytes, [nosuspend])
    catch
        error:_ -> false
    end.

%% ---- messages -------------------------------------------------------------------------------

%% Only to processes that the library was given, and that read what they get. flood: it was not
%% sent, and no other is to be.
-spec deliver(pid(), term(), non_neg_integer(), state()) -> {ok | flood, state()}.
deliver(Pid, Message, Memory, #requests{group = Group, unread = Unread} = Requests) ->
    case node(Pid) =:= node() andalso tame_given:is_given(Group, Pid) of
        true ->
            {Outcome, Later} = tame_unread:sent(Pid, Memory, Unread),
            _ = Outcome =:= ok andalso tame_ring:send(Pid, Message, Memory),
            {Outcome, Requests#requests{unread = Later}};
        false ->
            Format = "a message to ~p, which it was not given, is dropped",
            {ok, log(Format, [Pid], Requests)}
    end.

%% How many messages wait for a process that has got some.
-spec looked(tame_unread:seen(), state()) -> state().
looked(Seen, #requests{unread = Unread} = Requests) ->
    Requests#requests{unread = tame_unread:looked(Seen, Unread)}.

%% At most ?LOGS_MAX lines a second.
log(Format, Args, #requests{group = Group, logs = {Second, Count}} = Requests) ->
    Logs =
        case erlang:monotonic_time(second) of
            Second -> {Second, Count + 1};
            Now -> {Now, 1}
        end,
    _ = element(2, Logs) =< ?LOGS_MAX andalso
        logger:warning("tame_host of ~tp: " ++ Format, [Group | Args]),
    Requests#requests{logs = Logs}.

%% ---- monitors -------------------------------------------------------------------------------

%% A 'DOWN' has come: the number that the host knows this monitor by.
-spec down(reference(), state()) -> {integer(), state()} | error.
down(Ref, #requests{monitors = Monitors} = Requests) ->
    case maps:take(Ref, Monitors) of
        {Id, Others} -> {Id, Requests#requests{monitors = maps:remove(Id, Others)}};
        error -> error
    end.

%% The host is gone.
-spec closed(state()) -> state().
closed(#requests{monitors = Monitors} = Requests) ->
    Refs = [Ref || Ref <- maps:keys(Monitors), is_reference(Ref)],
    lists:foreach(fun(Ref) -> demonitor(Ref, [flush]) end, Refs),
    Requests#requests{monitors = #{}, asked = #{}}.
