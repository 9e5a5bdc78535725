%% Messages for credit: how much a socket has, who reads for it, and none while it changes hands.
-module(tame_tcp_active).

-export([set/2]).
-export([set_accepted/2, of_accepted/1]).
-export([give/2]).

-type active() :: boolean() | once | integer().
-type reason() :: atom().

%% Of a listening socket: what those that it accepts begin with. not_started: credit needs the
%% readers of the application.
-spec set(tame_tcp_nif:socket(), active() | term()) -> ok | {error, reason() | not_started}.
set(Socket, Active) ->
    case tame_tcp_options:is_active(Active) of
        true -> set(Socket, Active, reader(Socket));
        false -> {error, einval}
    end.

set(Socket, Active, undefined) ->
    case set_accepted(Socket, Active) of
        ok -> ok;
        {error, _} when Active =:= false -> ok;
        {error, _} -> {error, not_started}
    end;
set(Socket, Active, Reader) ->
    case credit(Socket, Active, Reader) of
        listens -> set_accepted(Socket, Active);
        Other -> Other
    end.

credit(Socket, false, Reader) -> withdraw(Socket, Reader);
credit(Socket, Active, Reader) -> tame_tcp_nif:credit(Socket, Active, Reader).

withdraw(_, undefined) ->
    ok;
withdraw(Socket, Reader) ->
    case tame_tcp_nif:passive(Socket, Reader) of
        %% A read for credit is at work: after it nothing comes any more.
        again ->
            true = erlang:yield(),
            withdraw(Socket, Reader);
        Other ->
            Other
    end.

reader(Socket) -> tame_fd_readers:of_fd(tame_tcp_nif, Socket).

%% What the sockets that this one accepts begin with, as the native side keeps it; einval: it does not
%% listen.
-spec set_accepted(tame_tcp_nif:socket(), active()) -> ok | {error, reason()}.
set_accepted(Listening, Active) ->
    tame_tcp_nif:setopt(Listening, accept_active, code(Active)).

code(false) -> 0;
code(true) -> -1;
code(once) -> 1 bsl 16;
code(Messages) -> max(0, Messages).

-spec of_accepted(integer()) -> active().
of_accepted(0) -> false;
of_accepted(-1) -> true;
of_accepted(65536) -> once;
of_accepted(Messages) -> Messages.

%% From its owner, who calls, to another. Passive meanwhile, so that the messages keep their order.
-spec give(tame_tcp_nif:socket(), pid()) -> ok | {error, reason()}.
give(Socket, Pid) ->
    Active = active(Socket),
    %% Also without credit: the message that took the last of it may be on its way.
    Withdrawn = withdraw(Socket, reader(Socket)),
    Given = tame_tcp_nif:give(Socket, Pid),
    _ = Given =:= ok andalso forward(Socket, Pid),
    _ = Withdrawn =:= ok andalso Active =/= false andalso set(Socket, Active),
    Given.

active(Socket) ->
    case tame_tcp_nif:getopt(Socket, active) of
        {ok, Active} -> Active;
        {error, _} -> false
    end.

forward(Socket, Pid) ->
    receive
        {Tag, Socket, _} = Message when Tag =:= tcp; Tag =:= tcp_error ->
            Pid ! Message,
            forward(Socket, Pid);
        {Tag, Socket} = Message when Tag =:= tcp_closed; Tag =:= tcp_passive ->
            Pid ! Message,
            forward(Socket, Pid)
    after 0 -> ok
    end.
