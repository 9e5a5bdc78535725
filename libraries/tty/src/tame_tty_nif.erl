%% The NIFs of c_src/tame_tty.c, and nothing else: tame_tty_session calls them. A handle belongs to
%% the process that acquired it; when that one ends, the terminal is turned back.
-module(tame_tty_nif).

-export([acquire/0, raw/2, cooked/1, release/1]).
-export([await_input/2, await_output/2, input/1, output/2, size/1]).
-export(['$tame'/3]).

-export_type([handle/0, error/0, size/0]).

-nifs([acquire/0, raw/2, cooked/1, release/1, '$tame'/3]).
-nifs([await_input/2, await_output/2, input/1, output/2, size/1]).
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

%% Raw from now on; what is to be written before it is turned back has at most 256 bytes.
-spec raw(handle(), binary()) -> ok | {error, error()}.
raw(_Handle, _Leave) ->
    erlang:nif_error(nif_not_loaded).

-spec cooked(handle()) -> ok | {error, closed}.
cooked(_Handle) ->
    erlang:nif_error(nif_not_loaded).

%% Turns it back, and closes it.
-spec release(handle()) -> ok.
release(_Handle) ->
    erlang:nif_error(nif_not_loaded).

%% Then {select, Handle, Ref, ready_input} comes once.
-spec await_input(handle(), reference()) -> ok | {error, error()}.
await_input(_Handle, _Ref) ->
    erlang:nif_error(nif_not_loaded).

%% Then {select, Handle, Ref, ready_output} comes once.
-spec await_output(handle(), reference()) -> ok | {error, error()}.
await_output(_Handle, _Ref) ->
    erlang:nif_error(nif_not_loaded).

-spec input(handle()) -> {ok, binary()} | again | {error, error()}.
input(_Handle) ->
    erlang:nif_error(nif_not_loaded).

%% As much as the terminal takes now.
-spec output(handle(), binary()) -> {ok, non_neg_integer()} | again | {error, error()}.
output(_Handle, _Bytes) ->
    erlang:nif_error(nif_not_loaded).

-spec size(handle()) -> size() | {error, error()}.
size(_Handle) ->
    erlang:nif_error(nif_not_loaded).

'$tame'(_Run, _Ref, _Args) ->
    erlang:nif_error(nif_not_loaded).
