%% Checks in C that a binary is UTF-8.
-module(utf8).

-export([check/1]).

-on_load(load/0).

load() ->
    erlang:load_nif(filename:join(code:priv_dir(utf8), "utf8"), 0).

%% Returns the binary itself when it is UTF-8; badarg when not.
-spec check(binary()) -> binary().
check(_Binary) ->
    erlang:nif_error(nif_not_loaded).
