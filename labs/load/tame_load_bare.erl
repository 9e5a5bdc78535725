%% The least that a server can do: HTTP/1.1, a process for each connection, and as few system calls
%% as there are. It is what the load lab measures its own client against, because a server that
%% answers at once shows how much the client can ask for. It is no web server: a request is what
%% ends with an empty line, and has no body.
-module(tame_load_bare).

-export([protocols/0]).
-export([start/2]).
-export([start/3]).

-define(LISTEN, [
    binary, {packet, raw}, {active, false}, {reuseaddr, true}, {backlog, 1024}, {nodelay, true}
]).

-spec protocols() -> [h1].
protocols() ->
    [h1].

-spec start(inet:port_number(), h1) -> {ok, inet:port_number()} | {error, term()}.
start(Port, h1) ->
    start(Port, h1, fun tame_load_work:answer/1).

%% With another function than tame_load_work's for a path.
-spec start(inet:port_number(), h1, fun((binary()) -> {pos_integer(), binary()})) ->
    {ok, inet:port_number()} | {error, term()}.
start(Port, h1, Answer) ->
    Owner = self(),
    {Pid, Monitor} = spawn_monitor(fun() -> listen(Owner, Port, Answer) end),
    receive
        {Pid, Listening} ->
            true = demonitor(Monitor, [flush]),
            Listening;
        {'DOWN', Monitor, process, Pid, Reason} ->
            {error, Reason}
    end.

listen(Owner, Port, Answer) ->
    case gen_tcp:listen(Port, [{ip, {127, 0, 0, 1}} | ?LISTEN]) of
        {ok, Socket} ->
            Owner ! {self(), inet:port(Socket)},
            accept(Socket, Answer);
        {error, Reason} ->
            Owner ! {self(), {error, Reason}}
    end.

accept(Listening, Answer) ->
    {ok, Socket} = gen_tcp:accept(Listening),
    Pid = spawn(fun() -> receive go -> connection(Socket, <<>>, Answer) end end),
    ok = gen_tcp:controlling_process(Socket, Pid),
    Pid ! go,
    accept(Listening, Answer).

connection(Socket, Before, Answer) ->
    case gen_tcp:recv(Socket, 0) of
        {ok, Bytes} ->
            {Answers, Rest} = answers(<<Before/binary, Bytes/binary>>, Answer, []),
            case gen_tcp:send(Socket, Answers) of
                ok -> connection(Socket, Rest, Answer);
                {error, _} -> ok
            end;
        {error, _} ->
            ok
    end.

answers(Bytes, Answer, Answers) ->
    case binary:split(Bytes, <<"\r\n\r\n">>) of
        [<<"GET ", Request/binary>>, Rest] ->
            [Path, _] = binary:split(Request, <<" ">>),
            answers(Rest, Answer, [Answers | text(Answer(Path))]);
        [Rest] ->
            {Answers, Rest}
    end.

text({Status, Body}) ->
    Length = integer_to_binary(byte_size(Body)),
    Code = integer_to_binary(Status),
    [<<"HTTP/1.1 ">>, Code, <<" -\r\ncontent-length: ">>, Length, <<"\r\n\r\n">>, Body].
