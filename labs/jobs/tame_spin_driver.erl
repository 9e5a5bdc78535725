%% The work of tame_spin by a port driver (c_src/natives/spin/spin_drv.c): what a driver of a known
%% length does to others, and what becomes of it where it does not block.
%%
%%     1> timer:tc(tame_spin_driver, spin_dirty, [10000]).
%%     {10132,ok}
%%
%% A process has a port of its own, which ends with it. All return `ok' when the work is done, and
%% raise badarg unless the time is an integer from 0 to 10^12, in microseconds.
-module(tame_spin_driver).

-export([spin_inline/1]).
-export([spin_async/1]).
-export([spin_dirty/1]).

-define(NAME, "tame_spin_drv").
-define(INLINE, 1).
-define(ASYNC, 2).
-define(DIRTY, 3).

%% Within the driver's control, on the caller's scheduler.
-spec spin_inline(non_neg_integer()) -> ok.
spin_inline(Us) -> spin(?INLINE, Us).

%% On a thread of the VM's asynchronous pool, which all drivers share; +A says how many there are.
-spec spin_async(non_neg_integer()) -> ok.
spin_async(Us) -> spin(?ASYNC, Us).

%% In steps on threads of the driver's own.
-spec spin_dirty(non_neg_integer()) -> ok.
spin_dirty(Us) -> spin(?DIRTY, Us).

spin(Command, Us) when is_integer(Us), Us >= 0, Us =< 1000000000000 ->
    Port = port(),
    [] = port_control(Port, Command, <<Us:64>>),
    receive
        {Port, {data, _}} -> ok
    end;
spin(_Command, Us) ->
    error(badarg, [Us]).

%% The calling process's own, opened by its first call.
port() ->
    case get(?MODULE) of
        undefined -> open();
        Port -> Port
    end.

open() ->
    ok = load(),
    Port = open_port({spawn_driver, ?NAME}, [binary]),
    undefined = put(?MODULE, Port),
    Port.

%% A driver is unloaded with the last process that has loaded it, so one that stays does.
load() ->
    case erl_ddll:load(tame_labs_native:dir(), ?NAME) of
        ok -> ok;
        {error, Reason} -> error({?NAME, erl_ddll:format_error(Reason)})
    end.
