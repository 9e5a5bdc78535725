%% The application: servers that nobody else supervises.
-module(tame_http_app).
-behaviour(application).

-export([start/2]).
-export([stop/1]).

-spec start(application:start_type(), term()) -> {ok, pid()} | {error, term()}.
start(_Type, _Args) -> tame_http_sup:start_link().

-spec stop(term()) -> ok.
stop(_State) -> ok.
