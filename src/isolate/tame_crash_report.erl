%% Logs a report for each host that ended without being asked to: the library, the function, the
%% signal or status, the address, the end of its standard error, and the number of the next start;
%% or why it did not start again. A host that crashes again and again is reported once a second at
%% most; the next report says how many were left out.
-module(tame_crash_report).

-export([new/0]).
-export([log/3]).

%% Internal.
-export([format/1]).

-export_type([report/0]).
-export_type([state/0]).

-define(EVERY_MS, 1000).

%% last: when the last report was made; left_out: since then.
-opaque state() :: {Last :: never | integer(), LeftOut :: non_neg_integer()}.

%% why as tame_host:why(); address and backtrace are those of a signal, function is what ran when it
%% came (<<>>: no NIF, or unknown); stderr is the end of what the host wrote there. text: why it did
%% not start.
-type report() :: #{
    library := module(),
    %% 0: there was none.
    os_pid := non_neg_integer(),
    why := tame_host:why(),
    state := starting | up,
    up_ms := non_neg_integer(),
    start := pos_integer(),
    function => {binary(), arity()},
    address => non_neg_integer(),
    backtrace => binary(),
    stderr => binary(),
    text => unicode:chardata(),
    left_out => non_neg_integer()
}.

-spec new() -> state().
new() ->
    {never, 0}.

-spec log(report(), integer(), state()) -> state().
log(_Report, NowMs, {Last, LeftOut}) when is_integer(Last), NowMs - Last < ?EVERY_MS ->
    {Last, LeftOut + 1};
log(Report, NowMs, {_, LeftOut}) ->
    %% Not `label': Elixir's Logger drops a report whose label it does not know.
    logger:error(Report#{event => {tame, host_crashed}, left_out => LeftOut}, #{
        report_cb => fun ?MODULE:format/1
    }),
    {NowMs, 0}.

-spec format(logger:report()) -> {io:format(), [term()]}.
format(#{library := Library} = Report) ->
    {"the host of ~tp~ts ~ts; start ~b follows~ts~ts~ts", [
        Library,
        process(Report),
        ended(Report),
        maps:get(start, Report),
        left_out(Report),
        block("backtrace", maps:get(backtrace, Report, <<>>)),
        block("its last words on stderr", maps:get(stderr, Report, <<>>))
    ]}.

process(#{os_pid := 0}) -> "";
process(#{os_pid := OsPid}) -> io_lib:format(" (OS process ~b)", [OsPid]).

ended(#{text := Text}) -> ["did not start: ", Text];
ended(#{why := Why} = Report) -> [how(Why), where(Report), when_(Report)].

how(#{limit := Limit} = Why) ->
    [tame_host_limits:text(Limit), " and ", how(maps:remove(limit, Why))];
how(#{signal := Signal}) ->
    io_lib:format("died of ~tp", [Signal]);
how(#{exit_status := Status}) ->
    io_lib:format("exited with status ~b", [Status]);
how(#{killed := Why}) ->
    case because(Why) of
        unknown -> io_lib:format("was killed: ~tp", [Why]);
        Because -> ["was killed, because ", Because]
    end;
how(Why) ->
    io_lib:format("ended: ~tp", [Why]).

because({bad_frame, Sentence}) -> ["it wrote ", Sentence];
because({bad_reply, What}) -> io_lib:format("it wrote a bad reply (~tp)", [What]);
because(overdue) -> "a call went on after its deadline and grace_ms";
because(late_start) -> "it did not load the library within start_ms";
because(not_answering) -> "it did not answer for answer_ms";
because(not_reading) -> "it did not read its control port";
because({flood, Pid}) -> io_lib:format("nobody reads what it sends, last to ~p", [Pid]);
because(flood) -> "it wrote more to its control port than can be read";
because(_) -> unknown.

where(#{function := {Name, Arity}} = Report) when Name =/= <<>> ->
    [io_lib:format(" in ~ts/~b", [tame_control:printable(Name, 255), Arity]), address(Report)];
where(Report) ->
    address(Report).

address(#{address := Address, why := #{signal := _}}) when Address > 0 ->
    io_lib:format(" at address 0x~.16b", [Address]);
address(_Report) ->
    "".

when_(#{state := up, up_ms := UpMs}) -> io_lib:format(", after ~b ms", [UpMs]);
when_(#{state := starting}) -> ", while it started".

left_out(#{left_out := 0}) -> "";
left_out(#{left_out := N}) -> io_lib:format(" (~b reports like this one were left out)", [N]);
left_out(_Report) -> "".

block(_Title, <<>>) ->
    "";
block(Title, Text) ->
    Lines = binary:split(tame_control:printable(Text, 16384), <<"\n">>, [global, trim_all]),
    ["\n  ", Title, ":", [["\n    ", Line] || Line <- Lines]].
