%% Checks in C whether a binary is UTF-8. It may be of any size: no call holds a scheduler for long.
-module(utf8).

-export([valid/1]).

-compile({parse_transform, tame_job}).

-tame([valid/1]).
-on_load(load/0).

load() ->
    erlang:load_nif(filename:join(code:priv_dir(utf8), "utf8"), 0).

-spec valid(binary()) -> boolean().

valid_nif(_Binary) ->
    erlang:nif_error(nif_not_loaded).
