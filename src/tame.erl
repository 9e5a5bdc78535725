%% The functions of tame for its users: the value of a job, calls by message, deadlines, isolation.
-module(tame).

-export([value/2]).
-export([value/3]).
-export([stream/2]).
-export([stream/3]).
-export([iovec/1]).
-export([aligned/1]).
-export([async/2]).
-export([async/3]).
-export([cancel/1]).
-export([with/2]).
-export([calibration/0]).
-export([isolate/1]).
-export([isolate/2]).
-export([load_binary/3]).
-export([restore/1]).
-export([restart/1]).
-export([info/0]).
-export([include_dir/0]).
-export([version/0]).
-export([source_dir/0]).

%% Internal.
-export([format_error/2]).
-export([next/1]).

-export_type([stream/0]).

-type stream() :: fun(() -> nonempty_improper_list(term(), stream()) | []).

%% The value of a job whose NIF returned {'$tame', _, _}: what comes later, or an error.
%%
%% A module wraps each NIF of its job library (c_include/tame.h) by -tame([exor/2]) and the parse
%% transform tame_job, in Elixir by `use Tame.Job', or by hand:
%%
%%     exor(A, B) ->
%%         case get('$tame_deadline') of
%%             undefined ->
%%                 case exor_nif(A, B) of
%%                     {'$tame', _, _} = Later -> tame:value(Later, {?MODULE, exor, [A, B]});
%%                     Value -> Value
%%                 end;
%%             _ ->
%%                 tame:value({'$tame', start, exor_nif}, {?MODULE, exor, [A, B]})
%%         end.
%%
%%     -export(['$tame'/3]).
%%     '$tame'(_, _, _) -> erlang:nif_error(nif_not_loaded).
%%
%% A call that has to wait, for its turn or until a thread has done the steps, waits here in
%% receive, for a reference that is made here, so that the length of the mailbox does not matter.
%% The result is always made in the calling process. The second argument is the call as the user
%% made it: an error is raised as if that function had raised it. Raises badarg, with the argument's
%% number and a sentence in error_info; enomem; {tame, busy} where as many calls wait already as the
%% job allows; {tame, deadline} past the deadline of with/2.
-spec value(tame_job_call:later(), tame_job_call:call()) -> term().
value(Later, {_, _, Args} = Call) ->
    value(Later, Call, Args).

%% As value/2, where the NIF got other arguments than the function: -tame's option `iodata'.
-spec value(tame_job_call:later(), tame_job_call:call(), [term()]) -> term().
value(Later, Call, NifArgs) ->
    case tame_job_call:value(Later, Call, NifArgs) of
        {value, Value} -> Value;
        Refused -> checked(Refused, Call)
    end.

%% What a job emits, as a lazy sequence: a fun that gives [Part | Next], where Next is such a fun,
%% or [] at the end. Nothing is done ahead: the job goes on when the next part is asked for. It ends
%% with the sequence, when that is collected. A sequence is walked once, by the process that made
%% it.
%%
%%     lines(Text) -> tame:stream(lines_nif, {?MODULE, lines, [Text]}).
-spec stream(atom(), tame_job_call:call()) -> stream().
stream(Nif, {_, _, Args} = Call) ->
    stream(Nif, Call, Args).

%% As stream/2, where the NIF gets other arguments than the function.
-spec stream(atom() | {atom(), non_neg_integer()}, tame_job_call:call(), [term()]) -> stream().
stream(Nif, Call, NifArgs) ->
    sequence({{'$tame', start, Nif}, Call, NifArgs}).

%% The next part of a stream, and the stream after it.
-spec next(tame_job_call:state()) -> {term(), tame_job_call:state()} | done.
next({_, Call, _} = State) ->
    case tame_job_call:next(State) of
        {part, Part, Next} -> {Part, Next};
        done -> done;
        Refused -> checked(Refused, Call)
    end.

-dialyzer({no_improper_lists, sequence/1}).

sequence(State) ->
    fun() ->
        case next(State) of
            {Part, Next} -> [Part | sequence(Next)];
            done -> []
        end
    end.

%% Iodata as a list of binaries, as a job reads it (tame_input_iodata), made without holding a
%% scheduler; anything else as it is. A large binary that begins in the middle of a byte becomes
%% many, because the VM copies one when native code looks at it.
-spec iovec(term()) -> term().
iovec(Data) ->
    tame_iovec:from(Data).

%% A binary argument of a job (tame_input_binary) that begins with a byte, made without holding a
%% scheduler: the binary itself, or a copy of one that begins in the middle of a byte. From OTP 27
%% on the VM would copy that in one go before the job can know; so there -tame and defjob write this
%% call for arguments of more than 64 KiB, and a function that is written by hand may make it.
-spec aligned(binary()) -> binary().
aligned(Binary) ->
    tame_iovec:aligned(Binary).

%% Makes the call `apply(Fun, Args)' without waiting for it. The value comes by message, once:
%% {Ref, {ok, Value}}, or {Ref, {error, Reason}} where Reason is what the fun raised as an error,
%% {exit, Reason} when it exited or was killed, {nocatch, Value} when it threw.
%%
%%     1> {ok, Ref} = tame:async(fun tame_spin:spin_pool/1, [1000]).
%%     2> receive {Ref, Answer} -> Answer end.
%%     {ok,ok}
%%
%% Ref is opaque: match on it and hand it to cancel/1. The fun runs in a process of its own, which
%% the death of the caller ends, and with it a job in any placement at its next step; one that runs
%% inline has but one step, and ends after it.
-spec async(function(), [term()]) -> {ok, tame_async:ref()}.
async(Fun, Args) ->
    checked(tame_async:start(Fun, Args, #{}), {?MODULE, async, [Fun, Args]}).

%% As async/2, under options.
%%
%%   deadline_ms => 50    after 50 ms {Ref, {error, {tame, deadline}}} comes, and the job is ended
%%                        as by cancel/1. A job that runs inline, and any other NIF that does not
%%                        yield, may hold the scheduler on which the deadline is watched: then the
%%                        answer comes when the NIF returns, however late that is
%%   progress => true     while the job runs {Ref, {progress, Done, Total}} comes each 100 ms, in
%%                        the job's own unit (Total 0: it cannot say), and none after the value. An
%%                        inline job tells no progress. Raises {tame, not_started} unless the
%%                        application tame runs
-spec async(function(), [term()], tame_async:options()) -> {ok, tame_async:ref()}.
async(Fun, Args, Options) ->
    checked(tame_async:start(Fun, Args, Options), {?MODULE, async, [Fun, Args, Options]}).

%% Ends a call of async: its job stops at the next step. Called by the process that called async, no
%% message of this Ref is in its mailbox afterwards, and none comes. Cancelling a
%% finished or cancelled call has no effect. Called by another process it ends the job too, and the
%% caller of async gets {Ref, {error, {exit, killed}}} unless it has its answer.
-spec cancel(tame_async:ref()) -> ok.
cancel(Ref) ->
    checked(tame_async:cancel(Ref), {?MODULE, cancel, [Ref]}).

%% The value of `Fun()', with a deadline: jobs that are called in it by this process raise
%% error:{tame, deadline} when it passes, while they run as while they wait, and end at their next
%% step. So does a call of an isolated library, job or not. What is neither is not interrupted. In a
%% fun within a fun the earlier deadline counts, as does an earlier one of the function itself. A
%% stream has the deadline that counts where it is read on, wherever it was begun.
%%
%%     1> tame:with(#{deadline_ms => 10}, fun() -> tame_spin:spin(1000000) end).
%%     ** exception error: {tame,deadline}
-spec with(#{deadline_ms => non_neg_integer() | infinity}, fun(() -> Value)) -> Value.
with(Options, Fun) ->
    case tame_job_call:with(Options, Fun) of
        {value, Value} -> Value;
        Refused -> checked(Refused, {?MODULE, with, [Options, Fun]})
    end.

%% The rate of each job that has run in this VM, and how many units fit into a slice at that rate.
%% Job libraries tell the rates while their jobs run. Raises {tame, not_started} unless the
%% application tame runs. `mix tame.calibrate' of the labs runs jobs first, and measures what each
%% placement costs on this machine.
%%
%%     1> tame_exor:exor(A, B), maps:get(jobs, tame:calibration()).
%%     #{{tame_exor,exor_nif,2} => #{units_per_ms => 7816511.2, slice_units => 781651, ...}}
-spec calibration() -> tame_job_rates:calibration().
calibration() ->
    case tame_job_rates:runs() of
        true -> tame_job_rates:calibration();
        false -> raise({tame, not_started}, {?MODULE, calibration, 0, []})
    end.

%% From now on the NIFs of a module run in an OS process of their own (c_src/host), behind the same
%% module: same functions, same results, same exceptions. A crash there raises {tame, {crashed,
%% Info}} here, and a new process answers the next call.
%%
%%     1> tame:isolate(jiffy).
%%     ok
%%     2> jiffy:decode(<<"[1]">>).
%%     [1]
%%
%% {error, {Reason, Sentence}}: the module is not isolated and works as before; the sentence says
%% why, and what to do.
%% Raises {tame, not_started} unless the application tame runs.
-spec isolate(module()) -> ok | tame_isolation:refusal().
isolate(Module) ->
    isolate(Module, #{}).

%% As isolate/1, with options: tame_isolate_options:options() lists them.
-spec isolate(module(), tame_isolate_options:options() | [{atom(), term()}]) ->
    ok | tame_isolation:refusal().
isolate(Module, Options) ->
    isolation(fun() -> tame_isolation:isolate(Module, Options) end, {?MODULE, isolate, 2, []}).

%% In place of code:load_binary/3 for an isolated module: the new code asks hosts as well. Where it
%% loads its library (erlang:load_nif/2), that is done beside the library of the code before, in the
%% same hosts, by its upgrade callback, as in the VM; the library before is unloaded when its code
%% has been purged.
-spec load_binary(module(), file:filename(), binary()) ->
    {module, module()} | tame_isolation:refusal().
load_binary(Module, File, Beam) ->
    Load = fun() -> tame_isolation:load_binary(Module, File, Beam) end,
    isolation(Load, {?MODULE, load_binary, 3, []}).

%% Undoes isolate: the module binds its library in this VM again. It waits up to five seconds for
%% calls in flight and for processes that still run the isolated code: {error, {in_use, Sentence}}
%% names those that go on for longer. The library in the VM does not know native resources that were
%% made in a host.
-spec restore(module()) -> ok | tame_isolation:refusal().
restore(Module) ->
    isolation(fun() -> tame_isolation:restore(Module) end, {?MODULE, restore, 1, []}).

%% Replaces all hosts of a module: new hosts start; the old ones end after their calls in flight, or
%% by force if they do not answer. Also restarts hosts that Tame gave up on because they crashed too
%% often. The new hosts do not know native resources of the old ones.
-spec restart(module()) -> ok | tame_isolation:refusal().
restart(Module) ->
    isolation(fun() -> tame_isolation:restart(Module) end, {?MODULE, restart, 1, []}).

%% The state of each isolated module: its state, waiting callers, restarts, and for each host its
%% state, OS process, memory (rss_bytes), and the counters of its ring. Answers within a second or
%% so: a host that does not report in time has the state not_answering.
-spec info() -> #{module() => map()}.
info() ->
    isolation(fun() -> tame_isolation:info() end, {?MODULE, info, 0, []}).

%% What is no error, or what '$tame' says of one, raised.
checked({'$tame', badarg, {Number, Sentence}}, {Module, Function, Args}) ->
    Info = [{error_info, #{module => ?MODULE, cause => #{Number => Sentence}}}],
    raise(badarg, {Module, Function, Args, Info});
checked({'$tame', error, Reason}, {Module, Function, Args}) ->
    raise(Reason, {Module, Function, length(Args), []});
checked(Value, _Call) ->
    Value.

%% The frames of this module and of the function itself give way to the call as the user made it.
-spec raise(term(), tuple()) -> no_return().
raise(Reason, {Module, Function, _, _} = Top) ->
    {current_stacktrace, Frames} = process_info(self(), current_stacktrace),
    Rest = lists:dropwhile(fun({M, F, _, _}) -> is_own(M, F, Module, Function) end, tl(Frames)),
    erlang:raise(error, Reason, [Top | Rest]).

is_own(?MODULE, _, _, _) -> true;
is_own(Module, Function, Module, Function) -> true;
is_own(_, _, _, _) -> false.

isolation(Fun, Call) ->
    case tame_isolation:runs() of
        true -> Fun();
        false -> raise({tame, not_started}, Call)
    end.

%% Where tame.h lies, for the C compiler's -I. Raises where tame's sources are not, as source_dir/0.
-spec include_dir() -> file:filename().
include_dir() ->
    filename:join(source_dir(), "c_include").

%% The version of tame, as written in src/tame.app.src.
%%
%%     1> tame:version().
%%     "0.1.0"
-spec version() -> string().
version() ->
    _ = application:load(tame),
    {ok, Version} = application:get_key(tame, vsn),
    Version.

%% The folder in which tame's sources lie. Known at build time only: it raises inside a release,
%% `{tame, {no_sources, Sentence}}'.
-spec source_dir() -> file:filename().
source_dir() ->
    case tame_native:source_dir() of
        {ok, Folder} -> Folder;
        unknown ->
            Sentence =
                "the folder of tame's sources is not known here: the code is stripped, or compiled "
                "with deterministic, or the folder is gone",
            error({tame, {no_sources, Sentence}})
    end.

%% What the shell prints below a badarg that value/2 raised.
-spec format_error(term(), erlang:stacktrace()) -> #{pos_integer() => string()}.
format_error(_Reason, [{_, _, _, Info} | _]) ->
    #{cause := Cause} = proplists:get_value(error_info, Info),
    Cause.
