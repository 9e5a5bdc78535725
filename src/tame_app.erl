%% The application tame: starts tame_sup, and isolates the modules that its configuration names:
%%
%%     {tame, [{isolate, [jiffy, {fast_yaml, #{hosts => 2, deadline_ms => 5000}}]}]}
%%
%% One that cannot be isolated is logged, and works as without tame.
-module(tame_app).
-behaviour(application).

-export([start/2]).
-export([stop/1]).

-spec start(application:start_type(), term()) -> {ok, pid()} | {error, term()}.
start(_Type, _Args) ->
    case tame_sup:start_link() of
        {ok, Sup} ->
            lists:foreach(fun isolate/1, application:get_env(tame, isolate, [])),
            {ok, Sup};
        {error, Reason} ->
            {error, Reason}
    end.

isolate({Module, Options}) ->
    case tame_isolation:isolate(Module, Options) of
        ok -> ok;
        {error, {_, Text}} -> logger:error("tame: ~p is not isolated: ~ts", [Module, Text])
    end;
isolate(Module) ->
    isolate({Module, #{}}).

-spec stop(term()) -> ok.
stop(_State) ->
    ok.
