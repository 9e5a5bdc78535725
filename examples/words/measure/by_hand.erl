%% The dirty NIF that the job is compared with.
-module(by_hand).

-export([count/2]).

-nifs([count/2]).
-on_load(load/0).

load() ->
    erlang:load_nif(filename:rootname(code:which(?MODULE)), 0).

-spec count(binary(), non_neg_integer()) -> #{binary() => pos_integer()}.
count(_Text, _Least) ->
    erlang:nif_error(nif_not_loaded).
