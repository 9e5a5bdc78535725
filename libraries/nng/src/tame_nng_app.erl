%% Starts the readers, and keeps the driver loaded. A reader that dies closes the sockets that wait
%% with it, and no others.
-module(tame_nng_app).
-behaviour(application).
-behaviour(supervisor).

-export([start/2, stop/1]).
%% Internal.
-export([init/1]).

-spec start(application:start_type(), term()) -> {ok, pid()} | {error, term()}.
start(_, _) ->
    supervisor:start_link({local, tame_nng_sup}, ?MODULE, []).

-spec stop(term()) -> ok.
stop(_) ->
    ok.

%% A driver is loaded for as long as a process lives that has loaded it: this one.
-spec init([]) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init([]) ->
    ok = tame_nng_by_driver:load(),
    tame_fd_readers:init(tame_nng_nif).
