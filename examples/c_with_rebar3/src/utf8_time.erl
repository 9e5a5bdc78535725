%% How long does one call of utf8:check/1 hold its scheduler?
-module(utf8_time).

-export([run/0]).

%% Prints p50 and p99 of a thousand calls for each size.
-spec run() -> ok.
run() ->
    io:format("tame ~s~n~10s ~12s ~12s~n", [tame:version(), "bytes", "p50 us", "p99 us"]),
    lists:foreach(fun time/1, [16, 1024, 65536, 1048576]).

time(Bytes) ->
    Text = binary:copy(<<"x">>, Bytes),
    Histogram = tame_histogram:new(),
    {ok, _} = tame_meter:run(fun check/2, none, Text, 1000, Histogram),
    Us = fun(Percentile) -> tame_histogram:percentile(Histogram, Percentile) / 1000 end,
    io:format("~10b ~12.3f ~12.3f~n", [Bytes, Us(50.0), Us(99.0)]).

check(none, Text) ->
    utf8:check(Text).
