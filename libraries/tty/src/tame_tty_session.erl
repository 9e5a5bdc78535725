%% A session: the process that has the terminal, from open to close. Internal; tame_tty is the door.
%%
%%     owner ◀──events── session ──tame_tty_nif──▶ /dev/tty
%%                          │──port──▶ guard
%%
%% It monitors its owner and is linked to nobody. The NIF library and the guard watch the session:
%% whichever way it ends, one of them turns the terminal back.
-module(tame_tty_session).

-behaviour(gen_server).

-export([start/2]).
-export([call/2]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

%% An ESC that nothing follows for so long is the key. Terminals send a sequence in one piece,
%% networks do not always.
-define(ESCAPE_MS, 50).
%% How often the size is asked for: one ioctl. SIGWINCH would be the VM's, and OTP 25 hands it to
%% nobody; where it can be had (os:set_signal/2 of newer versions) it is one handler for the whole
%% VM, which the shell has.
-define(LOOK_MS, 200).
%% An owner that is so far behind gets no more for a while: then the keys wait in the terminal.
-define(BEHIND, 1000).
-define(BEHIND_MS, 20).
%% The guard waits for 3 s for one before it.
-define(GUARD_MS, 6000).

-record(state, {
    owner :: pid(),
    monitor :: reference(),
    handle :: tame_tty_nif:handle(),
    guard :: port(),
    stdin :: boolean(),
    %% none: cooked.
    source :: tame_tty_input:source() | none,
    enter :: binary(),
    leave :: binary(),
    %% Of the wait for input, another one each time that it is raw; and of that for output.
    in = make_ref() :: reference(),
    out = make_ref() :: reference(),
    keys = tame_tty_keys:new() :: tame_tty_keys:state(),
    escape = none :: none | reference(),
    size :: tame_tty_nif:size() | {error, tame_tty_nif:error()},
    %% Who waits until what was written, oldest first.
    output = queue:new() :: queue:queue({gen_server:from() | none, binary()}),
    blocked = false :: boolean()
}).

-spec start(pid(), tame_tty:options()) -> {ok, pid()} | {error, tame_tty:reason()}.
start(Owner, Options) ->
    case gen_server:start(?MODULE, {Owner, Options}, []) of
        {ok, Pid} -> {ok, Pid};
        {error, {shutdown, Reason}} -> {error, Reason};
        {error, Reason} -> error(Reason)
    end.

-spec call(pid(), term()) -> term().
call(Pid, Request) ->
    try
        gen_server:call(Pid, Request, infinity)
    catch
        exit:{Reason, {gen_server, call, _}} when Reason =/= calling_self -> {error, closed}
    end.

%% ---- from nothing to raw ----

init({Owner, Options}) ->
    Monitor = monitor(process, Owner),
    case tame_tty_nif:acquire() of
        {ok, Handle, Path, Stdin} -> acquired(Owner, Monitor, Handle, Path, Stdin, Options);
        {error, Reason} -> {stop, {shutdown, Reason}}
    end.

acquired(Owner, Monitor, Handle, Path, Stdin, Options) ->
    {Enter, Leave} = sequences(Options),
    case guard(Path, Leave) of
        {ok, Guard} ->
            State = #state{
                owner = Owner,
                monitor = Monitor,
                handle = Handle,
                guard = Guard,
                stdin = Stdin,
                source = none,
                enter = Enter,
                leave = Leave,
                size = tame_tty_nif:size(Handle)
            },
            _ = look(),
            case raw(State) of
                {ok, Raw} -> {ok, Raw};
                {error, Reason} -> refuse(State, Reason)
            end;
        {error, Reason} ->
            ok = release(Handle),
            {stop, {shutdown, Reason}}
    end.

refuse(State, Reason) ->
    released(State),
    {stop, {shutdown, Reason}}.

raw(#state{handle = Handle} = State) ->
    case tame_tty_input:take(Handle, State#state.stdin) of
        {ok, Source} ->
            case tame_tty_nif:raw(Handle, State#state.leave, os_pid(State#state.guard)) of
                ok ->
                    Raw = State#state{source = Source, in = make_ref()},
                    _ = self() ! {input, Raw#state.in},
                    {ok, flushed(queued(none, State#state.enter, Raw))};
                {error, Reason} ->
                    ok = tame_tty_input:give_back(Source),
                    {error, Reason}
            end;
        {error, Reason} ->
            {error, Reason}
    end.

%% 0: it has ended, which the session will hear.
os_pid(Guard) ->
    case erlang:port_info(Guard, os_pid) of
        {os_pid, Pid} -> Pid;
        undefined -> 0
    end.

cooked(#state{source = none} = State) ->
    State;
cooked(#state{source = Source} = State) ->
    _ = tame_tty_nif:cooked(State#state.handle),
    ok = tame_tty_input:give_back(Source),
    State#state{source = none, keys = tame_tty_keys:new(), escape = none}.

%% What a program that draws the screen switches on, and off in the other order.
sequences(Options) ->
    Default = #{alternate => true, cursor => true, mouse => false, paste => true},
    Wanted = maps:merge(Default, Options),
    Parts = [
        {alternate, true, <<"\e[?1049h">>, <<"\e[?1049l">>},
        {cursor, false, <<"\e[?25l">>, <<"\e[?25h">>},
        {mouse, true, <<"\e[?1000h\e[?1002h\e[?1006h">>, <<"\e[?1006l\e[?1002l\e[?1000l">>},
        {paste, true, <<"\e[?2004h">>, <<"\e[?2004l">>}
    ],
    Of = [{On, Off} || {Key, Value, On, Off} <- Parts, map_get(Key, Wanted) =:= Value],
    {On, Off} = lists:unzip(Of),
    %% Colours end with the session, too.
    {iolist_to_binary(On), iolist_to_binary(["\e[0m" | lists:reverse(Off)])}.

%% ---- the guard ----

guard(Path, Leave) ->
    Program = filename:join(code:priv_dir(tame_tty), "tame_tty_guard"),
    Settings = [{args, [Path]}, {packet, 2}, binary, exit_status],
    try open_port({spawn_executable, Program}, Settings) of
        Guard ->
            case answer(Guard) of
                <<"ready">> ->
                    true = port_command(Guard, Leave),
                    armed(Guard, answer(Guard));
                Why ->
                    dismissed(Guard),
                    {error, {guard, Why}}
            end
    catch
        error:Reason ->
            {error, {guard, iolist_to_binary(io_lib:format("~ts: ~p", [Program, Reason]))}}
    end.

armed(Guard, <<"armed">>) ->
    {ok, Guard};
armed(Guard, Why) ->
    dismissed(Guard),
    {error, {guard, Why}}.

answer(Guard) ->
    receive
        {Guard, {data, Answer}} -> Answer;
        {Guard, {exit_status, Status}} -> status(Status)
    after ?GUARD_MS -> <<"it does not answer">>
    end.

status(Status) ->
    iolist_to_binary(io_lib:format("exit status ~b", [Status])).

%% Its work is done: it ends without touching the terminal. We wait for that, so that the next
%% session's finds no lock.
dismissed(Guard) ->
    try port_command(Guard, <<>>) of
        true ->
            receive
                {Guard, {exit_status, _}} -> ok
            after ?GUARD_MS -> true = port_close(Guard)
            end,
            ok
    catch
        %% It has ended before.
        error:badarg -> ok
    end.

%% ---- calls ----

handle_call({write, Bytes}, From, State) ->
    {noreply, flushed(queued(From, Bytes, State))};
handle_call(size, _From, State) ->
    case tame_tty_nif:size(State#state.handle) of
        {error, Reason} -> closed(Reason, {error, closed}, State);
        Size -> {reply, {ok, Size}, State}
    end;
handle_call({mode, cooked}, _From, State) ->
    {reply, ok, cooked(State)};
handle_call({mode, raw}, _From, #state{source = none} = State) ->
    case raw(State) of
        {ok, Raw} -> {reply, ok, Raw};
        {error, Reason} -> {reply, {error, Reason}, State}
    end;
handle_call({mode, raw}, _From, State) ->
    {reply, ok, State};
handle_call(close, From, State) ->
    %% When who asked knows, the terminal is turned back.
    released(State),
    gen_server:reply(From, ok),
    {stop, normal, State#state{source = none}};
handle_call(_Request, _From, State) ->
    {reply, {error, closed}, State}.

handle_cast(_Request, State) ->
    {noreply, State}.

%% ---- input ----

handle_info({tame_fd, Ref, ready}, #state{in = Ref} = State) ->
    input(State);
handle_info({input, Ref}, #state{in = Ref} = State) ->
    input(State);
handle_info({Port, {data, Bytes}}, #state{source = {port, Port, _}} = State) ->
    {noreply, read(Bytes, State)};
handle_info({Port, eof}, #state{source = {port, Port, _}} = State) ->
    closed(hangup, State);
handle_info({timeout, Timer, escape}, #state{escape = Timer} = State) ->
    {Events, Keys} = tame_tty_keys:flush(State#state.keys),
    tell(Events, State),
    {noreply, State#state{keys = Keys, escape = none}};
handle_info({tame_fd, Ref, ready}, #state{out = Ref} = State) ->
    {noreply, flushed(State#state{blocked = false})};
handle_info({output, Reason}, State) ->
    closed(Reason, State);
handle_info(look, State) ->
    _ = look(),
    case tame_tty_nif:size(State#state.handle) of
        {error, Reason} ->
            closed(Reason, State);
        Size when Size =/= State#state.size ->
            tell([{resize, Size}], State),
            {noreply, State#state{size = Size}};
        _Same ->
            {noreply, State}
    end;
handle_info({'DOWN', Monitor, process, _, _}, #state{monitor = Monitor} = State) ->
    {stop, normal, State};
%% Without a guard the terminal could stay raw, so the session ends while it can be turned back.
handle_info({Guard, {exit_status, Status}}, #state{guard = Guard} = State) ->
    closed({guard, status(Status)}, State);
handle_info(_Late, State) ->
    {noreply, State}.

look() ->
    erlang:send_after(?LOOK_MS, self(), look).

read(Bytes, #state{escape = Escape} = State) ->
    _ = Escape =/= none andalso erlang:cancel_timer(Escape),
    {Events, Keys} = tame_tty_keys:decode(Bytes, State#state.keys),
    tell(Events, State),
    Timer =
        case tame_tty_keys:pending(Keys) of
            true -> erlang:start_timer(?ESCAPE_MS, self(), escape);
            false -> none
        end,
    State#state{keys = Keys, escape = Timer}.

tell(Events, #state{owner = Owner}) ->
    lists:foreach(fun(Event) -> Owner ! {tame_tty, self(), Event} end, Events).

%% One read a message, so that others have their turn. A source that is a port sends by itself.
input(#state{source = {own, _}, in = Ref} = State) ->
    case tame_tty_nif:input(State#state.handle, Ref) of
        {ok, Bytes} ->
            Read = read(Bytes, State),
            _ = erlang:send_after(behind_ms(Read), self(), {input, Ref}),
            {noreply, Read};
        wait ->
            {noreply, State};
        {error, Reason} ->
            closed(Reason, State)
    end;
input(State) ->
    {noreply, State}.

behind_ms(#state{owner = Owner}) ->
    case erlang:process_info(Owner, message_queue_len) of
        {message_queue_len, Len} when Len > ?BEHIND -> ?BEHIND_MS;
        _ -> 0
    end.

%% ---- output ----

queued(From, Bytes, State) ->
    State#state{output = queue:in({From, Bytes}, State#state.output)}.

%% As much as the terminal takes; the rest when it takes more.
flushed(#state{blocked = true} = State) ->
    State;
flushed(State) ->
    case queue:out(State#state.output) of
        {empty, _} ->
            State;
        {{value, {From, <<>>}}, Rest} ->
            _ = From =:= none orelse gen_server:reply(From, ok),
            flushed(State#state{output = Rest});
        {{value, {From, Bytes}}, Rest} ->
            case tame_tty_nif:output(State#state.handle, Bytes, State#state.out) of
                {ok, Written} ->
                    <<_:Written/binary, More/binary>> = Bytes,
                    flushed(State#state{output = queue:in_r({From, More}, Rest)});
                wait ->
                    State#state{blocked = true};
                {error, Reason} ->
                    self() ! {output, Reason},
                    State#state{blocked = true}
            end
    end.

%% ---- the end ----

closed(Reason, State) ->
    tell([{closed, Reason}], State),
    {stop, normal, State}.

closed(Reason, Reply, State) ->
    tell([{closed, Reason}], State),
    {stop, normal, Reply, State}.

terminate(_Reason, State) ->
    released(State).

%% More than once does no harm.
released(#state{source = Source} = State) ->
    ok = release(State#state.handle),
    _ = Source =:= none orelse tame_tty_input:give_back(Source),
    dismissed(State#state.guard).

%% When it is turned back and closed.
release(Handle) ->
    Ref = make_ref(),
    case tame_tty_nif:release(Handle, Ref) of
        ok -> ok;
        wait -> receive {tame_fd, Ref, closed} -> ok end
    end.
