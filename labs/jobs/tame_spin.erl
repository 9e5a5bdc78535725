%% Keeps a CPU busy for a time, in every placement: it shows what native work of a known
%% length does to others (c_src/natives/spin/).
%%
%% The time is given in microseconds and done as work: as many rounds of arithmetic as the machine
%% does in that time undisturbed, by a rate that the first call measures (0.3 ms) and the library
%% remembers. Time for which others had the CPU does not count, so a disturbed call takes longer.
%%
%%     1> timer:tc(tame_spin, spin_dirty, [10000]).
%%     {10114,ok}
%%
%% All return `ok' and raise badarg unless the time is an integer from 0 to 10^12.
-module(tame_spin).

-export([spin/1]).
-export([spin_inline/1]).
-export([spin_yielding/1]).
-export([spin_dirty/1]).
-export([spin_dirty_io/1]).
-export([spin_yielding_dirty/1]).
-export([spin_thread/1]).
-export([spin_pool/1]).
-export([running/0]).

-nifs([
    spin_nif/1,
    spin_inline_nif/1,
    spin_yielding_nif/1,
    spin_dirty_nif/1,
    spin_dirty_io_nif/1,
    spin_yielding_dirty_nif/1,
    spin_thread_nif/1,
    spin_pool_nif/1,
    running_nif/0
]).

-on_load(load/0).

load() ->
    erlang:load_nif(filename:rootname(tame_labs_native:path("tame_spin.so")), 0).

%% Where it fits: inline, then yielding, then in the pool when much is left.
-spec spin(non_neg_integer()) -> ok.
spin(Us) ->
    tame:value(spin_nif(Us), fun spin_nif/1, {?MODULE, spin, [Us]}).

%% To the end in one go, on the caller's scheduler.
-spec spin_inline(non_neg_integer()) -> ok.
spin_inline(Us) ->
    tame:value(spin_inline_nif(Us), fun spin_inline_nif/1, {?MODULE, spin_inline, [Us]}).

%% In slices on the caller's scheduler.
-spec spin_yielding(non_neg_integer()) -> ok.
spin_yielding(Us) ->
    tame:value(spin_yielding_nif(Us), fun spin_yielding_nif/1, {?MODULE, spin_yielding, [Us]}).

%% In one go on a dirty CPU scheduler.
-spec spin_dirty(non_neg_integer()) -> ok.
spin_dirty(Us) ->
    tame:value(spin_dirty_nif(Us), fun spin_dirty_nif/1, {?MODULE, spin_dirty, [Us]}).

%% In one go on a dirty I/O scheduler.
-spec spin_dirty_io(non_neg_integer()) -> ok.
spin_dirty_io(Us) ->
    tame:value(spin_dirty_io_nif(Us), fun spin_dirty_io_nif/1, {?MODULE, spin_dirty_io, [Us]}).

%% In slices on dirty CPU schedulers.
-spec spin_yielding_dirty(non_neg_integer()) -> ok.
spin_yielding_dirty(Us) ->
    Call = {?MODULE, spin_yielding_dirty, [Us]},
    tame:value(spin_yielding_dirty_nif(Us), fun spin_yielding_dirty_nif/1, Call).

%% On a thread made for the call.
-spec spin_thread(non_neg_integer()) -> ok.
spin_thread(Us) ->
    tame:value(spin_thread_nif(Us), fun spin_thread_nif/1, {?MODULE, spin_thread, [Us]}).

%% In the library's own pool of threads.
-spec spin_pool(non_neg_integer()) -> ok.
spin_pool(Us) ->
    tame:value(spin_pool_nif(Us), fun spin_pool_nif/1, {?MODULE, spin_pool, [Us]}).

%% How many spins have begun and not ended, whether or not somebody still waits for them.
-spec running() -> non_neg_integer().
running() ->
    tame:value(running_nif(), fun running_nif/0, {?MODULE, running, []}).

spin_nif(_Us) -> erlang:nif_error(nif_not_loaded).
spin_inline_nif(_Us) -> erlang:nif_error(nif_not_loaded).
spin_yielding_nif(_Us) -> erlang:nif_error(nif_not_loaded).
spin_dirty_nif(_Us) -> erlang:nif_error(nif_not_loaded).
spin_dirty_io_nif(_Us) -> erlang:nif_error(nif_not_loaded).
spin_yielding_dirty_nif(_Us) -> erlang:nif_error(nif_not_loaded).
spin_thread_nif(_Us) -> erlang:nif_error(nif_not_loaded).
spin_pool_nif(_Us) -> erlang:nif_error(nif_not_loaded).
running_nif() -> erlang:nif_error(nif_not_loaded).
