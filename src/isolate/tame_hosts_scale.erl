%% Whether a library needs one host more or one less. Pure: one look at its hosts is one step.
%%
%% One more is started when callers wait at each host that is up, one at a time; the newest is
%% stopped when it has been idle for idle_ms: no process has a call in it, nor a resource of it.
-module(tame_hosts_scale).

-export([new/0]).
-export([look/4]).

-export_type([idle/0]).

%% Since when each host has been idle, in ms.
-opaque idle() :: #{pid() => integer()}.

%% Oldest first; of those that are up, what their ring says (tame_ring:info/1).
-type hosts() :: [{pid(), {up, #{atom() => non_neg_integer()}} | down | failed}].

-spec new() -> idle().
new() ->
    #{}.

-spec look(integer(), hosts(), tame_isolate_options:options(), idle()) ->
    {keep | start | {stop, pid()}, idle()}.
look(NowMs, Hosts, #{hosts := {Min, Max}, idle_ms := IdleMs}, Before) ->
    Up = [{Host, Info} || {Host, {up, Info}} <- Hosts],
    Idle = maps:from_list([
        {Host, maps:get(Host, Before, NowMs)}
     || {Host, Info} <- Up, is_idle(Info)
    ]),
    Count = length(Hosts),
    IsCrowded = lists:all(fun({_, #{in_line := Waiting}}) -> Waiting > 0 end, Up),
    IsStarting = lists:keymember(down, 2, Hosts),
    Step =
        if
            IsCrowded, Up =/= [], not IsStarting, Count < Max -> start;
            not IsCrowded, Count > Min -> stop_idle(NowMs - IdleMs, lists:last(Hosts), Idle);
            true -> keep
        end,
    {Step, Idle}.

is_idle(#{slots_in_use := InUse, resources := Resources}) ->
    InUse =:= 0 andalso Resources =:= 0.

stop_idle(SinceMs, {Newest, _}, Idle) ->
    case Idle of
        #{Newest := AtMs} when AtMs =< SinceMs -> {stop, Newest};
        #{} -> keep
    end.
