%% The frames of both sides from the start of a host until its libraries are loaded, which
%% tame_host_libraries goes on with.
%%
%%     VM                       host
%%                              {hello, OsPid, ...}
%%     {ring, Geometry}
%%                              {ring, Fd}
%%     {leases, ...}
%%     {load, Path, ...}
%%                              {loaded, Functions, ...}
-module(tame_host_start).

-export([hello/3]).
-export([ring/3]).
-export([with_settings/1]).
-export([clock/0]).
-export([changed/0]).
-export([not_loaded_text/2]).

-type refusal() :: {refused, atom(), iodata()}.

%% The most that a ring takes besides its areas: 1024 slots of 64 KiB, and its header.
-define(SLOTS_BYTES, 1 bsl 27).
%% How often the clocks of the VM and of the system are read side by side.
-define(OFFSET_LOOKS, 10).

%% The answer to a host's hello: which ring it is to make.
-spec hello(pos_integer(), non_neg_integer(), tame_isolate_options:options()) ->
    {ok, {ring, map()}} | {bad, iodata()}.
hello(OsPid, GuardPid, #{area_bytes := AreaBytes} = Options) ->
    case tame_os_process:is_child(OsPid, GuardPid) of
        true ->
            Geometry = maps:with([slots, slot_bytes, workers], Options),
            {ok, {ring, Geometry#{request_bytes => AreaBytes, reply_bytes => AreaBytes}}};
        false ->
            Format = "hello as OS process ~b, which is not the one that was started",
            {bad, io_lib:format(Format, [OsPid])}
    end.

%% Opens the ring that the host has made; the frame that it is sent then.
-spec ring(pos_integer(), non_neg_integer(), tame_host:spec()) ->
    {ok, tame_ring:ring(), term()} | refusal().
ring(OsPid, Fd, #{options := Options}) ->
    #{area_bytes := AreaBytes} = Options,
    RingOptions = maps:with([max_waiting, spin_us, max_reply_bytes], Options),
    case tame_ring:open(OsPid, Fd, RingOptions#{max_bytes => 2 * AreaBytes + ?SLOTS_BYTES}) of
        {ok, Ring} ->
            {leases, _} = Leases = tame_host_requests:leases(Ring),
            {ok, Ring, Leases};
        {error, Why} ->
            {refused, no_ring, io_lib:format("its memory: ~p", [Why])}
    end.

%% A frame that has a library loaded (tame_host_libraries), with what the VM says of itself.
-spec with_settings(term()) -> term().
with_settings({load, Path, Module, LoadInfo, Settings}) ->
    {load, Path, Module, LoadInfo, maps:merge(settings(), Settings)};
with_settings(Frame) ->
    Frame.

settings() ->
    #{
        otp_release => list_to_binary(erlang:system_info(otp_release)),
        erts => list_to_binary(erlang:system_info(version)),
        schedulers => erlang:system_info(schedulers),
        async_threads => erlang:system_info(thread_pool_size),
        time_offset_ns => erlang:time_offset(nanosecond),
        monotonic_offset_ns => monotonic_offset_ns(?OFFSET_LOOKS)
    }.

%% The frame that is sent again while the host lives: after the wall clock was set, the VM corrects
%% its own by up to 1 % until it has caught up, and the system's goes on as before.
-spec clock() -> {clock, integer()}.
clock() ->
    {clock, monotonic_offset_ns(?OFFSET_LOOKS)}.

%% The host's clock is not behind the VM's then: of each two readings the system's is the first, and
%% the two that were closest count.
monotonic_offset_ns(0) ->
    infinity;
monotonic_offset_ns(Looks) ->
    System = os:perf_counter(nanosecond),
    min(erlang:monotonic_time(nanosecond) - System, monotonic_offset_ns(Looks - 1)).

%% A library whose functions are not those that its module was bound to.
-spec changed() -> refusal().
changed() ->
    {refused, changed,
        "its functions are not those that it had when the module was isolated: "
        "restore it and isolate it again"}.

%% Why it ended before that.
-spec not_loaded_text(tame_host:why(), tame_isolate_options:options()) -> iodata().
not_loaded_text(#{killed := late_start}, #{start_ms := StartMs}) ->
    io_lib:format("the host did not load the library within ~b ms (start_ms)", [StartMs]);
not_loaded_text(#{killed := {bad_frame, Sentence}}, _Options) ->
    io_lib:format("the host wrote ~ts", [Sentence]);
not_loaded_text(#{limit := Limit}, _Options) ->
    ["the host ", tame_host_limits:text(Limit), " while it loaded the library"];
not_loaded_text(Why, _Options) ->
    io_lib:format("the host ended while it loaded the library: ~0p", [Why]).
