%% The NIFs of c_src/tame_tty.c, and nothing else: tame_tty_session calls them. A handle belongs to
%% the process that acquired it; when that one ends, the terminal is turned back. After `wait' one
%% message comes, {tame_fd, Ref, ready}: then the call is made again; or {tame_fd, Ref, closed}.
-module(tame_tty_nif).

-export([acquire/0, interrupt/1, raw/3, cooked/1, release/2]).
-export([input/2, output/3, size/1]).
-export(['$tame'/3]).

-export_type([handle/0, error/0, size/0]).

-nifs([acquire/0, interrupt/1, raw/3, cooked/1, release/2, '$tame'/3]).
-nifs([input/2, output/3, size/1]).
-on_load(load/0).

-type size() :: {Columns :: non_neg_integer(), Rows :: non_neg_integer()}.

-opaque handle() :: reference().

%% closed: the handle was released. hangup: the terminal is gone. An atom or a number of the system
%% otherwise.
-type error() :: closed | hangup | background | atom() | integer().

load() ->
    erlang:load_nif(filename:join(code:priv_dir(tame_tty), "tame_tty"), 0).

%% The terminal that controls this VM, its path, and whether standard input is it too.
-spec acquire() -> {ok, handle(), string(), boolean()} | {error, busy | no_terminal | error()}.
acquire() ->
    erlang:nif_error(nif_not_loaded).

%% Who is blocked in a read of standard input comes back from it, with nothing.
-spec interrupt(handle()) -> ok | {error, closed}.
interrupt(_Handle) ->
    erlang:nif_error(nif_not_loaded).

%% Raw from now on; what is to be written before it is turned back has at most 256 bytes. The guard,
%% an OS process, is not needed any more where exit() turns it back.
-spec raw(handle(), binary(), integer()) -> ok | {error, error()}.
raw(_Handle, _Leave, _Guard) ->
    erlang:nif_error(nif_not_loaded).

%% It does not wait for input any more.
-spec cooked(handle()) -> ok | {error, closed}.
cooked(_Handle) ->
    erlang:nif_error(nif_not_loaded).

%% Turns it back, and closes it; after `wait' it is so when {tame_fd, Ref, closed} comes.
-spec release(handle(), reference()) -> ok | wait.
release(_Handle, _Ref) ->
    erlang:nif_error(nif_not_loaded).

-spec input(handle(), reference()) -> {ok, binary()} | wait | {error, error()}.
input(_Handle, _Ref) ->
    erlang:nif_error(nif_not_loaded).

%% As much as the terminal takes now.
-spec output(handle(), binary(), reference()) -> {ok, non_neg_integer()} | wait | {error, error()}.
output(_Handle, _Bytes, _Ref) ->
    erlang:nif_error(nif_not_loaded).

-spec size(handle()) -> size() | {error, error()}.
size(_Handle) ->
    erlang:nif_error(nif_not_loaded).

'$tame'(_Run, _Ref, _Args) ->
    erlang:nif_error(nif_not_loaded).
