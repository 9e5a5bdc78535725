%% Emits telemetry events if the module telemetry is loaded; otherwise does nothing. Tame
%% does not depend on it. Each event's metadata has the library's module as `library', and besides:
%%
%%     event                     measurements    metadata
%%     [tame, host, up]          #{start_ms}     #{os_pid}
%%     [tame, host, down]        #{up_ms}        #{os_pid, why}    why: #{signal => sigsegv}, ...,
%%                                               and limit => {memory_mb, 64} if that was reached
%%     [tame, hosts, refused]    #{waiting}      #{reason}         busy, deadline or no_host
-module(tame_telemetry).

-export([execute/3]).
-export([is_loaded/0]).

-spec execute([atom()], #{atom() => number()}, map()) -> ok.
execute(Event, Measurements, Metadata) ->
    %% By a variable: Dialyzer would look for it.
    Telemetry = telemetry,
    case is_loaded() of
        true -> Telemetry:execute(Event, Measurements, Metadata);
        false -> ok
    end.

%% For those who would have to measure something for an event.
-spec is_loaded() -> boolean().
is_loaded() -> erlang:function_exported(telemetry, execute, 3).
