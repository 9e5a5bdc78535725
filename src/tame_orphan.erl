%% The name of a registered process, when its supervisor starts the next one: it may not be free.
%% Where a supervisor was killed, those below it end in their own time; where the machine lets a
%% thread stand, a process that was killed has its name for longer than its supervisor takes to fail
%% as often as it may.
-module(tame_orphan).

-export([wait/1]).

%% Longer than a host takes to end (tame_host).
-define(WAIT_MS, 15000).

%% Until nobody has the name, or the process has ended, but not for longer than anything takes to
%% end: start_link fails then.
-spec wait(atom() | pid()) -> ok.
wait(Process) ->
    Monitor = monitor(process, Process),
    receive
        {'DOWN', Monitor, process, _, _} -> ok
    after ?WAIT_MS ->
        true = demonitor(Monitor, [flush]),
        ok
    end.
