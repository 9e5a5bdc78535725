%% Time that the operating system took from the audited VM: for how long its schedulers' threads
%% were ready to run while another thread had the core. Linux counts it for each thread (schedstat);
%% elsewhere it is 0.
-module(tame_stolen).

-export([threads/0]).
-export([ns/1]).

-export_type([threads/0]).

-opaque threads() :: [{normal | dirty, file:filename()}].

%% The threads whose time counts: the worker's scheduler and the dirty ones.
-spec threads() -> threads().
threads() ->
    case file:list_dir("/proc/self/task") of
        {ok, Names} -> [{Kind, Name} || Name <- Names, Kind <- kind(thread_name(Name))];
        _ -> []
    end.

thread_name(Thread) ->
    case file:read_file(["/proc/self/task/", Thread, "/comm"]) of
        {ok, Name} -> Name;
        _ -> <<>>
    end.

%% The second names are those of OTP 26 and newer.
kind(<<"1_scheduler\n">>) -> [normal];
kind(<<"erts_sched_1\n">>) -> [normal];
kind(<<"erts_d", _/binary>>) -> [dirty];
kind(Name) -> [dirty || binary:match(Name, <<"_dirty_">>) =/= nomatch].

%% Time that threads were ready to run and another one had the core.
-spec ns(threads()) -> #{normal | dirty => non_neg_integer()}.
ns(Threads) ->
    Of = fun(Kind) ->
        lists:sum([waited_ns(Name) || {K, Name} <- Threads, K =:= Kind])
    end,
    #{normal => Of(normal), dirty => Of(dirty)}.

waited_ns(Name) ->
    case file:read_file(["/proc/self/task/", Name, "/schedstat"]) of
        {ok, Text} ->
            case binary:split(Text, <<" ">>, [global]) of
                [_, Waited | _] -> binary_to_integer(Waited);
                _ -> 0
            end;
        _ ->
            0
    end.
