%% The options of a server: each with its default, what it may be, and that in words.
-module(tame_http_options).

-export([check/1]).
-export([is_static/1]).
-export([are_headers/1]).
-export([static/1]).
-export([native/1]).
-export([posix/1]).
-export([is_ms/1]).

-export_type([checked/0]).

-type checked() :: #{atom() => term()}.

-define(MAX_MS, 16#FFFFFFF).

%% Of the native half: the longest name, and how many.
-define(MAX_NAME, 65535).
-define(MAX_HEADERS, 24576).

-define(REFUSED, [<<"transfer-encoding">>, <<"upgrade">>]).

%% {Key, Default, Check, Expected}
table() ->
    Count = fun(Max) -> {fun(V) -> is_integer(V) andalso V >= 1 andalso V =< Max end,
                         "a number from 1 to " ++ integer_to_list(Max)} end,
    Ms = Count(?MAX_MS),
    Boolean = {fun is_boolean/1, "true or false"},
    [
        {handler, required, {fun(V) -> is_function(V, 1) end, "a fun of arity 1"}},
        {name, undefined, {fun is_atom/1, "an atom"}},
        {ip, {0, 0, 0, 0}, {fun(V) -> inet:ntoa(V) =/= {error, einval} end,
                            "an IP address as a tuple"}},
        {port, 0, {fun(V) -> is_integer(V) andalso V >= 0 andalso V =< 65535 end,
                   "a number from 0 to 65535"}},
        {tls, undefined, {fun is_tls/1, "#{certfile := Path, keyfile := Path}"}},
        {h2c, true, Boolean},
        {io_threads, min(64, max(1, erlang:system_info(schedulers) div 2)), Count(64)},
        {run, process, {fun(V) -> V =:= process orelse V =:= acceptor end, "process or acceptor"}},
        {acceptors, 1, Count(64)},
        {credit, 256, Count(65536)},
        {max_in_flight, 10000, Count(1 bsl 20)},
        {max_waiting, 10000, Count(1 bsl 20)},
        {max_connections, 10000, Count(1 bsl 20)},
        {max_streams, 128, Count(65536)},
        {body, whole, {fun(V) -> V =:= whole orelse V =:= stream end, "whole or stream"}},
        {body_limit, 8 bsl 20, Count(1 bsl 50)},
        {body_memory, 256 bsl 20, Count(1 bsl 50)},
        {header_timeout_ms, 10000, Ms},
        {request_timeout_ms, 60000, Ms},
        {idle_timeout_ms, 60000, Ms},
        {wait_timeout_ms, 5000, Ms},
        {shutdown_ms, 5000, {fun is_ms/1,
                             "a number from 0 to " ++ integer_to_list(?MAX_MS)}},
        {static, #{}, {fun is_static/1,
                       "#{Path => {Status, Headers, Body}}, paths that begin with /, statuses from "
                       "200 to 599, headers of HTTP, bodies of iodata"}}
    ].

%% A time, or none.
-spec is_ms(term()) -> boolean().
is_ms(V) -> is_integer(V) andalso V >= 0 andalso V =< ?MAX_MS.

is_tls(undefined) -> true;
is_tls(#{certfile := Cert, keyfile := Key} = Tls) ->
    map_size(Tls) =:= 2 andalso is_path(Cert) andalso is_path(Key);
is_tls(_) -> false.

%% A binary may be of any bytes, as names of files are.
is_path(Path) when is_binary(Path) -> true;
is_path(Path) -> is_list(unicode:characters_to_list(Path)).

-spec is_static(term()) -> boolean().
is_static(Static) ->
    is_map(Static) andalso
        lists:all(fun(Route) -> holds(fun is_route/1, Route) end, maps:to_list(Static)).

is_route({<<"/", _/binary>>, {Status, Headers, Body}}) ->
    tame_http_answer:is_status(Status) andalso are_headers(Headers) andalso iolist_size(Body) >= 0;
is_route(_) ->
    false.

-spec are_headers(term()) -> boolean().
are_headers(Headers) -> holds(fun check_headers/1, Headers).

check_headers(Headers) ->
    List = tame_http_answer:headers(Headers),
    length(List) =< ?MAX_HEADERS andalso lists:all(fun is_header/1, List).

%% As HTTP has them (RFC 9110, 5.1 and 5.5), and none of those that the native half refuses.
is_header({Name, Value}) ->
    iolist_size(Name) =< ?MAX_NAME andalso has(Name, "^[!#$%&'*+.^_`|~0-9A-Za-z-]+\\z") andalso
        not has(Value, "[\\x00-\\x08\\x0a-\\x1f\\x7f]") andalso
        not lists:member(string:lowercase(iolist_to_binary(Name)), ?REFUSED).

has(Text, Pattern) ->
    re:run(Text, Pattern, [{capture, none}]) =:= match.

%% With every key there, or a sentence on the first that is wrong.
-spec check(map()) -> {ok, checked()} | {error, {bad_option, atom() | term(), binary()}}.
check(Given) ->
    Table = table(),
    case maps:keys(Given) -- [Key || {Key, _, _} <- Table] of
        [Unknown | _] ->
            Known = lists:join(", ", [atom_to_list(Key) || {Key, _, _} <- Table]),
            {error, {bad_option, Unknown, text("expected one of ~ts", [Known])}};
        [] ->
            check(Table, Given, #{})
    end.

check([], _, Checked) ->
    {ok, Checked};
check([{Key, Default, {Check, Expected}} | Table], Given, Checked) ->
    case Given of
        #{Key := Value} ->
            case holds(Check, Value) of
                true -> check(Table, Given, Checked#{Key => Value});
                false ->
                    Text = text("got ~0tP, expected ~ts", [Value, 12, Expected]),
                    {error, {bad_option, Key, Text}}
            end;
        #{} when Default =:= required ->
            {error, {bad_option, Key, text("missing, expected ~ts", [Expected])}};
        #{} ->
            check(Table, Given, Checked#{Key => Default})
    end.

%% Some checks fail on what they do not know, OTP's own among them.
holds(Check, Value) ->
    try
        Check(Value)
    catch
        error:_ -> false
    end.

text(Format, Arguments) -> unicode:characters_to_binary(io_lib:format(Format, Arguments)).

%% As tame_http_nif:set_static/2 takes them.
-spec static(#{binary() => tame_http:answer()}) ->
    [{binary(), 200..599, tame_http_nif:headers(), binary()}].
static(Static) ->
    [
        {Path, Status, tame_http_answer:headers(Headers), iolist_to_binary(Body)}
     || {Path, {Status, Headers, Body}} <- maps:to_list(Static)
    ].

%% As tame_http_nif:open/1 takes them.
-spec native(checked()) -> {ok, map()} | {error, term()}.
native(#{ip := Ip, tls := Tls} = Options) ->
    case pem(Tls) of
        {ok, Pem} -> {ok, Options#{ip := address(tuple_to_list(Ip)), tls := Pem}};
        {error, Reason} -> {error, Reason}
    end.

address(Octets) when length(Octets) =:= 4 -> list_to_binary(Octets);
address(Words) -> <<<<Word:16>> || Word <- Words>>.

pem(undefined) ->
    {ok, undefined};
pem(#{certfile := CertFile, keyfile := KeyFile}) ->
    case {file:read_file(CertFile), file:read_file(KeyFile)} of
        {{ok, Cert}, {ok, Key}} -> {ok, {Cert, Key}};
        {{error, Reason}, _} -> unreadable(CertFile, Reason);
        {_, {error, Reason}} -> unreadable(KeyFile, Reason)
    end.

unreadable(File, Reason) ->
    {error, {tls, text("~ts: ~ts", [File, file:format_error(Reason)])}}.

%% What OTP calls the errors that listening has; another stays a number.
-spec posix(non_neg_integer()) -> atom() | non_neg_integer().
posix(1) -> eperm;
posix(13) -> eacces;
posix(24) -> emfile;
posix(98) -> eaddrinuse;
posix(99) -> eaddrnotavail;
posix(Errno) -> Errno.
