%% Starts the readers.
-module(tame_tcp_app).
-behaviour(application).
-behaviour(supervisor).

-export([start/2, stop/1]).
%% Internal.
-export([init/1]).

-spec start(application:start_type(), term()) -> {ok, pid()} | {error, term()}.
start(_, _) ->
    supervisor:start_link({local, tame_tcp_sup}, ?MODULE, []).

-spec stop(term()) -> ok.
stop(_) ->
    ok.

%% A reader that dies closes the sockets that wait with it, and no others.
-spec init([]) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init([]) ->
    Readers = [
        #{id => Name, start => {tame_tcp_reader, start_link, [Name]}}
     || Name <- tuple_to_list(tame_tcp_reader:names())
    ],
    {ok, {#{strategy => one_for_one, intensity => 10, period => 10}, Readers}}.
