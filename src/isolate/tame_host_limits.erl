%% The bounds of a host (the option limits): what each may be, how the program is told of them, and
%% which one a host that ended had reached. The program sets them (c_src/host/life/limits.h).
-module(tame_host_limits).

-export([check/1]).
-export([expected/0]).
-export([args/1]).
-export([reached/3]).
-export([name/1]).
-export([text/1]).

-export_type([limits/0]).
-export_type([reached/0]).

-import(tame_text, [text/2]).

-type limits() :: #{
    %% Memory that the library may take, in MiB.
    memory_mb => pos_integer(),
    %% CPU time that a host may use, from its start on.
    cpu_seconds => pos_integer(),
    %% Files that the library may have open.
    open_files => pos_integer(),
    %% Threads that the library may have.
    threads => non_neg_integer(),
    %% The priority of a host, as nice(1) counts it.
    nice => -20..19,
    %% The CPUs that a host may run on: that number of the VM's, the lowest first, or these.
    cpus => pos_integer() | [non_neg_integer(), ...]
}.

%% A limit that was reached, and its value.
-type reached() :: {memory_mb | cpu_seconds | open_files | threads, non_neg_integer()}.

-define(CPU_MAX, 1023).

%% Each once: its name, the check of a value, and what is expected.
table() ->
    [
        whole(memory_mb, 1, 1 bsl 24),
        whole(cpu_seconds, 1, 1 bsl 31),
        whole(open_files, 1, 1 bsl 20),
        whole(threads, 0, 1 bsl 15),
        whole(nice, -20, 19),
        {cpus, fun is_cpus/1, text("a number of CPUs from 1 to ~b, or a list of them", [?CPU_MAX])}
    ].

whole(Name, Least, Most) ->
    {Name, fun(Value) -> is_integer(Value) andalso Value >= Least andalso Value =< Most end,
        text("a whole number from ~b to ~b", [Least, Most])}.

is_cpus(Cpus) when length(Cpus) > 0, length(Cpus) =< ?CPU_MAX ->
    lists:all(fun is_cpu/1, Cpus) andalso length(lists:usort(Cpus)) =:= length(Cpus);
is_cpus(Count) ->
    is_integer(Count) andalso Count >= 1 andalso Count =< ?CPU_MAX.

is_cpu(Cpu) ->
    is_integer(Cpu) andalso Cpu >= 0 andalso Cpu =< ?CPU_MAX.

%% Whether a value of the option is right; if not, what is expected.
-spec check(term()) -> true | {false, string()}.
check(Limits) when is_map(Limits) ->
    case lists:append([refusal(Name, Value) || {Name, Value} <- maps:to_list(Limits)]) of
        [] -> true;
        [Expected | _] -> {false, Expected}
    end;
check(_Limits) ->
    {false, expected()}.

-spec expected() -> string().
expected() ->
    text("a map with some of ~ts", [names()]).

names() ->
    lists:join(", ", [atom_to_list(Name) || {Name, _, _} <- table()]).

refusal(Name, Value) ->
    case lists:keyfind(Name, 1, table()) of
        {Name, Is, Expected} ->
            case Is(Value) of
                true -> [];
                false -> [text("~tp to be ~ts", [Name, Expected])]
            end;
        false ->
            [expected()]
    end.

%% What stands on the program's command line.
-spec args(limits()) -> [string()].
args(Limits) ->
    lists:append([arg(Name, Value) || {Name, Value} <- maps:to_list(Limits)]).

arg(memory_mb, Value) -> ["--memory-mb", integer_to_list(Value)];
arg(cpu_seconds, Value) -> ["--cpu-seconds", integer_to_list(Value)];
arg(open_files, Value) -> ["--open-files", integer_to_list(Value)];
arg(threads, Value) -> ["--threads", integer_to_list(Value)];
arg(nice, Value) -> ["--nice", integer_to_list(Value)];
arg(cpus, Count) when is_integer(Count) -> ["--cpus", integer_to_list(Count)];
arg(cpus, Cpus) -> ["--cpu-list", lists:append(lists:join(",", [integer_to_list(C) || C <- Cpus]))].

%% Why a host is down, with the limit in it that its guard says it had reached. A limit that nobody
%% has set was not reached, even if the guard says so.
-spec reached(tame_host:why(), map(), limits()) -> tame_host:why().
reached(Why, #{limit := Limit}, Limits) ->
    Option = option(Limit),
    case Limits of
        #{Option := Value} -> Why#{limit => {Option, Value}};
        _ -> Why
    end;
reached(Why, _Ended, _Limits) ->
    Why.

option(memory) -> memory_mb;
option(cpu) -> cpu_seconds;
option(Limit) -> Limit.

%% As callers see it: {tame, {limit, Name}}.
-spec name(reached()) -> memory | cpu | open_files | threads.
name({memory_mb, _}) -> memory;
name({cpu_seconds, _}) -> cpu;
name({Name, _}) -> Name.

-spec text(reached()) -> string().
text({Option, Value}) ->
    text("reached its limit (~p => ~b)", [Option, Value]).
