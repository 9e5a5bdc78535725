%% What the comparison of a library in the VM and isolated runs in each of its VMs: cases, which are
%% calls one after the other, in a process of their own. Tame.Audit.Conform compares what comes
%% back, which has no identifiers of this VM: the first reference is {'$ref', 1} in each.
%%
%% A case has for each argument how to make it, so that it is the same in every VM:
%%
%%   {term, Term}         that term                {random, Seed, Budget}  Tame.SizeClasses
%%   {make, Name, Bytes}  tame_audit_input         {class, Name}           Tame.SizeClasses
%%   self                 the calling process      {step, N, Path}         of an earlier value:
%%                                                 elements of tuples and lists, from 1
-module(tame_conform).

-export([callers/4]).
-export([dies/3]).
-export([holders/2]).
-export([host/1]).
-export([isolate/2]).
-export([open/2]).
-export([run/2]).
-export([sorted/1]).

%% Internal.
-export([ended_by/1]).
-export([hold/2]).
-export([loop/1]).
-export([made/1]).
-export([rounds/2]).

-export_type([argument/0]).
-export_type([outcome/0]).
-export_type([step/0]).

-type argument() ::
    {term, term()}
    | {make, atom(), pos_integer()}
    | {class, term()}
    | {random, non_neg_integer(), non_neg_integer()}
    | self
    | {step, pos_integer(), [pos_integer()]}.

-type step() :: {mfa(), [argument()]}.

%% The value or exception of a call, and the messages that it has sent to its caller; where the
%% value has references, and whether it is an error's.
-type outcome() :: #{
    did := {value | error | exit | throw, term()} | {error, term(), mfa() | none} | ended,
    messages := [term()],
    refused := boolean(),
    references := [[pos_integer()]]
}.

%% What is larger is compared by its hash.
-define(PLAIN_BYTES, 2048).
%% A value has more than it is worth trying.
-define(REFERENCES, 4).
-define(CLASS_BYTES, 65536).

%% ---- the library -------------------------------------------------------------------------------

%% Loads a function's module, in a folder where what it writes is in nobody's way.
-spec open(mfa(), file:filename()) -> term().
open({Module, _, _} = Function, Folder) ->
    case prepare(Function, Folder) of
        {ok, _} = Answer ->
            case Module:module_info(nifs) of
                [] -> {error, no_nifs};
                [_ | _] -> Answer
            end;
        Error ->
            Error
    end.

prepare(Function, Folder) ->
    ok = file:set_cwd(Folder),
    case tame_audit_load:prepare(Function) of
        {ok, {not_started, Application, Why}} -> {error, {not_started, Application, Why}};
        Answer -> Answer
    end.

%% Before the module's application is started, as a configuration does.
-spec isolate(mfa(), file:filename()) -> term().
isolate({Module, _, _} = Function, Folder) ->
    %% That of a host is where it was started.
    ok = file:set_cwd(Folder),
    {ok, _} = application:ensure_all_started(tame),
    case tame:isolate(Module, #{}) of
        ok ->
            case tame:info() of
                #{Module := #{load := ok}} -> {ok, none};
                #{} -> prepare(Function, Folder)
            end;
        {error, {_, Sentence}} -> {error, {refused, unicode:characters_to_binary(Sentence)}}
    end.

%% Of an isolated module: its host's OS process, how many resources the VM holds for it, and how
%% many processes the VM has.
-spec host(module()) -> {ok, #{atom() => integer()}} | none.
host(Module) ->
    case tame:info() of
        #{Module := #{hosts := [#{os_pid := OsPid, rss_bytes := Bytes, ring := Ring}]}} ->
            {ok, #{
                os_pid => OsPid,
                resources => maps:get(resources, Ring, 0),
                rss_bytes => Bytes,
                processes => erlang:system_info(process_count)
            }};
        _ ->
            none
    end.

%% ---- a case ------------------------------------------------------------------------------------

-spec run([step()], pos_integer()) -> {ok, [outcome()]} | {error, hangs}.
run(Steps, LimitMs) ->
    tame_audit_process:quietly(fun() -> alone(fun() -> steps(Steps) end, LimitMs) end).

alone(Fun, LimitMs) ->
    {Pid, Ref} = spawn_monitor(?MODULE, ended_by, [Fun]),
    receive
        {'DOWN', Ref, process, Pid, {?MODULE, Outcomes}} -> {ok, Outcomes};
        {'DOWN', Ref, process, Pid, _} -> {ok, [outcome(ended, ended, [])]}
    after LimitMs ->
        true = exit(Pid, kill),
        true = demonitor(Ref, [flush]),
        {error, hangs}
    end.

%% Its value is why the process ends.
-spec ended_by(fun(() -> term())) -> no_return().
ended_by(Fun) ->
    exit({?MODULE, Fun()}).

steps(Steps) ->
    _ = erase({?MODULE, names}),
    {Outcomes, _} = lists:mapfoldl(fun step/2, [], Steps),
    Outcomes.

step({{Module, Name, _}, Arguments}, Values) ->
    Args = [argument(Argument, Values) || Argument <- Arguments],
    Did =
        try
            {value, apply(Module, Name, Args)}
        catch
            error:Reason:Stack -> {error, Reason, head(Stack, Module)};
            Class:Reason -> {Class, Reason}
        end,
    Value = case Did of {value, V} -> V; _ -> none end,
    {outcome(Did, Value, messages()), Values ++ [Value]}.

%% Where an error of the library's module comes from; what other modules look like inside is theirs.
head([{Module, Name, Args, _} | _], Module) when is_list(Args) -> {Module, Name, length(Args)};
head([{Module, Name, Arity, _} | _], Module) -> {Module, Name, Arity};
head(_, _) -> none.

messages() ->
    receive
        Message -> [Message | messages()]
    after 0 -> []
    end.

outcome(Did, Value, Messages) ->
    #{
        did => plain_did(Did),
        messages => [plain(Message) || Message <- Messages],
        refused => refused(Did),
        references => lists:sublist(references(Value, []), ?REFERENCES)
    }.

plain_did({Class, Term}) -> {Class, plain(Term)};
plain_did({error, Reason, Head}) -> {error, plain(Reason), Head};
plain_did(ended) -> ended.

refused({value, error}) -> true;
refused({value, Tuple}) when is_tuple(Tuple), tuple_size(Tuple) > 1 -> element(1, Tuple) =:= error;
refused({value, _}) -> false;
refused(_) -> true.

%% ---- arguments ---------------------------------------------------------------------------------

argument({term, Term}, _) -> Term;
argument({make, Name, Bytes}, _) -> tame_audit_input:make(Name, Bytes);
argument({class, Name}, _) -> maps:get(Name, classes());
argument({random, Seed, Budget}, _) -> 'Elixir.Tame.SizeClasses':random(Seed, Budget);
argument(self, _) -> self();
argument({step, N, Path}, Values) when N =< length(Values) -> at(Path, lists:nth(N, Values));
argument({step, _, _}, _) -> none.

at([], Value) -> Value;
at([N | Path], Tuple) when is_tuple(Tuple), N =< tuple_size(Tuple) -> at(Path, element(N, Tuple));
at([N | Path], List) when is_list(List), N =< length(List) -> at(Path, lists:nth(N, List));
at(_, _) -> none.

%% What an argument is, for who reads of it.
-spec made(argument()) -> term().
made(Argument) -> argument(Argument, []).

classes() ->
    case persistent_term:get(?MODULE, undefined) of
        undefined ->
            Classes = maps:from_list('Elixir.Tame.SizeClasses':some(?CLASS_BYTES)),
            ok = persistent_term:put(?MODULE, Classes),
            Classes;
        Classes ->
            Classes
    end.

%% ---- values without identifiers ----------------------------------------------------------------

references(Reference, Path) when is_reference(Reference) -> [lists:reverse(Path)];
references(Tuple, Path) when is_tuple(Tuple), tuple_size(Tuple) < 16 ->
    references(tuple_to_list(Tuple), Path, 1);
references([_ | _] = List, Path) -> references(List, Path, 1);
references(_, _) -> [].

references([Head | Tail], Path, N) when N < 16 ->
    references(Head, [N | Path]) ++ references(Tail, Path, N + 1);
references(_, _, _) ->
    [].

plain(Term) ->
    Plain = named(Term),
    case erlang:external_size(Plain) of
        Size when Size =< ?PLAIN_BYTES -> Plain;
        Size -> {'$large', Size, hash(Plain), hash(sorted(Plain))}
    end.

hash(Term) -> erlang:md5(term_to_binary(Term, [deterministic])).

%% Whatever the order of its lists is: what differs in that alone is told as such.
-spec sorted(term()) -> term().
sorted(Tuple) when is_tuple(Tuple) -> list_to_tuple([sorted(One) || One <- tuple_to_list(Tuple)]);
sorted([Head | Tail]) when is_list(Tail) ->
    case length_of(Tail) of
        improper -> [sorted(Head) | Tail];
        _ -> lists:sort([sorted(One) || One <- [Head | Tail]])
    end;
sorted(Map) when is_map(Map) -> maps:map(fun(_, Value) -> sorted(Value) end, Map);
sorted(Term) -> Term.

length_of(List) ->
    try length(List) catch error:badarg -> improper end.

named(Pid) when is_pid(Pid), Pid =:= self() -> '$self';
named(Name) when is_reference(Name) -> name('$ref', Name);
named(Name) when is_pid(Name) -> name('$pid', Name);
named(Name) when is_port(Name) -> name('$port', Name);
named(Fun) when is_function(Fun) ->
    {module, Module} = erlang:fun_info(Fun, module),
    {arity, Arity} = erlang:fun_info(Fun, arity),
    {'$fun', Module, Arity};
named(Tuple) when is_tuple(Tuple) -> list_to_tuple(named(tuple_to_list(Tuple)));
named([Head | Tail]) -> [named(Head) | named(Tail)];
named(Map) when is_map(Map) ->
    maps:from_list([{named(Key), named(Value)} || {Key, Value} <- maps:to_list(Map)]);
named(Term) -> Term.

name(Kind, Term) ->
    Names = case get({?MODULE, names}) of undefined -> #{}; Map -> Map end,
    case Names of
        #{Term := Number} ->
            {Kind, Number};
        #{} ->
            _ = put({?MODULE, names}, Names#{Term => map_size(Names) + 1}),
            {Kind, map_size(Names) + 1}
    end.

%% ---- many processes ----------------------------------------------------------------------------

%% What that number of processes see that run all cases at once, each beginning with another: the
%% outcomes of each case, in its place, without those that were seen before.
-spec callers([[step()]], pos_integer(), pos_integer(), pos_integer()) ->
    {ok, [[[outcome()]]]} | {error, hangs}.
callers(Cases, Count, Rounds, LimitMs) ->
    tame_audit_process:quietly(fun() -> callers_(Cases, Count, Rounds, LimitMs) end).

callers_(Cases, Count, Rounds, LimitMs) ->
    Numbered = lists:enumerate(Cases),
    Until = erlang:monotonic_time(millisecond) + LimitMs,
    Started = [
        spawn_monitor(?MODULE, rounds, [rotated(N * length(Cases) div Count, Numbered), Rounds])
     || N <- lists:seq(0, Count - 1)
    ],
    case gathered(Started, #{}, Until) of
        {ok, Seen} -> {ok, [lists:usort(maps:get(N, Seen, [])) || {N, _} <- Numbered]};
        Hangs -> Hangs
    end.

rotated(N, List) ->
    {First, Rest} = lists:split(N, List),
    Rest ++ First.

-spec rounds([{pos_integer(), [step()]}], pos_integer()) -> no_return().
rounds(Numbered, Rounds) ->
    exit({?MODULE, [{N, steps(Steps)} || _ <- lists:seq(1, Rounds), {N, Steps} <- Numbered]}).

gathered([], Seen, _Until) ->
    {ok, Seen};
gathered([{Pid, Ref} | Rest], Seen, Until) ->
    receive
        {'DOWN', Ref, process, Pid, {?MODULE, Outcomes}} ->
            Add = fun({N, Outcome}, Map) ->
                maps:update_with(N, fun(Old) -> lists:usort([Outcome | Old]) end, [Outcome], Map)
            end,
            gathered(Rest, lists:foldl(Add, Seen, Outcomes), Until);
        {'DOWN', Ref, process, Pid, _} ->
            gathered(Rest, Seen, Until)
    after max(0, Until - erlang:monotonic_time(millisecond)) ->
        [exit(P, kill) || {P, _} <- [{Pid, Ref} | Rest]],
        {error, hangs}
    end.

%% So many processes that each run a case and keep what it returned are killed.
-spec holders([[step()]], pos_integer()) -> ok.
holders(Cases, Count) ->
    tame_audit_process:quietly(fun() ->
        Started = [
            spawn_monitor(?MODULE, hold, [lists:nth(N rem length(Cases) + 1, Cases), self()])
         || N <- lists:seq(1, Count)
        ],
        _ = [holds(Pid, Ref) || {Pid, Ref} <- Started],
        ended(Started)
    end).

holds(Pid, Ref) ->
    receive
        {?MODULE, Pid, holds} -> ok;
        {'DOWN', Ref, process, Pid, _} -> self() ! {'DOWN', Ref, process, Pid, gone}
    end.

-spec hold([step()], pid()) -> no_return().
hold(Steps, Parent) ->
    {_, Values} = lists:mapfoldl(fun step/2, [], Steps),
    Parent ! {?MODULE, self(), holds},
    receive
        {?MODULE, never} -> exit(Values)
    end.

%% So many processes, one after the other, that are killed while they call, after up to MostUs.
-spec dies([[step()]], pos_integer(), pos_integer()) -> ok.
dies(Cases, Count, MostUs) ->
    tame_audit_process:quietly(fun() ->
        lists:foreach(fun(N) ->
            Started = [
                spawn_monitor(?MODULE, loop, [rotated((N + M) rem length(Cases), Cases)])
             || M <- lists:seq(0, 3)
            ],
            spin_us(N * MostUs div Count),
            ended(Started)
        end, lists:seq(1, Count))
    end).

-spec loop([[step()]]) -> no_return().
loop(Cases) ->
    lists:foreach(fun steps/1, Cases),
    loop(Cases).

spin_us(Us) ->
    Until = erlang:monotonic_time(microsecond) + Us,
    (fun Spin() ->
        case erlang:monotonic_time(microsecond) < Until of
            true -> erlang:yield(), Spin();
            false -> ok
        end
    end)().

ended(Started) ->
    _ = [exit(Pid, kill) || {Pid, _} <- Started],
    lists:foreach(fun({Pid, Ref}) -> receive {'DOWN', Ref, process, Pid, _} -> ok end end, Started).
