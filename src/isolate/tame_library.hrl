%% What a call needs to know of its library, as tame_library keeps it.
-record(library, {
    %% by which the module's code asks for it: tame_versions
    key :: tame_library:key(),
    %% to the hosts that are up and have loaded it, oldest first
    route :: tame_ring:route(),
    module :: module(),
    group :: tame_group:group(),
    %% of its functions: the first one's number in its hosts
    base = 0 :: non_neg_integer(),
    %% whether the library has been loaded into a host
    loaded = false :: boolean(),
    %% each call says who makes it
    wants_caller = false :: boolean(),
    %% it is noted which processes a call names
    sends = false :: boolean(),
    %% it may have several hosts, and a call goes to the one whose resources it names
    resources = false :: boolean(),
    deadline_ms = infinity :: timeout(),
    wait_ms = 0 :: non_neg_integer()
}).
