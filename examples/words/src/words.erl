%% Counts the words of a text in C++. The text may be of any size: no call holds a scheduler for long.
-module(words).

-export([count/2]).
-export([count_yielding/2]).

-compile({parse_transform, tame_job}).

-tame([count/2, count_yielding/2]).
-on_load(load/0).

load() ->
    erlang:load_nif(filename:join(code:priv_dir(words), "words"), 0).

%% The words that occur at least `Least' times, with how often they do.
-spec count(Text :: binary(), Least :: non_neg_integer()) -> #{binary() => pos_integer()}.

%% The same on the schedulers alone, however long it takes: what the README measures beside count/2.
-spec count_yielding(Text :: binary(), Least :: non_neg_integer()) -> #{binary() => pos_integer()}.
