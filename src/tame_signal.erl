%% Names of signals, as Linux numbers them.
-module(tame_signal).

-export([name/1]).

-define(NAMES, #{
    1 => sighup, 2 => sigint, 3 => sigquit, 4 => sigill, 5 => sigtrap, 6 => sigabrt, 7 => sigbus,
    8 => sigfpe, 9 => sigkill, 11 => sigsegv, 13 => sigpipe, 14 => sigalrm, 15 => sigterm,
    24 => sigxcpu, 25 => sigxfsz, 31 => sigsys
}).

%% The number itself where it has no name here.
-spec name(pos_integer()) -> atom() | pos_integer().
name(Number) ->
    maps:get(Number, ?NAMES, Number).
