%% The callers that wait for a host, each monitored: a caller that dies waits no longer.
-module(tame_hosts_waiting).

-export([new/0]).
-export([count/1]).
-export([add/3]).
-export([take/2]).
-export([reply_all/2]).

-export_type([waiting/0]).

%% By their monitors: the caller, and what it waits for.
-opaque waiting() :: #{reference() => {gen_statem:from(), term()}}.

-spec new() -> waiting().
new() ->
    #{}.

-spec count(waiting()) -> non_neg_integer().
count(Waiting) ->
    map_size(Waiting).

%% The monitor names the caller from now on.
-spec add(gen_statem:from(), term(), waiting()) -> {reference(), waiting()}.
add({Caller, _} = From, For, Waiting) ->
    Monitor = monitor(process, Caller),
    {Monitor, Waiting#{Monitor => {From, For}}}.

%% The caller of this monitor, if it still waits; it does not any more.
-spec take(term(), waiting()) -> {gen_statem:from(), waiting()} | error.
take(Monitor, Waiting) ->
    case maps:take(Monitor, Waiting) of
        {{From, _For}, Others} ->
            demonitor(Monitor, [flush]),
            {From, Others};
        error ->
            error
    end.

%% Answers all callers, each by what it waits for. Their time-outs find no caller.
-spec reply_all(fun((term()) -> term()), waiting()) -> waiting().
reply_all(Answer, Waiting) ->
    maps:foreach(
        fun(Monitor, {From, For}) ->
            demonitor(Monitor, [flush]),
            gen_statem:reply(From, Answer(For))
        end,
        Waiting
    ),
    #{}.
