%% What is asked of a socket besides messages, as bytes; c_src/control.h has the other half.
-module(tame_nng_control).

-export([listen/1, dial/2, hang_up/1, url/1]).
-export([set/2, get/1, is_option/1]).
-export([statistics/0]).
-export([reply/1, value/2]).

-type request() :: {pos_integer(), binary()}.
-type end_point() :: {listener | dialer, pos_integer()}.

%% ---- requests -----------------------------------------------------------------------------------

-spec listen(binary()) -> request().
listen(Url) -> {1, Url}.

-spec dial(binary(), boolean()) -> request().
dial(Url, false) -> {2, Url};
dial(Url, true) -> {3, Url}.

-spec hang_up(end_point()) -> request().
hang_up(EndPoint) -> {4, end_point(EndPoint)}.

-spec url(end_point()) -> request().
url(EndPoint) -> {5, end_point(EndPoint)}.

end_point({listener, Id}) -> <<1, Id:32>>;
end_point({dialer, Id}) -> <<0, Id:32>>.

%% unknown: no such option, or no such value of it.
-spec set(term(), term()) -> request() | unknown.
set(Name, Value) ->
    case encode(type(Name), Value) of
        unknown -> unknown;
        Bytes -> {6, <<(name(Name))/binary, Bytes/binary>>}
    end.

-spec get(term()) -> request() | unknown.
get(Name) ->
    case type(Name) of
        Type when Type =:= unknown; Type =:= topic -> unknown;
        _ -> {7, name(Name)}
    end.

-spec statistics() -> request().
statistics() -> {8, <<>>}.

name(Name) ->
    Bytes = atom_to_binary(Name, latin1),
    <<(byte_size(Bytes)), Bytes/binary>>.

-spec is_option(term()) -> boolean().
is_option(Name) -> type(Name) =/= unknown.

type(recv_buffer) -> integer;
type(send_buffer) -> integer;
type(recv_max_size) -> integer;
type(reconnect_min) -> ms;
type(reconnect_max) -> ms;
type(ttl) -> integer;
type(nodelay) -> boolean;
type(keepalive) -> boolean;
type(resend_time) -> ms;
type(survey_time) -> ms;
type(prefer_new) -> boolean;
type(subscribe) -> topic;
type(unsubscribe) -> topic;
type(_) -> unknown.

encode(boolean, true) -> <<1:64>>;
encode(boolean, false) -> <<0:64>>;
encode(ms, infinity) -> <<-1:64>>;
encode(Type, N) when (Type =:= ms orelse Type =:= integer), is_integer(N), N >= 0, N < 1 bsl 63 ->
    <<N:64>>;
encode(topic, Topic) ->
    try iolist_to_binary(Topic)
    catch error:badarg -> unknown
    end;
encode(_, _) -> unknown.

%% ---- replies ------------------------------------------------------------------------------------

-spec reply(binary() | {error, atom()}) -> ok | {ok, integer() | binary()} | {error, atom()}.
reply(<<0>>) -> ok;
reply(<<1, Number:64/signed>>) -> {ok, Number};
reply(<<2, Bytes/binary>>) -> {ok, Bytes};
reply(<<3, Name/binary>>) -> {error, binary_to_atom(Name, latin1)};
reply({error, _} = Error) -> Error.

%% What an option's number means, and the numbers of the statistics.
-spec value(atom(), integer() | binary()) -> term().
value(statistics, Bytes) ->
    Names = [sent, received, sent_bytes, received_bytes, connections, refused],
    maps:from_list(lists:zip(Names, [N || <<N:64>> <= Bytes]));
value(Name, Number) ->
    case type(Name) of
        boolean -> Number =:= 1;
        ms when Number < 0 -> infinity;
        _ -> Number
    end.
