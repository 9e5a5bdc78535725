%% The libraries of one host: which it has, which it is to have, and the one that it loads or
%% unloads now. Pure.
%%
%%     VM                               host
%%     {load, Path, Module, ...}
%%                                      {loaded, Functions, #{library => Number ...}}
%%                                      or {refused, ...}
%%     {unload, Number}
%%                                      {unloaded, Number}
%%
%% One is asked for at a time, in the order in which they were loaded first; each answer must
%% be that to what was asked.
-module(tame_host_libraries).

-export([new/0]).
-export([next/4]).
-export([is_late/2]).
-export([loaded/3]).
-export([refused/1]).
-export([unloaded/2]).
-export([loaded_all/1]).
-export([free_number/2]).
-export([function/2]).

-export_type([library/0]).
-export_type([info/0]).
-export_type([libraries/0]).
-export_type([state/0]).

%% A library that a host is to have. number: by which its functions are called; upgrades: the key of
%% the version before it, which may be gone; functions: as they were probed, because the module is
%% bound to them by number.
-type library() :: #{
    key := tame_library:key(),
    module := module(),
    number := place(),
    upgrades := none | tame_library:key(),
    functions := [{atom(), arity()}],
    path := file:filename_all(),
    load_info := term(),
    %% who called load_nif, where the library may know that
    loader := none | pid(),
    order := integer()
}.

%% What the loaded library does. wants_caller: it asks which process calls it, so each call says so.
%% sends: it may send messages, so tame_given notes the processes that it is given. resources: it
%% has native resources, so a call may have to go to a certain host.
-type info() :: #{wants_caller := boolean(), sends := boolean(), resources := boolean()}.

%% Those that a host has.
-type libraries() :: #{place() => {tame_library:key(), info()}}.

-type place() :: 0..63.

-record(state, {
    have = #{} :: libraries(),
    asked = none :: none | {load, library()} | {unload, place()},
    until = 0 :: integer()
}).

-opaque state() :: #state{}.

%% As LIBRARIES_MAX and LIBRARY_FUNCTIONS_MAX of c_src/host/life/library.h.
-define(LIBRARIES_MAX, 64).
-define(FUNCTIONS_MAX, 16384).

-spec new() -> state().
new() ->
    #state{}.

%% The frame that is to be sent now, if any; waits: for an answer; done: it has what it is to have.
%% The answer must come within Ms.
-spec next([library()], integer(), pos_integer(), state()) ->
    {send, term(), state()} | waits | done.
next(Wanted, NowMs, Ms, #state{asked = none, have = Have} = State) ->
    case {excess(Wanted, Have), missing(Wanted, Have)} of
        {[Number | _], _} ->
            Asked = {unload, Number},
            {send, Asked, State#state{asked = Asked, until = NowMs + Ms}};
        {[], [Library | _]} ->
            Asked = {load, Library},
            Frame = load(Library, Wanted, Have),
            {send, Frame, State#state{asked = Asked, until = NowMs + Ms}};
        {[], []} ->
            done
    end;
next(_Wanted, _NowMs, _Ms, _State) ->
    waits.

excess(Wanted, Have) ->
    Keys = maps:from_list([{Number, Key} || #{number := Number, key := Key} <- Wanted]),
    lists:sort([
        Number
     || {Number, {Key, _}} <- maps:to_list(Have), maps:find(Number, Keys) =/= {ok, Key}
    ]).

missing(Wanted, Have) ->
    [Library || #{number := Number} = Library <- Wanted, not is_map_key(Number, Have)].

load(#{number := Number, upgrades := Before} = Library, Wanted, Have) ->
    #{module := Module, path := Path, load_info := LoadInfo, loader := Loader} = Library,
    Upgrades = [
        Other
     || #{key := Key, number := Other} <- Wanted, Key =:= Before, is_map_key(Other, Have)
    ],
    Known = [{caller, Loader} || is_pid(Loader)] ++ [{upgrades, Other} || Other <- Upgrades],
    Settings = maps:from_list([{library, Number} | Known]),
    {load, path_binary(Path), Module, LoadInfo, Settings}.

path_binary(Path) ->
    unicode:characters_to_binary(Path, unicode, file:native_name_encoding()).

-spec is_late(integer(), state()) -> boolean().
is_late(_NowMs, #state{asked = none}) -> false;
is_late(NowMs, #state{until = Until}) -> NowMs > Until.

%% changed: its functions are not those that it was probed with; unasked: it was not to load that.
-spec loaded([{binary(), arity()}], {non_neg_integer(), info()}, state()) ->
    {ok, state()} | {changed, library()} | unasked.
loaded(Functions, {Number, Info}, #state{asked = {load, #{number := Number} = Library}} = State) ->
    #{functions := Probed, key := Key} = Library,
    case Functions =:= [{atom_to_binary(Name), Arity} || {Name, Arity} <- Probed] of
        true ->
            Have = (State#state.have)#{Number => {Key, Info}},
            {ok, State#state{have = Have, asked = none}};
        false ->
            {changed, Library}
    end;
loaded(_Functions, _NumberInfo, _State) ->
    unasked.

-spec refused(state()) -> {ok, library(), state()} | unasked.
refused(#state{asked = {load, Library}} = State) -> {ok, Library, State#state{asked = none}};
refused(_State) -> unasked.

-spec unloaded(non_neg_integer(), state()) -> {ok, state()} | unasked.
unloaded(Number, #state{asked = {unload, Number}, have = Have} = State) ->
    {ok, State#state{have = maps:remove(Number, Have), asked = none}};
unloaded(_Number, _State) ->
    unasked.

-spec loaded_all(state()) -> libraries().
loaded_all(#state{have = Have}) ->
    Have.

%% A number that none of these has, the first after Last: a number that was just given up is the
%% last that is given again.
-spec free_number(integer(), [non_neg_integer()]) -> {ok, place()} | none.
free_number(Last, Taken) ->
    After = [(Last + Step) rem ?LIBRARIES_MAX || Step <- lists:seq(1, ?LIBRARIES_MAX)],
    case After -- Taken of
        [Number | _] -> {ok, Number};
        [] -> none
    end.

%% The number by which hosts know a function of a library.
-spec function(place(), non_neg_integer()) -> non_neg_integer().
function(Number, Index) ->
    Number * ?FUNCTIONS_MAX + Index.
