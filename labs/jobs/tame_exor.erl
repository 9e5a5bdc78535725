%% The exclusive or of a binary and a byte in C, in every placement: the example of Steve Vinoski's
%% talk on dirty schedulers, on tame.h (c_src/natives/exor/). Or of two binaries, as crypto:exor/2
%% does it. All functions return the same; they differ in where the work is done and in what that
%% does to others.
%%
%%     1> tame_exor:exor(<<1,2,3>>, 16#ff).
%%     <<254,253,252>>
%%     2> tame_exor:exor(<<1,2,3>>, <<3,2,1>>).
%%     <<2,0,2>>
%%
%% Each raises badarg when the first argument is no binary, or the second neither 0..255 nor a
%% binary as long as the first.
-module(tame_exor).

-export([exor/2]).
-export([exor_inline/2]).
-export([exor_chunks/2]).
-export([exor_yielding/2]).
-export([exor_dirty/2]).
-export([exor_yielding_dirty/2]).
-export([exor_thread/2]).
-export([exor_pool/2]).

-compile({parse_transform, tame_job}).

-tame([
    exor/2,
    exor_inline/2,
    exor_yielding/2,
    exor_dirty/2,
    exor_yielding_dirty/2,
    exor_thread/2,
    exor_pool/2
]).

-on_load(load/0).

%% One call's work when the cutting is done in Erlang, as in the talk.
-define(CHUNK_BYTES, (4 * 1024 * 1024)).

load() ->
    erlang:load_nif(filename:rootname(tame_labs_native:path("tame_exor.so")), 0).

%% Where it fits: inline, then yielding, then in the pool when much is left.
-spec exor(binary(), byte() | binary()) -> binary().

%% To the end in one go, on the caller's scheduler.
-spec exor_inline(binary(), byte() | binary()) -> binary().

%% In chunks of 4 MiB, cut in Erlang, each inline.
-spec exor_chunks(binary(), byte() | binary()) -> binary().
exor_chunks(A, B) when is_binary(A), is_binary(B), byte_size(A) =:= byte_size(B) ->
    iolist_to_binary(chunks(A, B));
exor_chunks(A, Byte) when is_binary(A), is_integer(Byte), Byte >= 0, Byte =< 255 ->
    iolist_to_binary(chunks(A, Byte));
exor_chunks(A, B) ->
    %% The NIF knows what is wrong, and says it.
    tame:value(exor_inline_nif(A, B), {?MODULE, exor_chunks, [A, B]}).

chunks(<<A:?CHUNK_BYTES/binary, RestA/binary>>, <<B:?CHUNK_BYTES/binary, RestB/binary>>) ->
    [exor_inline(A, B) | chunks(RestA, RestB)];
chunks(<<A:?CHUNK_BYTES/binary, RestA/binary>>, Byte) when is_integer(Byte) ->
    [exor_inline(A, Byte) | chunks(RestA, Byte)];
chunks(A, B) ->
    [exor_inline(A, B)].

%% In slices on the caller's scheduler.
-spec exor_yielding(binary(), byte() | binary()) -> binary().

%% In one go on a dirty CPU scheduler.
-spec exor_dirty(binary(), byte() | binary()) -> binary().

%% In slices on dirty CPU schedulers.
-spec exor_yielding_dirty(binary(), byte() | binary()) -> binary().

%% On a thread made for the call.
-spec exor_thread(binary(), byte() | binary()) -> binary().

%% In the library's own pool of threads.
-spec exor_pool(binary(), byte() | binary()) -> binary().
