%% The processes of the application tame. They know nothing of each other, so one that fails is
%% started again by itself.
-module(tame_sup).
-behaviour(supervisor).

-export([start_link/0]).

%% Internal.
-export([init/1]).

-spec start_link() -> {ok, pid()} | {error, term()}.
start_link() ->
    case supervisor:start_link({local, ?MODULE}, ?MODULE, []) of
        {ok, Sup} -> {ok, Sup};
        {error, Reason} -> {error, Reason}
    end.

-spec init([]) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init([]) ->
    Children = [
        #{id => tame_reports, start => {tame_reports, start_link, []}},
        %% Hosts are drained when it ends, each for 5 s at most, all at once.
        #{id => tame_isolation, start => {tame_isolation, start_link, []}, shutdown => 15000}
    ],
    {ok, {#{strategy => one_for_one}, Children}}.
