%% The CPU time that an OS process has used (c_src/natives/cpu/cpu_nif.c).
-module(tame_cpu).

-export([process_ns/1]).

-nifs([process_ns/1]).

-on_load(load/0).

load() ->
    erlang:load_nif(filename:rootname(tame_labs_native:path("tame_cpu.so")), 0).

%% In nanoseconds, all its threads together, those that have ended included; unknown of a process
%% that is not there, or where the system does not say. Raises badarg when the argument is no number
%% above 0.
%%
%%     1> tame_cpu:process_ns(list_to_integer(os:getpid())).
%%     331462198
-spec process_ns(pos_integer()) -> non_neg_integer() | unknown.
process_ns(_OsPid) ->
    erlang:nif_error(nif_not_loaded).
