%% Iodata as a list of binaries, and binaries, as a job reads them (tame_input_iodata and
%% tame_input_binary in c_include/tame/input.h).
%%
%% The VM copies a binary whose bytes begin in the middle of a byte as a whole each time that native
%% code looks at it. So a large one goes to the job in pieces; each piece is a binary of its own,
%% because native code cannot ask for a binary's size without looking at all of it, and must not
%% believe a size that comes beside it.
-module(tame_iovec).

-export([from/1]).
-export([aligned/1]).
-export([align/1]).
-nifs([in_place/1, copy/2]).

-on_load(load/0).

%% Copying that number of bytes, which is how they are looked at, takes about 60 us.
-define(PIECE, 65536).
%% The shortest part that the VM does not copy when it is made: from OTP 27 on it copies 64 bytes.
-define(PREFIX, 65).
-define(IN_PLACE, <<0:?PREFIX/unit:8>>).

%% Without its native part all large binaries go in pieces, and the results are the same.
load() ->
    _ = erlang:load_nif(filename:rootname(tame_native:path("tame_iovec.so")), 0),
    ok.

%% What is no iodata stays as it is, for the job to refuse.
-spec from(term()) -> term().
from(Data) when is_list(Data) ->
    try erlang:iolist_to_iovec(Data) of
        Binaries -> in_pieces(Binaries)
    catch
        error:badarg -> Data
    end;
from(Data) when is_binary(Data), byte_size(Data) > ?PIECE ->
    in_pieces([Data]);
from(Data) ->
    Data.

in_pieces([Binary | Rest]) when byte_size(Binary) > ?PIECE ->
    <<Prefix:?PREFIX/binary, _/binary>> = Binary,
    case in_place(Prefix) of
        true -> [Binary | in_pieces(Rest)];
        false -> pieces(Binary, in_pieces(Rest))
    end;
in_pieces([Binary | Rest]) ->
    [Binary | in_pieces(Rest)];
in_pieces([]) ->
    [].

pieces(<<Piece:?PIECE/binary, Rest/binary>>, After) -> [Piece | pieces(Rest, After)];
pieces(<<>>, After) -> After;
pieces(Rest, After) -> [Rest | After].

%% Whether native code sees a binary's bytes where they lie. Without the native part only of one
%% that has none is that sure.
-spec in_place(binary()) -> boolean().
in_place(Binary) ->
    byte_size(Binary) =:= 0.

%% A binary that native code sees where it lies: itself, or else a copy. Without the native part,
%% when nobody can tell, itself.
-spec aligned(binary()) -> binary().
aligned(Binary) when byte_size(Binary) > ?PIECE ->
    <<Prefix:?PREFIX/binary, _/binary>> = Binary,
    case in_place(Prefix) orelse not in_place(?IN_PLACE) of
        true -> Binary;
        false -> align(Binary)
    end;
aligned(Binary) ->
    Binary.

%% A binary whose bytes begin in the middle of a byte, as one that begins with one.
-spec align(binary()) -> binary().
align(Binary) when byte_size(Binary) > ?PIECE ->
    copy(Binary, byte_size(Binary));
align(Binary) ->
    binary:copy(Binary).

%% In slices, into one binary. Without the native part piece by piece, because the VM copies without
%% yielding; but the pieces are all freed at once.
-spec copy(binary(), pos_integer()) -> binary().
copy(Binary, _Size) ->
    iolist_to_binary([binary:copy(Piece) || Piece <- pieces(Binary, [])]).
