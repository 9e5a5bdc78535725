%% What the process of a host hears from the OS process, frame by frame, what it sends there, and
%% what it tells tame_hosts. A frame changes the state or is refused with a sentence; which state of
%% tame_host follows is tame_host's to decide.
-module(tame_host_frames).

-include("tame_host.hrl").

-export([frame/3]).
-export([names_resources/1]).
-export([send/2]).
-export([advanced/1]).
-export([named/1]).
-export([status/2]).
-export([tell/2]).

-export_type([outcome/0]).

%% up: the host has all its libraries. bad: it said what no host says in this state. kill: it is to
%% end for another reason.
-type outcome() ::
    {ok, #host{}}
    | {up, #host{}}
    | {refused, atom(), unicode:chardata()}
    | {bad, iolist()}
    | {kill, term(), #host{}}.

%% Whether a frame, or its answer, has terms in it that keep resources until this process collects
%% its heap. Leases keep those that the host is going to name by them.
-spec names_resources(tame_control:frame()) -> boolean().
names_resources({ring, _}) -> true;
names_resources({send, _, _, [_ | _], _}) -> true;
names_resources({query, _, leases}) -> true;
names_resources({query, _, {hold, _, _}}) -> true;
names_resources(_) -> false.

-spec frame(tame_control:frame(), atom(), #host{}) -> outcome().
frame({hello, OsPid}, starting, #host{os_pid = 0, spec = #{options := Options}} = Host) ->
    case tame_host_start:hello(OsPid, tame_host_port:guard_pid(Host#host.port), Options) of
        {ok, Ring} -> {ok, send(Ring, named(Host#host{os_pid = OsPid}))};
        {bad, Sentence} -> {bad, Sentence}
    end;
frame({ring, Fd}, starting, #host{os_pid = OsPid, ring = none} = Host) when OsPid > 0 ->
    case tame_host_start:ring(OsPid, Fd, Host#host.spec) of
        {ok, Ring, Leases} ->
            Long = tame_host_port:long(Host#host.port),
            answered(starting, send(Leases, Host#host{ring = Ring, port = Long}));
        {refused, Reason, Text} ->
            {refused, Reason, Text}
    end;
frame({ring_refused, Text}, starting, _Host) ->
    {refused, no_ring, tame_control:printable(Text, 1000)};
frame({loaded, Functions, Info}, State, #host{libraries = Libraries} = Host) when
    State =:= starting; State =:= up; State =:= draining
->
    case tame_host_libraries:loaded(Functions, Info, Libraries) of
        {ok, Later} -> answered(State, Host#host{libraries = Later});
        {changed, Library} -> changed(State, Library, Host);
        unasked -> {bad, "loaded, for a library that it was not to load"}
    end;
frame({refused, Reason, Text}, starting, _Host) ->
    {refused, Reason, tame_control:printable(Text, 4000)};
frame({refused, Reason, Text}, State, #host{libraries = Libraries} = Host) when
    State =:= up; State =:= draining
->
    case tame_host_libraries:refused(Libraries) of
        {ok, Library, Later} ->
            Why = #{reason => Reason, text => tame_control:printable(Text, 4000)},
            answered(State, without(Library, Why, Host#host{libraries = Later}));
        unasked ->
            {bad, "refused, for a library that it was not to load"}
    end;
frame({unloaded, Number}, State, #host{libraries = Libraries} = Host) when
    State =:= up; State =:= draining
->
    case tame_host_libraries:unloaded(Number, Libraries) of
        {ok, Later} -> answered(State, Host#host{libraries = Later});
        unasked -> {bad, "unloaded, for a library that it was not to unload"}
    end;
frame({query, Id, Query}, State, Host0) when State =/= killing ->
    %% The library may ask before this process was told that the node has a new name.
    #host{ring = Ring, requests = Requests} = Host = named(Host0),
    case tame_host_requests:answer(Id, Query, Ring, Requests) of
        {bad, Sentence} -> {bad, Sentence};
        {Frames, Later} -> {ok, lists:foldl(fun send/2, Host#host{requests = Later}, Frames)}
    end;
frame({send, Pid, Message, Leases, Memory}, _State, #host{ring = Ring} = Host) ->
    {Outcome, Later} = tame_host_requests:deliver(Pid, Message, Memory, Host#host.requests),
    _ = Ring =/= none andalso tame_ring:used(Ring, Leases),
    case Outcome of
        ok -> {ok, Host#host{requests = Later}};
        flood -> {kill, {flood, Pid}, Host#host{requests = Later}}
    end;
frame({pong, _}, _State, #host{beat = Beat} = Host) when Beat =/= none ->
    {ok, Host#host{beat = tame_heartbeat:pong(Beat)}};
frame({pong, _}, _State, Host) ->
    {ok, Host};
frame({ended, Ended}, _State, #host{port = Port} = Host) ->
    %% The guard's last word, if it is the guard's.
    {ok, Host#host{ended = Ended, port = tame_host_port:expect_end(Ended, Port)}};
frame({bad, Sentence}, _State, _Host) ->
    {bad, Sentence};
frame(Frame, State, _Host) ->
    {bad, io_lib:format("~tp, which may not come in the state ~p", [element(1, Frame), State])}.

%% ---- libraries ------------------------------------------------------------------------------

%% Asks the host for the next change of its libraries. up: it has what it is to have.
-spec advanced(#host{}) -> {ok | up, #host{}}.
advanced(#host{spec = #{libraries := Wanted, options := Options}} = Host) ->
    #{start_ms := Ms} = Options,
    case tame_host_libraries:next(Wanted, now_ms(), Ms, Host#host.libraries) of
        {send, Frame, Later} ->
            {ok, send(tame_host_start:with_settings(Frame), Host#host{libraries = Later})};
        waits ->
            {ok, Host};
        done ->
            {up, Host}
    end.

%% The host has answered.
answered(starting, Host) ->
    advanced(Host);
answered(up, Host) ->
    tell(status(up, Host), Host),
    {_, Next} = advanced(Host),
    {ok, Next};
answered(draining, Host) ->
    {ok, Host}.

changed(starting, _Library, _Host) ->
    tame_host_start:changed();
changed(_State, Library, Host) ->
    {refused, Reason, Text} = tame_host_start:changed(),
    _ = without(Library, #{reason => Reason, text => Text}, Host),
    {bad, "other functions of a library than it was probed with"}.

%% It is not asked for again, until tame_hosts says so.
without(#{key := Key} = Library, Why, #host{spec = #{libraries := Wanted} = Spec} = Host) ->
    tell({not_loaded, Key, Why}, Host),
    Host#host{spec = Spec#{libraries := Wanted -- [Library]}}.

%% Tells the host the name of this node, if that is news.
-spec named(#host{}) -> #host{}.
named(#host{named = Named, port = Port} = Host) ->
    {Node, Creation} = Name = {node(), erlang:system_info(creation)},
    case Name =/= Named andalso tame_host_port:is_open(Port) of
        true -> send({node, Node, Creation}, Host#host{named = Name});
        false -> Host
    end.

%% ---- what is said ---------------------------------------------------------------------------

%% What the port does not take waits in the outbox (tame_host_port).
-spec send(term(), #host{}) -> #host{}.
send(Frame, #host{port = Port} = Host) ->
    Host#host{port = tame_host_port:send(Frame, Port)}.

%% How tame_hosts knows a host in this state.
-spec status(atom(), #host{}) ->
    {up, tame_ring:ring(), tame_host_libraries:libraries()} | failed | down.
status(up, #host{ring = Ring, libraries = Libraries}) ->
    {up, Ring, tame_host_libraries:loaded_all(Libraries)};
status(failed, _Host) -> failed;
status(_State, _Host) -> down.

%% A tame_hosts that takes the place of another asks again (announce/1).
-spec tell(term(), #host{}) -> ok.
tell(What, #host{spec = #{group := Group}}) ->
    tame_hosts:tell(Group, {tame_host, self(), What}).

now_ms() ->
    erlang:monotonic_time(millisecond).
