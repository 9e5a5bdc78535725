%% The application tame: starts tame_sup, and nothing else.
-module(tame_app).
-behaviour(application).

-export([start/2]).
-export([stop/1]).

-spec start(application:start_type(), term()) -> supervisor:startlink_ret().
start(_Type, _Args) ->
    tame_sup:start_link().

-spec stop(term()) -> ok.
stop(_State) ->
    ok.
