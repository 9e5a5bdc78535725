%% The permits that the pools of all job libraries share, so that together they take no more cores
%% than one of them: c_include/tame/permits.h. A library is given them with the number of schedulers
%% (tame_job_call).
-module(tame_permits).

-export([shared/0]).
-nifs([shared/0]).

-on_load(load/0).

%% Without its native part, libraries have permits of their own, and the same results.
load() ->
    _ = erlang:load_nif(filename:rootname(tame_native:path("tame_permits.so")), 0),
    ok.

%% In a list, or none.
-spec shared() -> [reference()].
shared() ->
    [].
