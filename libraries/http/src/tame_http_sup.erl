%% The servers that tame_http:start/1 started, and the table of all servers.
-module(tame_http_sup).
-behaviour(supervisor).

-export([start_link/0]).
-export([start_server/1]).
%% Internal.
-export([init/1]).

-spec start_link() -> {ok, pid()} | {error, term()}.
start_link() -> supervisor:start_link({local, ?MODULE}, ?MODULE, []).

-spec start_server(tame_http_options:checked()) -> {ok, pid()} | {error, term()}.
start_server(Options) ->
    case supervisor:start_child(?MODULE, [Options]) of
        {ok, Sup} when is_pid(Sup) -> {ok, Sup};
        {error, Reason} -> {error, Reason}
    end.

-spec init([]) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init([]) ->
    ok = tame_http_servers:new(),
    Server = #{
        id => server,
        start => {tame_http_server_sup, start_link, []},
        type => supervisor,
        restart => temporary
    },
    {ok, {#{strategy => simple_one_for_one}, [Server]}}.
