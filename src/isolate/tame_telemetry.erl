%% Events for who has the application telemetry; without it they are nothing, and tame does not depend on it.
%%
%%     [tame, host, up]       #{start_ms}      #{library, os_pid}
%%     [tame, host, down]     #{up_ms}         #{library, os_pid, why}      why: #{signal => sigsegv}, ...
%%     [tame, pool, refused]  #{waiting}       #{library, reason}           a caller got busy or deadline
-module(tame_telemetry).

-export([execute/3]).

-spec execute([atom()], #{atom() => number()}, map()) -> ok.
execute(Event, Measurements, Metadata) ->
    %% By a variable: Dialyzer would look for it.
    Telemetry = telemetry,
    case erlang:function_exported(Telemetry, execute, 3) of
        true -> Telemetry:execute(Event, Measurements, Metadata);
        false -> ok
    end.
