%% Who else reads the terminal, and how it is kept from it while a session has the terminal.
%%
%% A key goes to the process that reads first, so there is one reader at a time:
%%
%%     started with        OTP 25                                   OTP 26 and newer
%%     -noinput            nobody                                   nobody
%%     -noshell, mix       the port of `user` stays the reader,     the process user_drv_reader:
%%                         and its bytes go to the session          suspended
%%     a shell (erl, iex)  the port tty_sl: refused                 the same process
%%
%% That process reads when it is told of input, on a dirty scheduler; where the input is gone by then it
%% waits there, and is interrupted.
%% A process that is suspended is resumed by the VM when who suspended it ends, however it does.
%%
%% The port of `user` cannot be told to stop, but who gets what it reads can be changed by anybody
%% (port_connect/2), and `user` writes by port_command/2, which asks for no owner. tty_sl's owner
%% does not, and breaks without its port.
-module(tame_tty_input).

-export([take/2]).
-export([give_back/1]).

-export_type([source/0]).

%% own: the session reads by itself. port: the bytes come as {Port, {data, Bytes}}.
-type source() ::
    {own, nobody | {suspended, pid()}}
    | {port, port(), Keeper :: pid()}.

%% How often it is looked whether a process that is to be suspended is, and how long it may be busy
%% until it is interrupted.
-define(LOOKS, 100).
-define(BUSY_MS, 20).

%% Called by the session's process, which has the handle. The second argument: whether standard input
%% is the terminal.
-spec take(tame_tty_nif:handle(), boolean()) -> {ok, source()} | {error, shell | reader}.
take(_Handle, false) ->
    {ok, {own, nobody}};
take(Handle, true) ->
    case whereis(user_drv_reader) of
        undefined -> take_port([Port || not no_input(), Port <- erlang:ports(), reads(Port)]);
        Pid -> suspend(Handle, Pid, ?LOOKS)
    end.

%% To those that had it. What is waiting to be read is theirs then.
-spec give_back(source()) -> ok.
give_back({own, nobody}) ->
    ok;
give_back({own, {suspended, Pid}}) ->
    resume(Pid);
give_back({port, Port, Keeper}) ->
    Monitor = monitor(process, Keeper),
    Keeper ! {give_back, Port},
    receive
        {'DOWN', Monitor, process, Keeper, _} -> ok
    end.

suspend(_Handle, _Pid, 0) ->
    {error, reader};
suspend(Handle, Pid, Looks) ->
    Tag = make_ref(),
    try erlang:suspend_process(Pid, [{asynchronous, Tag}]) of
        true -> suspended(Handle, Pid, Tag, Looks)
    catch
        %% It has ended meanwhile.
        error:badarg -> {error, reader}
    end.

suspended(_Handle, Pid, _Tag, 0) ->
    resume(Pid),
    {error, reader};
suspended(Handle, Pid, Tag, Looks) ->
    receive
        {Tag, suspended} ->
            {ok, {own, {suspended, Pid}}};
        %% So says one that was in a read when it was asked, though nobody has resumed it. Now it is not.
        {Tag, not_suspended} ->
            resume(Pid),
            suspend(Handle, Pid, Looks - 1);
        {Tag, exited} ->
            {error, reader}
    after ?BUSY_MS ->
        %% It reads, and waits: keys that came while a session before had suspended it were told to it,
        %% and that session has read them.
        _ = tame_tty_nif:interrupt(Handle),
        suspended(Handle, Pid, Tag, Looks - 1)
    end.

resume(Pid) ->
    try erlang:resume_process(Pid) of
        true -> ok
    catch
        %% It has ended.
        error:badarg -> ok
    end.

%% Whether the VM was told not to read: its port does not say. The last of these arguments counts
%% (user_sup).
no_input() ->
    Ways = [noinput, noshell, oldshell, user],
    Chosen = [Flag || {Flag, _} <- init:get_arguments(), lists:member(Flag, Ways)],
    Chosen =/= [] andalso lists:last(Chosen) =:= noinput.

%% A driver that reads descriptor 0: fd, named by its descriptors, and tty_sl.
reads(Port) ->
    case erlang:port_info(Port, name) of
        {name, "0/" ++ _} -> true;
        {name, "tty_sl" ++ _} -> true;
        _ -> false
    end.

take_port([]) ->
    {ok, {own, nobody}};
take_port([Port]) ->
    case {erlang:port_info(Port, name), erlang:port_info(Port, connected)} of
        {{name, "0/" ++ _}, {connected, Owner}} ->
            Session = self(),
            Keeper = spawn(fun() -> keep(Session, Port, Owner) end),
            %% The keeper is there before anything changes; it undoes what follows.
            true = erlang:port_connect(Port, self()),
            true = unlink(Port),
            {ok, {port, Port, Keeper}};
        _ ->
            {error, shell}
    end;
take_port(_Several) ->
    {error, reader}.

%% A session that is killed has no time to give the port back. Without its link the port outlives
%% the session.
keep(Session, Port, Owner) ->
    Monitor = monitor(process, Session),
    receive
        {give_back, Port} -> ok;
        {'DOWN', Monitor, process, Session, _} -> ok
    end,
    try erlang:port_connect(Port, Owner) of
        true -> unlink(Port)
    catch
        %% The port is closed, or its owner has ended: there is nobody to give it to.
        error:_ -> unlink(Port)
    end.
