%% What a server of the load lab does for a request, and what it counts. It runs in the VM that is
%% watched, and needs nothing but the job's own module there.
%%
%% A server gives the path of each request to answer/1 and sends back what that returns. So all
%% servers do the same work, and the lab can compare what they counted with what the clients saw.
-module(tame_load_work).

-export([set/1]).
-export([answer/1]).
-export([counts/0]).

-export_type([work/0]).
-export_type([counts/0]).

%% What a request for a job calls; `nothing' is answered at once.
-type work() :: nothing | {module(), atom(), [term()]}.

%% Requests that came, and what became of them. What came and is none of the others is under way.
-type counts() :: #{
    hello_came := non_neg_integer(),
    hello_answered := non_neg_integer(),
    job_came := non_neg_integer(),
    job_answered := non_neg_integer(),
    job_refused := non_neg_integer(),
    job_failed := non_neg_integer()
}.

-define(KEYS, [hello_came, hello_answered, job_came, job_answered, job_refused, job_failed]).
-define(HELLO_CAME, 1).
-define(HELLO_ANSWERED, 2).
-define(JOB_CAME, 3).
-define(JOB_ANSWERED, 4).
-define(JOB_REFUSED, 5).
-define(JOB_FAILED, 6).

%% Says what a job is, and begins to count. A job is done once before that, so that its library is
%% loaded and its rate is measured when the first request comes.
-spec set(work()) -> ok.
set(Work) ->
    case Work of
        nothing -> ok;
        {Module, Function, Args} -> apply(Module, Function, [0 || _ <- Args])
    end,
    Counters = counters:new(length(?KEYS), [write_concurrency]),
    persistent_term:put(?MODULE, {Work, Counters}).

%% The status and the body for a path.
-spec answer(Path :: binary()) -> {200 | 404 | 500 | 503, binary()}.
answer(<<"/hello">>) ->
    {_, Counters} = persistent_term:get(?MODULE),
    counters:add(Counters, ?HELLO_CAME, 1),
    counters:add(Counters, ?HELLO_ANSWERED, 1),
    {200, <<"Hello world">>};
answer(<<"/job">>) ->
    {Work, Counters} = persistent_term:get(?MODULE),
    counters:add(Counters, ?JOB_CAME, 1),
    {Count, Answer} = job(Work),
    counters:add(Counters, Count, 1),
    Answer;
answer(_) ->
    {404, <<"not found">>}.

job(nothing) ->
    {?JOB_ANSWERED, {200, <<"Hello world">>}};
job({Module, Function, Args}) ->
    try apply(Module, Function, Args) of
        _ -> {?JOB_ANSWERED, {200, <<"done">>}}
    catch
        %% A pool that is full says so at once, as it should.
        error:{tame, busy} -> {?JOB_REFUSED, {503, <<"busy">>}};
        _:_ -> {?JOB_FAILED, {500, <<"failed">>}}
    end.

-spec counts() -> counts().
counts() ->
    {_, Counters} = persistent_term:get(?MODULE),
    Numbers = lists:seq(1, length(?KEYS)),
    maps:from_list(lists:zip(?KEYS, [counters:get(Counters, N) || N <- Numbers])).
