%% Sending all of some data, or of a part of a file, however often the socket is full meanwhile.
-module(tame_tcp_sending).

-export([send/2]).
-export([sendfile/4]).

-type reason() :: atom().

-spec send(tame_tcp_nif:socket(), [binary()]) -> ok | {error, reason()}.
send(Socket, Parts) ->
    send(Socket, Parts, unknown).

send(Socket, Parts, Deadline) ->
    Ref = make_ref(),
    case tame_tcp_nif:send(Socket, Parts, Ref) of
        ok ->
            ok;
        {error, _} = Error ->
            Error;
        Wait ->
            Until = deadline(Socket, Deadline),
            receive
                {tame_fd, Ref, ready} -> send(Socket, rest(Parts, sent(Wait)), Until);
                {tame_fd, Ref, closed} -> {error, closed}
            after tame_tcp_wait:left(Until) ->
                over(Socket, Ref)
            end
    end.

sent(wait) -> 0;
sent({wait, Bytes}) -> Bytes.

rest(Parts, 0) -> Parts;
rest([Part | Parts], Bytes) when byte_size(Part) =< Bytes -> rest(Parts, Bytes - byte_size(Part));
rest([Part | Parts], Bytes) ->
    <<_:Bytes/binary, Rest/binary>> = Part,
    [Rest | Parts].

%% Asked for when a send has to wait, which few do.
deadline(Socket, unknown) ->
    case tame_tcp_nif:getopt(Socket, send_timeout) of
        {ok, Ms} when Ms >= 0 -> tame_tcp_wait:deadline(Ms);
        _ -> infinity
    end;
deadline(_, Deadline) ->
    Deadline.

over(Socket, Ref) ->
    {error, timeout} = tame_tcp_wait:over(Socket, write, Ref),
    case tame_tcp_nif:getopt(Socket, send_timeout_close) of
        {ok, 1} -> tame_tcp_wait:close(Socket);
        _ -> ok
    end,
    {error, timeout}.

%% Bytes 0: to the end.
-spec sendfile(tame_tcp_nif:socket(), term(), non_neg_integer(), non_neg_integer()) ->
    {ok, non_neg_integer()} | {error, reason()}.
sendfile(Socket, File, Offset, Bytes) ->
    case file_of(File) of
        {ok, Opened} -> sendfile_part(Socket, Opened, Offset, until(Bytes), 0, unknown);
        {error, _} = Error -> Error
    end.

until(0) -> 16#7fffffffffffffff;
until(Bytes) -> Bytes.

sendfile_part(_, _, _, 0, Done, _) ->
    {ok, Done};
sendfile_part(Socket, File, At, Bytes, Done, Deadline) ->
    Ref = make_ref(),
    case tame_tcp_nif:sendfile(Socket, File, At, Bytes, Ref) of
        ok ->
            {ok, Done + Bytes};
        eof ->
            {ok, Done};
        {error, _} = Error ->
            Error;
        Wait ->
            Until = deadline(Socket, Deadline),
            Sent = sent(Wait),
            receive
                {tame_fd, Ref, ready} ->
                    sendfile_part(Socket, File, At + Sent, Bytes - Sent, Done + Sent, Until);
                {tame_fd, Ref, closed} ->
                    {error, closed}
            after tame_tcp_wait:left(Until) ->
                over(Socket, Ref)
            end
    end.

%% A raw file belongs to its owner, who calls: its descriptor is there until we have our own.
file_of(File) when is_tuple(File) ->
    try prim_file:get_handle(File) of
        Handle when is_binary(Handle) -> tame_tcp_nif:file_dup(Handle);
        {error, _} = Error -> Error
    catch
        error:_ -> {error, einval}
    end;
file_of(Name) ->
    try tame_tcp_nif:file_open(native(filename:flatten(Name)))
    catch
        error:_ -> {error, einval}
    end.

native(Name) when is_binary(Name) -> Name;
native(Name) ->
    unicode:characters_to_binary(Name, unicode, file:native_name_encoding()).
