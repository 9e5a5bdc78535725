%% The state of a host's process: tame_host decides by it, tame_host_frames changes it by what the
%% OS process says.
-record(host, {
    spec :: tame_host:spec(),
    port = tame_host_port:none() :: tame_host_port:state(),
    %% As the host says; a child of the guard.
    os_pid = 0 :: non_neg_integer(),
    ring = none :: none | tame_ring:ring(),
    libraries = tame_host_libraries:new() :: tame_host_libraries:state(),
    beat = none :: none | tame_heartbeat:state(),
    requests :: tame_host_requests:state(),
    %% The name that the host knows this node by.
    named :: undefined | {node(), non_neg_integer()},
    backoff = tame_backoff:new() :: tame_backoff:state(),
    starts = 0 :: non_neg_integer(),
    start_at = 0 :: integer(),
    up_since = never :: never | integer(),
    drain_until = 0 :: integer(),
    stopping = false :: boolean(),
    %% Why it is being killed, and in which state that was.
    killed = none :: term(),
    killed_in = starting :: starting | up | draining | leaving,
    %% What the guard said of its end; text: why it did not start.
    ended = #{} :: map(),
    reports = tame_crash_report:new() :: tame_crash_report:state()
}).
