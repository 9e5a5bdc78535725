%% A call of a job that is not done at once: it waits, is given parts, has a deadline. What each
%% does is said where users call it: tame:value/2, tame:stream/2 and tame:with/2.
%%
%% A NIF of a job library returns a value, or {'$tame', What, _} (c_include/tame/verb.h lists them).
%% The run that it names is handed back to the library's '$tame'/3 until there is a value. Nothing
%% waits for a run that is not handed back; it ends when its term is collected.
-module(tame_job_call).

-export([value/3]).
-export([next/1]).
-export([halt/1]).
-export([with/2]).
-export([until/2]).
-export([deadline/1]).
-export([left_ms/1]).

-export_type([later/0]).
-export_type([call/0]).
-export_type([state/0]).
-export_type([deadline/0]).

%% What a NIF returned, or {'$tame', start, Nif} where none was called yet; or
%% {'$tame', start, {Nif, DeadlineMs}}; between two parts {'$tame', next, {Run, OwnDeadline}}.
-type later() :: {'$tame', atom(), term()}.
%% The call as the user made it.
-type call() :: {module(), atom(), [term()]}.
%% Of a stream, between two parts.
-type state() :: {later(), call(), [term()]}.
%% erlang:monotonic_time(nanosecond).
-type deadline() :: integer() | infinity.
-type refusal() ::
    {'$tame', badarg, {pos_integer(), string()}} | {'$tame', error, term()}.

%% The longest time that a receive can wait for: 49 days.
-define(MAX_MS, 16#FFFFFFFF).

-spec value(later(), call(), [term()]) -> {value, term()} | refusal().
value(Later, {Module, _, _} = Call, Args) ->
    case go(Later, {Call, deadline_now(own_deadline(Later))}, Args) of
        {part, {_, Run}, Used} ->
            %% Nobody reads the parts.
            _ = Module:'$tame'(Run, stop, Used),
            {'$tame', error, {tame, is_a_stream}};
        Answer ->
            Answer
    end.

%% The next part and the state after it.
-spec next(state()) -> {part, term(), state()} | done | refusal().
next({Later, Call, Args}) ->
    Own = own_deadline(Later),
    case go(Later, {Call, deadline_now(Own)}, Args) of
        {part, {Part, Run}, Used} -> {part, Part, {{'$tame', next, {Run, Own}}, Call, Used}};
        {value, _} -> done;
        Refused -> Refused
    end.

%% Ends a stream that nobody reads on: now, and not when its term is collected.
-spec halt(state()) -> ok.
halt({{'$tame', next, {Run, _}}, {Module, _, _}, Args}) ->
    _ = Module:'$tame'(Run, stop, Args),
    ok;
halt(_) ->
    ok.

%% Until there is a value, a part or a refusal; with a part the arguments of the run, which may be
%% aligned copies of the caller's.
go({'$tame', run, Run}, How, Args) ->
    hand_over(Run, How, Args);
go({'$tame', next, {Run, _}}, How, Args) ->
    hand_over(Run, How, Args);
go({'$tame', start, {Nif, _}}, How, Args) ->
    go({'$tame', start, Nif}, How, Args);
go({'$tame', start, Nif}, {Call, Deadline} = How, Args) ->
    go(tame(Nif, Deadline, Args, Call), How, Args);
go({'$tame', align, {Nif, Number}}, How, Args) ->
    {Before, [Bits | After]} = lists:split(Number - 1, Args),
    go({'$tame', start, Nif}, How, Before ++ [tame_iovec:align(Bits) | After]);
go({'$tame', online, Run}, {{Module, _, _}, _} = How, Args) ->
    ok = Module:'$tame'(erlang:system_info(schedulers_online), online, tame_permits:shared()),
    hand_over(Run, How, Args);
go({'$tame', part, Part}, _How, Args) ->
    {part, Part, Args};
go({'$tame', _, _} = Refused, _How, _Args) ->
    Refused;
go(Value, _How, _Args) ->
    {value, Value}.

%% The reference is made and waited for in the same function, so that the receive begins where the
%% mailbox ended when it was made.
hand_over(Run, {{Module, _, _} = Call, Deadline} = How, Args) ->
    Ref = make_ref(),
    case tame(Run, until_ref(Ref, Deadline), Args, Call) of
        {'$tame', wait, Waiting} ->
            receive
                {Ref, go} -> hand_over(Waiting, How, Args)
            after left_ms(Deadline) ->
                {'$tame', stopped, Told} = Module:'$tame'(Waiting, stop, Args),
                %% The message is there, or about to come; nobody else would take it out.
                _ = Told andalso receive
                    {Ref, go} -> ok
                end,
                {'$tame', error, {tame, deadline}}
            end;
        Later ->
            go(Later, How, Args)
    end.

%% A run has the deadline that counts where it goes on: a stream may be read within another with/2
%% than it was begun in, or within none.
until_ref(Ref, infinity) -> Ref;
until_ref(Ref, Deadline) -> {Ref, Deadline}.

%% Called by the module's name, so that it is the newest code's. What it raises is raised by the
%% function that the user called: its own arguments hold the run, which the stack of an error must
%% not keep.
tame(Run, Ref, NifArgs, {Module, Function, Args}) ->
    try
        Module:'$tame'(Run, Ref, NifArgs)
    catch
        error:Reason:Stack ->
            Rest = lists:dropwhile(
                fun({M, F, _, _}) ->
                    M =:= ?MODULE orelse M =:= tame orelse {M, F} =:= {Module, Function}
                end,
                tl(Stack)
            ),
            erlang:raise(error, Reason, [{Module, Function, Args, []} | Rest])
    end.

%% ---- deadlines ------------------------------------------------------------------------------

-spec with(term(), term()) -> {value, term()} | refusal().
with(#{progress := _}, _Fun) ->
    {'$tame', badarg, {1, "progress: no such option here; there is deadline_ms"}};
with(Options, Fun) when is_function(Fun, 0) ->
    case tame_async:refused(Options) of
        [] -> {value, until(deadline(maps:get(deadline_ms, Options, infinity)), Fun)};
        [Sentence | _] -> {'$tame', badarg, {1, Sentence}}
    end;
with(_, _) ->
    {'$tame', badarg, {2, "must be a fun without arguments"}}.

%% The value of the fun, whose jobs have this deadline, or the one that counts already if it is
%% earlier.
-spec until(deadline(), fun(() -> Value)) -> Value.
until(infinity, Fun) ->
    Fun();
until(Deadline, Fun) ->
    Outer = put('$tame_deadline', earlier(Deadline, get('$tame_deadline'))),
    try
        Fun()
    after
        case Outer of
            undefined -> erase('$tame_deadline');
            _ -> put('$tame_deadline', Outer)
        end
    end.

%% The deadline of a call that begins or goes on now: that of with/2, or the function's own.
deadline_now(Own) -> earlier(Own, get('$tame_deadline')).

own_deadline({'$tame', start, {_, Ms}}) -> deadline(Ms);
own_deadline({'$tame', next, {_, Own}}) -> Own;
own_deadline(_) -> infinity.

%% An atom is greater than any number.
earlier(Deadline, undefined) -> Deadline;
earlier(Deadline, Other) -> min(Deadline, Other).

-spec deadline(non_neg_integer() | infinity) -> deadline().
deadline(infinity) ->
    infinity;
deadline(Ms) ->
    ok = load(),
    erlang:monotonic_time(nanosecond) + Ms * 1_000_000.

%% What a call asks for on its way is loaded before its time begins: where modules are loaded when
%% they are first used, that took 1.1 to 1.4 s beside 200 busy processes.
load() ->
    lists:foreach(
        fun(Module) -> erlang:module_loaded(Module) orelse code:ensure_loaded(Module) end,
        [tame_permits, tame_iovec]
    ).

%% Rounded up: a receive that ends before the deadline would wait again.
-spec left_ms(deadline()) -> non_neg_integer() | infinity.
left_ms(infinity) ->
    infinity;
left_ms(Deadline) ->
    LeftNs = Deadline - erlang:monotonic_time(nanosecond),
    min(?MAX_MS, max(0, (LeftNs + 999_999) div 1_000_000)).
