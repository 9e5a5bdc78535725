%% One isolated module, as tame_registry keeps it.
-record(entry, {
    module :: module(),
    options :: tame_isolation:options(),
    %% of the library's own table, in its order
    functions :: [{atom(), arity()}],
    %% the module's own beam, and where it lies
    file :: file:filename(),
    beam :: binary(),
    %% of the bound code, as Module:module_info(md5) says it
    bound_md5 :: binary(),
    phase = binding :: binding | bound | leaving,
    load = none :: none | {file:filename_all(), term()},
    atoms = 0 :: non_neg_integer()
}).
