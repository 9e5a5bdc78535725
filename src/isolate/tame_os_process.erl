%% What /proc says of an OS process.
-module(tame_os_process).

-export([is_alive/1]).
-export([is_child/2]).
-export([rss_bytes/1]).
-export([is_mapped/1]).
-export([continue/1]).

%% How long a shell may take to send a signal.
-define(SIGNAL_MS, 1000).

%% False where there is no /proc.
-spec is_alive(non_neg_integer()) -> boolean().
is_alive(OsPid) ->
    OsPid > 0 andalso element(1, file:read_link_info(path(OsPid, ""), [raw])) =:= ok.

%% Whether a process is the child of another, or that process itself. True where there is no /proc.
-spec is_child(pos_integer(), non_neg_integer()) -> boolean().
is_child(OsPid, ParentPid) ->
    case read(path(OsPid, "/stat")) of
        {ok, Stat} ->
            %% 5 (a name with ) in it) S 4 ...
            [After | _] = lists:reverse(binary:split(Stat, <<") ">>, [global])),
            [_State, Parent | _] = binary:split(After, <<" ">>, [global]),
            OsPid =:= ParentPid orelse Parent =:= integer_to_binary(ParentPid);
        {error, _} ->
            not filelib:is_dir("/proc/self")
    end.

%% The memory that it has now. 0 where there is no /proc, or no such process.
-spec rss_bytes(non_neg_integer()) -> non_neg_integer().
rss_bytes(OsPid) ->
    case read(path(OsPid, "/statm")) of
        {ok, Text} ->
            %% The second field, in pages.
            [_, Pages | _] = binary:split(Text, <<" ">>, [global]),
            binary_to_integer(Pages) * 4096;
        {error, _} ->
            0
    end.

%% Whether this VM has a file of this name mapped, in whatever folder. True where there is no /proc.
-spec is_mapped(file:filename_all()) -> boolean().
is_mapped(File) ->
    case file:read_file("/proc/self/maps") of
        {ok, Maps} ->
            Name = unicode:characters_to_binary(filename:basename(File)),
            binary:match(Maps, <<"/", Name/binary, "\n">>) =/= nomatch;
        {error, _} ->
            true
    end.

%% A process that is stopped goes on; nothing else becomes of one that is not.
-spec continue(pos_integer()) -> ok.
continue(OsPid) ->
    Args = ["-c", "kill -CONT \"$0\"", integer_to_list(OsPid)],
    Options = [{args, Args}, stderr_to_stdout, exit_status],
    try open_port({spawn_executable, "/bin/sh"}, Options) of
        Port -> ended(Port)
    catch
        error:_ -> ok
    end.

ended(Port) ->
    receive
        {Port, {exit_status, _}} -> ok;
        {Port, {data, _}} -> ended(Port)
    after ?SIGNAL_MS ->
        true = exit(Port, kill),
        ok
    end.

path(OsPid, Name) ->
    "/proc/" ++ integer_to_list(OsPid) ++ Name.

read(Path) ->
    case file:open(Path, [read, raw, binary]) of
        {ok, File} ->
            Read = file:read(File, 4096),
            ok = file:close(File),
            if Read =:= eof -> {error, eof}; true -> Read end;
        {error, _} = Error ->
            Error
    end.
