%% Many isolated calls, and the memory that they leave behind. It runs in a VM of its own, where the
%% application tame runs.
-module(tame_many_calls).

-export([run/2]).
-export([memory/0]).

%% vm_bytes: what the VM says of itself (erlang:memory(total)); hosts_bytes: what the system says of
%% all hosts, resident.
-type memory() :: #{
    vm_bytes := non_neg_integer(),
    hosts_bytes := non_neg_integer(),
    atoms := pos_integer(),
    processes := pos_integer()
}.
-export_type([memory/0]).

%% Makes Count calls, with binaries of these sizes by turns, and returns what they took.
-spec run(Count :: non_neg_integer(), Sizes :: [non_neg_integer(), ...]) -> Ns :: non_neg_integer().
run(Count, Sizes) ->
    Terms = [binary:copy(<<1>>, Size) || Size <- Sizes],
    Start = erlang:monotonic_time(nanosecond),
    ok = calls(Count, Terms, Terms),
    erlang:monotonic_time(nanosecond) - Start.

calls(0, _Terms, _All) ->
    ok;
calls(Count, [], All) ->
    calls(Count, All, All);
calls(Count, [Term | Terms], All) ->
    Term = tame_echo_isolated:echo(Term),
    calls(Count - 1, Terms, All).

%% What is in use, after a garbage collection of every process.
-spec memory() -> memory().
memory() ->
    lists:foreach(fun erlang:garbage_collect/1, processes()),
    Hosts = [Host || #{hosts := Hosts} <- maps:values(tame:info()), Host <- Hosts],
    #{
        vm_bytes => erlang:memory(total),
        hosts_bytes => lists:sum([Bytes || #{rss_bytes := Bytes} <- Hosts]),
        atoms => erlang:system_info(atom_count),
        processes => erlang:system_info(process_count)
    }.
