%% What runs in a pane: tells its terminal what comes, and ends as it is told by a key.
-module(tame_tty_subject).

-export([main/0]).
-export([main/1]).

main() ->
    main(#{mouse => true}).

main(Options) ->
    case tame_tty:open(Options) of
        {ok, Tty} ->
            say(Tty, "pid ~s", [os:getpid()]),
            say(Tty, "ready", []),
            loop(Tty);
        {error, Reason} ->
            io:format("refused: ~ts~n", [tame_tty:format_error(Reason)]),
            halt(3)
    end.

loop(Tty) ->
    receive
        {tame_tty, Tty, {key, {f, N}, []}} -> do(N, Tty);
        {tame_tty, Tty, {closed, _} = Event} -> io:format("~0p~n", [Event]), halt(4);
        {tame_tty, Tty, Event} -> say(Tty, "~0p", [Event])
    end,
    loop(Tty).

say(Tty, Format, Values) ->
    ok = tame_tty:write(Tty, io_lib:format(Format ++ "\r\n", Values)).

%% close
do(1, Tty) ->
    ok = tame_tty:close(Tty),
    ok = tame_tty:close(Tty),
    {error, closed} = tame_tty:write(Tty, "x"),
    io:format("closed~n"),
    halt();
%% The owner crashes, is killed, ends well; the VM goes on, and opens the terminal again.
do(2, Tty) -> again(Tty, fun() -> error(crash) end);
do(3, Tty) -> again(Tty, fun() -> exit(self(), kill) end);
do(4, Tty) -> again(Tty, fun() -> ok end);
%% The session is killed.
do(5, Tty) -> killed(Tty);
do(6, _Tty) -> halt(0);
do(7, _Tty) -> halt(0, [{flush, false}]);
do(8, _Tty) -> init:stop();
do(9, _Tty) -> halt(abort);
%% Another program has the terminal for a while.
do(10, Tty) ->
    ok = tame_tty:mode(Tty, cooked),
    io:format("cooked~n"),
    told_to_go_on(),
    ok = tame_tty:mode(Tty, raw),
    say(Tty, "raw again", []);
do(12, Tty) ->
    {error, busy} = tame_tty:open(),
    {ok, Size} = tame_tty:size(Tty),
    say(Tty, "size ~0p", [Size]);
%% Characters, and bytes that are none until the rest comes.
do(11, Tty) ->
    ok = tame_tty:write(Tty, ["caf", $\x{e9}, <<" \x{2200} "/utf8>>]),
    ok = tame_tty:write(Tty, [<<16#E2, 16#88>>]),
    ok = tame_tty:write(Tty, <<16#83, "\r\n">>).

again(Tty, End) ->
    logger:set_primary_config(level, none),
    ok = tame_tty:close(Tty),
    {Pid, Monitor} = spawn_monitor(fun() ->
        {ok, Mine} = tame_tty:open(#{alternate => false}),
        say(Mine, "another", []),
        last_key(Mine),
        End()
    end),
    receive {'DOWN', Monitor, process, Pid, _} -> ok end,
    io:format("owner gone~n"),
    receive after infinity -> ok end.

%% What else comes is told, so that a test that fails shows it.
last_key(Tty) ->
    receive
        {tame_tty, Tty, {key, $!, []}} -> ok;
        {tame_tty, Tty, {closed, _} = Event} -> io:format("~0p~n", [Event]), last_key(Tty);
        {tame_tty, Tty, Event} -> say(Tty, "~0p", [Event]), last_key(Tty)
    end.

%% By Pane.go_on/1.
told_to_go_on() -> [] = os:cmd("tmux wait-for go").

killed(Tty) ->
    Monitor = monitor(process, Tty),
    exit(Tty, kill),
    receive {'DOWN', Monitor, process, Tty, _} -> ok end,
    io:format("session gone~n"),
    told_to_go_on(),
    {ok, Mine} = tame_tty:open(#{alternate => false}),
    say(Mine, "opened again", []),
    loop(Mine).
