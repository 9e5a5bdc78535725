%% Reads JSON with jiffy, whose C code runs in an OS process of its own.
-module(isolated_app).

-export([parse/1]).
-export([demo/0]).

%% The term that a JSON text stands for, or why there is none. A crash of jiffy is such a reason.
-spec parse(binary()) -> {ok, term()} | {error, term()}.
parse(Text) ->
    try
        {ok, jiffy:decode(Text, [return_maps])}
    catch
        error:Reason -> {error, Reason}
    end.

%% Kills the OS process that jiffy runs in, and asks before, at that moment and after.
-spec demo() -> [{before | meanwhile | later | same_process, term()}].
demo() ->
    Text = <<"[true]">>,
    Before = parse(Text),
    Pid = os_pid(),
    [] = os:cmd("kill -9 " ++ integer_to_list(Pid)),
    Meanwhile = parse(Text),
    Later = parse(Text),
    [{before, Before}, {meanwhile, Meanwhile}, {later, Later}, {same_process, os_pid() =:= Pid}].

os_pid() ->
    #{jiffy := #{hosts := [#{os_pid := Pid}]}} = tame:info(),
    Pid.
