%% Binds the NIF that the latency lab isolates (c_src/natives/echo/echo_isolated_nif.c); nothing
%% else. Of its own it runs in the VM, as tame_echo_nif:echo/1 does.
-module(tame_echo_isolated).

-export([echo/1]).

-nifs([echo/1]).

-on_load(load/0).

load() ->
    erlang:load_nif(filename:rootname(tame_labs_native:path("tame_echo_isolated.so")), 0).

-spec echo(Term) -> Term.
echo(_Term) ->
    erlang:nif_error(nif_not_loaded).
