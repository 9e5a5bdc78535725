%% What job libraries tell of their jobs (c_include/tame/tell.h): how far one is, and how fast they
%% are.
%%
%% A library finds this process by its registered name and sends, each 100 ms at most,
%%
%%     {'$tame', progress, Caller, Done, Total}          of a call that takes longer than that
%%     {'$tame', rate, {Module, Nif, Arity}, UnitsPerMs} of a row of its function table
%%
%% in the unit of the job, and once for each row
%%
%%     {'$tame', slow_unit, {Module, Nif, Arity}, Us}    of a unit that took longer than 2 ms
%%
%% which is logged: nobody can cut it but the author. Rates are kept; progress goes to the process
%% that has subscribed to the caller, or nowhere.
-module(tame_job_rates).
-behaviour(gen_server).

-export([start_link/0]).
-export([runs/0]).
-export([subscribe/1]).
-export([calibration/0]).
-export([rates/0]).
-export([slice_us/0]).

%% Internal.
-export([init/1]).
-export([handle_call/3]).
-export([handle_cast/2]).
-export([handle_info/2]).

-export_type([rates/0]).
-export_type([calibration/0]).
-export_type([job/0]).

%% Units per millisecond.
-type rates() :: #{{module(), atom(), arity()} => float()}.

%% The jobs that have run in this VM; what measures puts more beside them (the labs' mix
%% tame.calibrate).
-type calibration() :: #{jobs := #{{module(), atom(), arity()} => job()}}.

%% TAME_SLICE_US of tame/slice.h, in microseconds: the default slice on a regular scheduler.
-define(SLICE_US, 100).

%% Units per millisecond as measured last, and how many units fit into the default slice (SLICE_US),
%% into the budget of an inline call (1 ms), and into what `auto' still does on the caller's
%% scheduler (100 ms).
-type job() :: #{
    units_per_ms := float(),
    slice_units := non_neg_integer(),
    inline_units := non_neg_integer(),
    yielding_units := non_neg_integer()
}.

%% subscribers: by the process that makes the call.
-type state() :: #{rates := rates(), subscribers := #{pid() => pid()}}.

-spec start_link() -> gen_server:start_ret().
start_link() ->
    ok = tame_orphan:wait(?MODULE),
    gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% Whether there is such a process: the application tame has been started.
-spec runs() -> boolean().
runs() ->
    whereis(?MODULE) =/= undefined.

%% From now on the calling process gets {tame_job_rates, progress, Done, Total} of jobs that
%% `Caller' calls, until one of the two ends.
-spec subscribe(pid()) -> ok.
subscribe(Caller) ->
    gen_server:cast(?MODULE, {subscribe, self(), Caller}).

%% The rates told so far.
-spec rates() -> rates().
rates() ->
    gen_server:call(?MODULE, rates).

%% The rates, and what they come to.
-spec calibration() -> calibration().
calibration() ->
    #{jobs => maps:map(fun(_Row, UnitsPerMs) -> job(UnitsPerMs) end, rates())}.

%% The default slice, in microseconds.
-spec slice_us() -> pos_integer().
slice_us() ->
    ?SLICE_US.

job(UnitsPerMs) ->
    #{
        units_per_ms => UnitsPerMs,
        slice_units => floor(UnitsPerMs / (1000 / ?SLICE_US)),
        inline_units => floor(UnitsPerMs),
        yielding_units => floor(UnitsPerMs * 100)
    }.

-spec init([]) -> {ok, state()}.
init([]) ->
    {ok, #{rates => #{}, subscribers => #{}}}.

-spec handle_call(rates, gen_server:from(), state()) -> {reply, rates(), state()}.
handle_call(rates, _From, #{rates := Rates} = State) ->
    {reply, Rates, State}.

-spec handle_cast({subscribe, pid(), pid()}, state()) -> {noreply, state()}.
handle_cast({subscribe, Subscriber, Caller}, #{subscribers := Subscribers} = State) ->
    %% A subscriber ends shortly after the caller (tame_async), or dies itself: the caller's end is
    %% enough.
    _ = monitor(process, Caller),
    {noreply, State#{subscribers := Subscribers#{Caller => Subscriber}}}.

-spec handle_info(term(), state()) -> {noreply, state()}.
handle_info({'$tame', progress, Caller, Done, Total}, #{subscribers := Subscribers} = State) ->
    _ = case Subscribers of
        #{Caller := Subscriber} -> Subscriber ! {?MODULE, progress, Done, Total};
        #{} -> ok
    end,
    {noreply, State};
handle_info({'$tame', rate, Row, UnitsPerMs}, #{rates := Rates} = State) ->
    {noreply, State#{rates := Rates#{Row => UnitsPerMs}}};
handle_info({'$tame', slow_unit, {Module, Nif, Arity}, Us}, State) ->
    logger:warning(
        "~ts:~ts/~b: a unit of its work took ~b us on a scheduler, where others waited for it; "
        "a unit should take well under 10 us (or a virtual machine had no core meanwhile)",
        [Module, Nif, Arity, Us]
    ),
    {noreply, State};
handle_info({'DOWN', _, process, Caller, _}, #{subscribers := Subscribers} = State) ->
    {noreply, State#{subscribers := maps:remove(Caller, Subscribers)}};
%% Any process may send to a registered name.
handle_info(_Nothing, State) ->
    {noreply, State}.
