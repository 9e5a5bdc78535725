%% One isolated module, as tame_registry keeps it.
-record(entry, {
    module :: module(),
    options :: tame_isolate_options:options(),
    %% of the library's own table, in its order
    functions :: [{atom(), arity()}],
    %% the module's own beam, and where it lies
    beam_file :: file:filename(),
    own_beam :: binary(),
    %% of the bound code, as Module:module_info(md5) says it
    bound_md5 :: binary(),
    phase = binding :: binding | bound | leaving,
    %% what the module asked erlang:load_nif/2 for
    load_args = none :: none | {file:filename_all(), term()},
    %% that the library has made, in all its hosts
    atom_count = 0 :: non_neg_integer()
}).
