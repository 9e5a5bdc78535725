%% Waits for sockets that have credit, in the place of their owners, and receives when they are
%% ready.
%%
%% The socket itself is the reference of the wait, so that a reader knows no socket but the one
%% that is ready, and nothing has to be told to it. A socket has always the same reader.
-module(tame_nng_reader).

-export([start_link/1]).
-export([names/0]).
-export([of_socket/1]).
%% Internal.
-export([init/1]).

-define(READERS, 4).

-spec start_link(atom()) -> {ok, pid()}.
start_link(Name) ->
    proc_lib:start_link(?MODULE, init, [Name]).

%% Registered by these names.
-spec names() -> tuple().
names() ->
    {tame_nng_reader_1, tame_nng_reader_2, tame_nng_reader_3, tame_nng_reader_4}.

%% The reader of this socket; undefined when the application does not run.
-spec of_socket(tame_nng_nif:socket()) -> pid() | undefined.
of_socket(Socket) ->
    whereis(element(1 + erlang:phash2(Socket, ?READERS), names())).

-spec init(atom()) -> no_return().
init(Name) ->
    true = register(Name, self()),
    _ = process_flag(message_queue_data, off_heap),
    ok = proc_lib:init_ack({ok, self()}),
    loop().

loop() ->
    receive
        {tame_fd, Socket, ready} ->
            ok = tame_nng_nif:push(Socket),
            loop();
        _ ->
            loop()
    end.
