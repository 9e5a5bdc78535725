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
-export([spin_bounded/1]).
-export([running/0]).

-compile({parse_transform, tame_job}).

-nifs([running/0]).
-tame([
    spin/1,
    spin_inline/1,
    spin_yielding/1,
    spin_dirty/1,
    spin_dirty_io/1,
    spin_yielding_dirty/1,
    spin_thread/1,
    spin_pool/1,
    spin_bounded/1
]).

-on_load(load/0).

load() ->
    erlang:load_nif(filename:rootname(tame_labs_native:path("tame_spin.so")), 0).

%% Where it fits: inline, then yielding, then in the pool when much is left.
-spec spin(non_neg_integer()) -> ok.

%% To the end in one go, on the caller's scheduler.
-spec spin_inline(non_neg_integer()) -> ok.

%% In slices on the caller's scheduler.
-spec spin_yielding(non_neg_integer()) -> ok.

%% In one go on a dirty CPU scheduler.
-spec spin_dirty(non_neg_integer()) -> ok.

%% In one go on a dirty I/O scheduler.
-spec spin_dirty_io(non_neg_integer()) -> ok.

%% In slices on dirty CPU schedulers.
-spec spin_yielding_dirty(non_neg_integer()) -> ok.

%% On a thread made for the call.
-spec spin_thread(non_neg_integer()) -> ok.

%% In the library's own pool of threads.
-spec spin_pool(non_neg_integer()) -> ok.

%% There too, four at a time, while 16 calls may wait; the next one raises {tame, busy}.
-spec spin_bounded(non_neg_integer()) -> ok.

%% How many spins have begun and not ended, whether or not somebody still waits for them.
-spec running() -> non_neg_integer().
running() ->
    erlang:nif_error(nif_not_loaded).
