%% One isolated module, as tame_registry keeps it.
-record(entry, {
    module :: module(),
    %% the group whose hosts it uses, and when it joined (tame_group)
    group :: tame_group:group(),
    joined :: integer(),
    options :: tame_isolate_options:options(),
    %% the module's own beam, and where it lies
    beam_file :: file:filename(),
    own_beam :: binary(),
    %% of its bound code: that which is about to be loaded, and what was, the newest first
    coming = none :: none | tame_versions:version(),
    versions = [] :: [tame_versions:version()],
    phase = binding :: binding | bound | leaving,
    %% what the module asked erlang:load_nif/2 for last
    load_args = none :: none | {file:filename_all(), term()},
    %% that hosts are to have loaded: one, or two while code of the version before runs
    libraries = [] :: [tame_host_libraries:library()],
    %% that its group has made while it was the first of it
    atom_count = 0 :: non_neg_integer()
}).
