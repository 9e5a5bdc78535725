%% What a call needs to know of its library, as tame_library keeps it.
-record(library, {
    module :: module(),
    %% of the hosts that are up, oldest first
    rings = {} :: tuple(),
    %% whether the library has been loaded into a host
    loaded = false :: boolean(),
    %% each call says who makes it
    wants_caller = false :: boolean(),
    %% it is noted which processes a call names
    sends = false :: boolean(),
    %% a call goes to the host whose resources it names
    resources = false :: boolean(),
    deadline_ms = infinity :: timeout(),
    wait_ms = 0 :: non_neg_integer()
}).
