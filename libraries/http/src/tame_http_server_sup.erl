%% The processes of one server:
%%
%%     tame_http_server      owns the native server: sockets, I/O threads. Its end is theirs.
%%     acceptors             take requests; one that ends is started again, requests wait for it
%%     tame_http_gate        lets connections in, once all is there; at the end lets requests finish
%%
%% one_for_all: acceptors belong to their native server, and that one ends with the gate.
-module(tame_http_server_sup).
-behaviour(supervisor).

-export([start_link/1]).
-export([stop/2]).
%% Internal.
-export([start_acceptors/2]).
-export([init/1]).

-spec start_link(tame_http_options:checked()) -> {ok, pid()} | {error, term()}.
start_link(#{name := undefined} = Options) -> supervisor:start_link(?MODULE, {server, Options});
start_link(#{name := Name} = Options) ->
    supervisor:start_link({local, Name}, ?MODULE, {server, Options}).

%% Soon: by one of its children, for which it would wait.
-spec stop(pid(), term()) -> ok.
stop(Sup, Reason) ->
    _ = spawn(fun() ->
        try
            gen_server:stop(Sup, Reason, infinity)
        catch
            %% It has ended, or somebody else ends it.
            exit:_ -> ok
        end
    end),
    ok.

-spec start_acceptors(pid(), tame_http_options:checked()) -> {ok, pid()} | {error, term()}.
start_acceptors(Sup, Options) -> supervisor:start_link(?MODULE, {acceptors, Sup, Options}).

-spec init(term()) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init({server, #{shutdown_ms := ShutdownMs} = Options}) ->
    Sup = self(),
    Children = [
        #{id => server, start => {tame_http_server, start_link, [Sup, Options]}},
        #{id => acceptors, start => {?MODULE, start_acceptors, [Sup, Options]}, type => supervisor},
        #{
            id => gate,
            start => {tame_http_gate, start_link, [Sup, ShutdownMs]},
            shutdown => ShutdownMs + 2000
        }
    ],
    {ok, {#{strategy => one_for_all}, Children}};
init({acceptors, Sup, #{acceptors := N} = Options}) ->
    %% The gate has given requests their time.
    Acceptor = fun(I) ->
        #{
            id => I,
            start => {tame_http_acceptor, start_link, [Sup, Options]},
            shutdown => brutal_kill
        }
    end,
    %% A user's handler may end its acceptor again and again: others are served as long as one a
    %% second does so, and the server ends where all do nothing else.
    Flags = #{strategy => one_for_one, intensity => 10 * N, period => 10},
    {ok, {Flags, [Acceptor(I) || I <- lists:seq(1, N)]}}.
