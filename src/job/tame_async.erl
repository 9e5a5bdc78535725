%% Calls whose value comes by message, that can be cancelled and have a deadline. What
%% each does is said where users call it: tame:async/2,3 and tame:cancel/1.
%%
%% Two processes per call and nothing else: a worker makes the call, and a watcher, which spawns it,
%% ends it when the caller dies, cancels, or the deadline passes. To end a call is to kill its
%% worker: the job library then ends the job at its next step, wherever it runs.
%%
%% The answer goes to an alias of the caller that takes one message and no more. So the first answer
%% (the worker's; or the watcher's, at the deadline or when the worker was killed) is the only one,
%% and an answer after a cancel is lost.
%%
%% With `progress' the answer passes through the watcher, as all progress does, so that none comes
%% after it.
-module(tame_async).

-export([start/3]).
-export([cancel/1]).
-export([refused/1]).

%% Internal.
-export([watcher/2]).
-export([work/3]).

-export_type([options/0]).
-export_type([ref/0]).

-type options() :: #{deadline_ms => non_neg_integer() | infinity, progress => boolean()}.

-opaque ref() :: {?MODULE, pid(), reference()}.

%% The longest time that a receive can wait for: 49 days.
-define(MAX_DEADLINE_MS, 16#FFFFFFFF).

-type refusal() :: {'$tame', badarg, {pos_integer(), string()}} | {'$tame', error, term()}.

%% What the watcher of a call knows. `deadline' is monotonic time in ns.
-type call() :: #{
    caller := pid(), alias := reference(), deadline := integer() | infinity, progress := boolean()
}.

-spec start(function(), [term()], options()) -> {ok, ref()} | refusal().
start(Fun, Args, Options) when is_function(Fun, length(Args)) ->
    case refused(Options) of
        [] -> start_watcher(Fun, Args, Options);
        [Sentence | _] -> badarg(3, Sentence)
    end;
start(Fun, _, _) when is_function(Fun) ->
    badarg(2, "must be a list of as many arguments as the fun takes");
start(_, _, _) ->
    badarg(1, "must be a fun").

start_watcher(Fun, Args, Options) ->
    Progress = maps:get(progress, Options, false),
    case Progress andalso not tame_job_rates:runs() of
        true ->
            {'$tame', error, {tame, not_started}};
        false ->
            Alias = alias([reply]),
            Call = #{
                caller => self(),
                alias => Alias,
                deadline => tame_job_call:deadline(maps:get(deadline_ms, Options, infinity)),
                progress => Progress
            },
            {ok, {?MODULE, spawn(?MODULE, watcher, [Call, {Fun, Args}]), Alias}}
    end.

-spec cancel(ref()) -> ok | refusal().
cancel({?MODULE, Watcher, Alias} = Ref) when
    is_pid(Watcher), is_reference(Alias), Watcher =/= self()
->
    %% One that is still active has taken no answer, and takes none.
    NoAnswer = unalias(Alias),
    %% It does nothing but receive, and sends nothing once it has ended.
    Monitor = monitor(process, Watcher),
    Watcher ! {?MODULE, cancel},
    receive
        {'DOWN', Monitor, process, Watcher, normal} when NoAnswer -> ok;
        {'DOWN', Monitor, process, Watcher, _} -> flush(Ref)
    end;
cancel(_) ->
    badarg(1, "must be what tame:async returned").

%% Looks at each message that the caller has.
flush(Ref) ->
    receive
        {Ref, _} -> flush(Ref)
    after 0 -> ok
    end.

badarg(Number, Sentence) ->
    {'$tame', badarg, {Number, Sentence}}.

%% What is wrong with the options, in sentences that go on after "argument N: ".
-spec refused(term()) -> [string()].
refused(Options) when is_map(Options) ->
    [
        lists:flatten(io_lib:format("~0tp => ~0tP: ~ts", [Key, Value, 9, expected(Key)]))
     || {Key, Value} <- maps:to_list(Options), not valid(Key, Value)
    ];
refused(_) ->
    ["must be a map of options"].

valid(deadline_ms, infinity) -> true;
valid(deadline_ms, Ms) -> is_integer(Ms) andalso Ms >= 0 andalso Ms =< ?MAX_DEADLINE_MS;
valid(progress, Value) -> is_boolean(Value);
valid(_, _) -> false.

expected(deadline_ms) -> "must be infinity or milliseconds from 0 to 4294967295";
expected(progress) -> "must be true or false";
expected(_) -> "no such option; there are deadline_ms and progress".


%% ---- the watcher ----------------------------------------------------------------------------

%% Ends with the worker at the latest. A caller that is dead already is a 'DOWN' at once. Its exit
%% reason says whether it may have sent progress: normal, or progress.
-spec watcher(call(), {function(), [term()]}) -> term().
watcher(#{caller := Caller, progress := Progress} = Call, Work) ->
    _ = monitor(process, Caller),
    %% Not linked: the fun may trap exits, and finds no process there that is not its own.
    {Worker, _} = spawn_monitor(?MODULE, work, [self(), Call, Work]),
    _ = Progress andalso tame_job_rates:subscribe(Worker),
    _ = watch(Call, Worker),
    Progress andalso exit(progress).

watch(#{caller := Caller, deadline := Deadline} = Call, Worker) ->
    receive
        {?MODULE, answer, Answer} ->
            answer(self(), Call, Answer);
        {tame_job_rates, progress, Done, Total} ->
            #{alias := Alias} = Call,
            Caller ! {{?MODULE, self(), Alias}, {progress, Done, Total}},
            watch(Call, Worker);
        {'DOWN', _, process, Worker, normal} ->
            ok;
        {'DOWN', _, process, Worker, Reason} ->
            answer(self(), Call, {error, {exit, Reason}});
        {'DOWN', _, process, Caller, _} ->
            exit(Worker, kill);
        {?MODULE, cancel} ->
            %% Reaches the caller only when another process cancelled.
            answer(self(), Call, {error, {exit, killed}}),
            exit(Worker, kill)
    after tame_job_call:left_ms(Deadline) ->
        answer(self(), Call, {error, {tame, deadline}}),
        exit(Worker, kill)
    end.

answer(Watcher, #{alias := Alias}, Answer) ->
    Alias ! {{?MODULE, Watcher, Alias}, Answer},
    ok.

%% ---- the worker -----------------------------------------------------------------------------

-spec work(pid(), call(), {function(), [term()]}) -> term().
work(Watcher, #{progress := Progress, deadline := Deadline} = Call, {Fun, Args}) ->
    Answer =
        try
            {ok, tame_job_call:until(Deadline, fun() -> apply(Fun, Args) end)}
        catch
            error:Reason -> {error, Reason};
            exit:Reason -> {error, {exit, Reason}};
            throw:Value -> {error, {nocatch, Value}}
        end,
    case Progress of
        true -> Watcher ! {?MODULE, answer, Answer};
        false -> answer(Watcher, Call, Answer)
    end.
