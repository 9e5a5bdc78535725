%% The processes of the application tame, and the owner of its tables: those live as long as the
%% application does, whichever process dies.
-module(tame_sup).
-behaviour(supervisor).

-export([start_link/0]).
-export([stop/1]).

%% Internal.
-export([init/1]).

-spec start_link() -> {ok, pid()} | {error, term()}.
start_link() ->
    case supervisor:start_link({local, ?MODULE}, ?MODULE, []) of
        {ok, Sup} -> {ok, Sup};
        {error, Reason} -> {error, Reason}
    end.

%% For the process that started it: an application that does not start after all.
-spec stop(pid()) -> ok.
stop(Sup) ->
    Monitor = monitor(process, Sup),
    true = unlink(Sup),
    true = exit(Sup, shutdown),
    receive
        {'DOWN', Monitor, process, Sup, _} -> ok
    end.

-spec init([]) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init([]) ->
    ok = tame_registry:new(),
    ok = tame_library:new(),
    ok = tame_given:new(),
    Children = [
        #{id => tame_job_rates, start => {tame_job_rates, start_link, []}},
        #{
            id => tame_isolation_sup,
            start => {tame_isolation_sup, start_link, []},
            type => supervisor,
            shutdown => infinity
        }
    ],
    {ok, {#{strategy => one_for_one, intensity => 20, period => 10}, Children}}.
