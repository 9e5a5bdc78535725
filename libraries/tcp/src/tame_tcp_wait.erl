%% How long a process waits for a socket, the end of a wait that lasted too long, and the end of a
%% socket, which waits for those that use it.
-module(tame_tcp_wait).

-export([deadline/1]).
-export([left/1]).
-export([over/3]).
-export([close/1]).

-export_type([deadline/0]).

%% Of the VM's monotonic clock, ms.
-type deadline() :: integer() | infinity.

-spec deadline(timeout()) -> deadline().
deadline(infinity) -> infinity;
deadline(Ms) -> now_ms() + Ms.

-spec left(deadline()) -> timeout().
left(infinity) -> infinity;
left(Deadline) -> max(0, Deadline - now_ms()).

%% When the message of the wait is on its way, it is received.
-spec over(tame_tcp_nif:socket(), read | write, reference()) -> {error, timeout}.
over(Socket, Direction, Ref) ->
    case tame_tcp_nif:cancel(Socket, Direction) of
        done -> {error, timeout};
        sent -> receive {tame_fd, Ref, _} -> {error, timeout} end
    end.

%% Returns when it is closed.
-spec close(tame_tcp_nif:socket()) -> ok.
close(Socket) ->
    Ref = make_ref(),
    case tame_tcp_nif:close(Socket, Ref) of
        ok -> ok;
        wait -> receive {tame_fd, Ref, closed} -> ok end
    end.

now_ms() -> erlang:monotonic_time(millisecond).
