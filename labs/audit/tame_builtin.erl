%% How the NIFs of libraries that are part of the emulator are declared
%% (c_src/natives/audit/builtin_nif.c).
-module(tame_builtin).

-export([table/1]).

-nifs([table/1]).

-on_load(load/0).

load() ->
    erlang:load_nif(filename:rootname(tame_labs_native:path("tame_builtin.so")), 0).

%% Names with arities and flags (0 normal, 1 dirty CPU, 2 dirty I/O); undefined where the emulator
%% has no such library.
-spec table(module()) -> [{atom(), arity(), 0..2}] | undefined.
table(_Module) ->
    erlang:nif_error(nif_not_loaded).
