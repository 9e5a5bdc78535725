%% Binds the jobs that bench/promises.exs measures (bench_jobs_nif.c), and what they are compared with.
-module(bench_jobs).

-export([cost/2]).
-export([cost_inline/2]).
-export([cost_yielding/2]).
-export([cost_pool/2]).
-export([sum/1]).
-export([sum_uncut/1]).
-export([list/1]).
-export([ignore/1]).
-export([ignore_yielding/1]).
-export([ignore_pool/1]).
-export([zeros/1]).
-export([zeros_uncut/1]).

-compile({parse_transform, tame_job}).

-nifs([sum_uncut/1, zeros_uncut/1]).
-tame([
    cost/2,
    cost_inline/2,
    cost_yielding/2,
    cost_pool/2,
    sum/1,
    list/1,
    ignore/1,
    ignore_yielding/1,
    ignore_pool/1,
    zeros/1
]).

-on_load(load/0).

load() ->
    erlang:load_nif(filename:join(filename:dirname(code:which(?MODULE)), ?MODULE_STRING), 0).

%% Units, each of Rounds rounds of some ns.
-spec cost(non_neg_integer(), non_neg_integer()) -> ok.
-spec cost_inline(non_neg_integer(), non_neg_integer()) -> ok.
-spec cost_yielding(non_neg_integer(), non_neg_integer()) -> ok.
-spec cost_pool(non_neg_integer(), non_neg_integer()) -> ok.

%% The sum of a list of small integers, in steps.
-spec sum([integer()]) -> integer().

%% The same in one NIF.
-spec sum_uncut([integer()]) -> integer().
sum_uncut(_) ->
    erlang:nif_error(nif_not_loaded).

%% [1, ..., N], built in slices.
-spec list(non_neg_integer()) -> [pos_integer()].

%% One short step; nothing reads the argument.
-spec ignore(term()) -> ok.
-spec ignore_yielding(term()) -> ok.
-spec ignore_pool(term()) -> ok.

%% That number of bytes, all zero, written in steps into an output of tame.h.
-spec zeros(non_neg_integer()) -> binary().

%% The same in one NIF, into what enif_alloc_binary gives.
-spec zeros_uncut(non_neg_integer()) -> binary().
zeros_uncut(_) ->
    erlang:nif_error(nif_not_loaded).
