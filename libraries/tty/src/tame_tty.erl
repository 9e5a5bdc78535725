%% A terminal as a process sees it: raw, its keys as messages, its size, and turned back however the
%% session ends.
%%
%%     1> {ok, Tty} = tame_tty:open(#{mouse => true}).
%%     2> tame_tty:write(Tty, "press a key\r\n").
%%     3> receive {tame_tty, Tty, {key, Key, Modifiers}} -> {Key, Modifiers} end.
%%     {up, [ctrl]}
%%     4> tame_tty:close(Tty).
%%
%% A VM has one terminal, and one session at a time has it. The session belongs to the process that
%% opened it: when that one ends, the terminal is turned back. So it is when the VM ends, by
%% whatever: the guard, a small process beside the VM, turns the terminal back after SIGKILL too.
-module(tame_tty).

-export([open/0]).
-export([open/1]).
-export([close/1]).
-export([write/2]).
-export([size/1]).
-export([mode/2]).
-export([format_error/1]).
%% Internal: what the shell says of a badarg.
-export([format_error/2]).

-export_type([tty/0, options/0, event/0, modifier/0, reason/0]).

-opaque tty() :: pid().

%% alternate: a screen of its own, so that what was there comes back (default: true). cursor:
%% whether it is shown (true). mouse: whether its buttons and wheel are events (false). paste:
%% whether what is pasted is told from what is typed (true).
-type options() :: #{
    alternate => boolean(),
    cursor => boolean(),
    mouse => boolean(),
    paste => boolean()
}.

-type modifier() :: tame_tty_keys:modifier().

%% Comes as {tame_tty, Tty, Event} to who opened the session. After {closed, _} comes nothing;
%% close/1 sends none.
-type event() ::
    tame_tty_keys:event()
    | {resize, tame_tty_nif:size()}
    | {closed, reason()}.

%% no_terminal: the VM has none, or none of its standard descriptors is it. background: another job
%% has the terminal. busy: another session of this VM has it. shell: OTP 25's shell reads it.
%% reader: something else reads it, and does not stop. guard: the guard does not start, or has
%% ended; it says why. hangup: the terminal is gone.
-type reason() ::
    no_terminal
    | background
    | busy
    | shell
    | reader
    | hangup
    | {guard, binary()}
    | atom()
    | integer().

%% In the function itself: the error names the one that raises it.
-define(BADARG(Args), erlang:error(badarg, Args, [{error_info, #{module => ?MODULE}}])).
-define(OPTIONS, [alternate, cursor, mouse, paste]).

-spec open() -> {ok, tty()} | {error, reason()}.
open() ->
    open(#{}).

%% Makes the terminal raw, and reads its keys for the calling process.
-spec open(options()) -> {ok, tty()} | {error, reason()}.
open(Options) ->
    case wrong(Options) of
        nothing -> tame_tty_session:start(self(), Options);
        _ -> ?BADARG([Options])
    end.

%% Turns the terminal back. ok also when that was done before.
-spec close(tty()) -> ok.
close(Tty) when is_pid(Tty) ->
    _ = tame_tty_session:call(Tty, close),
    ok;
close(Tty) ->
    ?BADARG([Tty]).

%% Writes characters as UTF-8 and iodata that is none (a binary of another encoding) as it is. A new
%% line is "\r\n". Returns when the terminal has taken all.
-spec write(tty(), unicode:chardata() | iodata()) -> ok | {error, closed}.
write(Tty, Chars) when is_pid(Tty) ->
    case bytes(Chars) of
        wrong -> ?BADARG([Tty, Chars]);
        Bytes -> tame_tty_session:call(Tty, {write, Bytes})
    end;
write(Tty, Chars) ->
    ?BADARG([Tty, Chars]).

%% As the terminal says it now. Zeros, where it does not know.
-spec size(tty()) -> {ok, tame_tty_nif:size()} | {error, closed}.
size(Tty) when is_pid(Tty) ->
    tame_tty_session:call(Tty, size);
size(Tty) ->
    ?BADARG([Tty]).

%% cooked: as it was, for another program (an editor) or a question; it has the keys then. raw: ours
%% again.
-spec mode(tty(), raw | cooked) -> ok | {error, closed | reason()}.
mode(Tty, Mode) when is_pid(Tty), Mode =:= raw; is_pid(Tty), Mode =:= cooked ->
    tame_tty_session:call(Tty, {mode, Mode});
mode(Tty, Mode) ->
    ?BADARG([Tty, Mode]).

%% One sentence for people.
-spec format_error(reason()) -> string().
format_error(no_terminal) ->
    "there is no terminal: expected standard input, output or error to be the VM's own";
format_error(background) ->
    "the VM runs in the background, and another job has the terminal: bring it to the front (fg)";
format_error(busy) ->
    "another session of this VM has the terminal";
format_error(shell) ->
    "OTP 25's shell reads the terminal: start the VM with -noshell or -noinput, or use OTP 26";
format_error(reader) ->
    "something else in this VM reads the terminal and does not stop: start the VM with -noinput";
format_error(hangup) ->
    "the terminal is gone";
format_error({guard, Why}) ->
    lists:flatten(io_lib:format("the guard of the terminal has ended: ~ts", [Why]));
format_error(Reason) ->
    lists:flatten(io_lib:format("the terminal fails: ~p", [Reason])).

%% ---- arguments ----

%% As io:put_chars/1 takes a list: its numbers are characters, not bytes.
bytes(Chars) ->
    try
        case unicode:characters_to_binary(Chars) of
            Bytes when is_binary(Bytes) -> Bytes;
            _ -> iolist_to_binary(Chars)
        end
    catch
        error:badarg -> wrong
    end.

wrong(Options) when is_map(Options) ->
    case [Key || {Key, Value} <- maps:to_list(Options), not valid(Key, Value)] of
        [] -> nothing;
        [Key | _] -> {key, Key}
    end;
wrong(_Options) ->
    no_map.

valid(Key, Value) ->
    lists:member(Key, ?OPTIONS) andalso is_boolean(Value).

-spec format_error(badarg, erlang:stacktrace()) -> #{pos_integer() => iodata()}.
format_error(badarg, [{?MODULE, open, [Options], _} | _]) ->
    case wrong(Options) of
        {key, Key} ->
            Expected = "~0tp: expected alternate, cursor, mouse or paste, each true or false",
            #{1 => io_lib:format(Expected, [Key])};
        _ ->
            #{1 => "must be a map of options"}
    end;
format_error(badarg, [{?MODULE, _, [Tty | _], _} | _]) when not is_pid(Tty) ->
    #{1 => "must be a terminal, as open/1 gives it"};
format_error(badarg, [{?MODULE, write, _, _} | _]) ->
    #{2 => "must be iodata or characters"};
format_error(badarg, [{?MODULE, mode, _, _} | _]) ->
    #{2 => "must be raw or cooked"};
format_error(_, _) ->
    #{}.
