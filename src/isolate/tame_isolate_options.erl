%% The options of tame:isolate/2: what each may be, its default, and the sentence that refuses
%% another value. docs/guide/isolate.md says what they are for; a test compares its table with this
%% one.
-module(tame_isolate_options).

-export([complete/1]).
-export([named/1]).
-export([table/0]).

-export_type([options/0]).

-import(tame_text, [text/2]).

%% Everything has a default.
-type options() :: #{
    %% Number of OS processes: a fixed number, or {Min, Max}, scaled with demand.
    hosts => pos_integer() | {pos_integer(), pos_integer()},
    %% Calls that one host runs at once. While all of them wait and more callers do, up to ten more
    %% are started; one beside them takes no calls of dirty functions.
    workers => 1..1024,
    %% How long a caller waits before {tame, deadline} is raised.
    deadline_ms => pos_integer() | infinity,
    %% How much longer the native code may go on then, before its host is killed.
    grace_ms => pos_integer(),
    %% Callers that may wait for a slot of one host, and for a host while none is up.
    max_waiting => non_neg_integer(),
    %% How long a caller waits for a host while none is up.
    wait_ms => pos_integer(),
    %% A host beyond the fewest is stopped when it has been idle for this long and the VM holds no
    %% native resource of it.
    idle_ms => pos_integer(),
    %% How long a host may take to start and load.
    start_ms => pos_integer(),
    %% How long a host may leave a question of the VM unanswered before it is replaced, whether it
    %% is stopped, swapped out or held by a debugger. It is asked after a second without replies,
    %% and every five seconds also while it replies.
    answer_ms => pos_integer() | infinity,
    %% More crashes than {Count, Ms} says and the host is not started again.
    intensity => {non_neg_integer(), pos_integer()} | infinity,
    %% How long a host stays down after the second crash in a row, and at most.
    backoff_ms => {non_neg_integer(), non_neg_integer()},
    %% How long a caller spins before it waits in receive.
    spin_us => 0..1000,
    %% The shared memory of a host: slots, bytes of each, and of the area each way for what is
    %% larger. Memory is taken as it is needed.
    slots => 1..1024,
    slot_bytes => pos_integer(),
    area_bytes => pos_integer(),
    %% The memory that one reply may take in its caller.
    max_reply_bytes => pos_integer(),
    %% New atoms that the library may make, in all its hosts together.
    max_atoms => non_neg_integer(),
    %% What the library may take of the system, in each host.
    limits => tame_host_limits:limits(),
    %% For the configuration only: what happens when the module cannot be isolated. fail: the
    %% application tame does not start. in_vm: that is logged, and the module runs inside the VM.
    otherwise => fail | in_vm,
    %% The group whose hosts its library runs in, with the libraries of others (tame_group). A
    %% module without it has a group of its own name.
    share => atom(),
    %% The NIF library, where it is not found.
    library => file:filename(),
    %% How the module is bound.
    bind => tame_bind:how(),
    %% The program.
    host => file:filename()
}.

%% false: what is expected in general; with a string: what is expected in this case.
-type check() :: fun((term()) -> boolean() | {false, string()}).

%% Each option once, in the order of the guide: its name, its default (none: tame finds the file),
%% the check of a value, and what is expected.
-spec table() -> [{atom(), {default, term()} | none, check(), string()}].
table() ->
    [
        {hosts, {default, 1}, fun is_hosts/1, "1 to 64, or {Fewest, Most}"},
        whole(workers, 2, 1, 1024),
        whole_or_infinity(deadline_ms, infinity),
        whole(grace_ms, 1000, 1, 1 bsl 31),
        whole(max_waiting, 16384, 0, 1 bsl 30),
        whole(wait_ms, 5000, 1, 1 bsl 31),
        whole(idle_ms, 30000, 1, 1 bsl 31),
        whole(start_ms, 10000, 1, 1 bsl 31),
        whole_or_infinity(answer_ms, 5000),
        {intensity, {default, {10, 1000}}, fun is_intensity/1, "{Crashes, Ms} or infinity"},
        {backoff_ms, {default, {10, 5000}}, fun is_backoff/1, "{First, Most} in ms"},
        whole(spin_us, 20, 0, 1000),
        whole(slots, 64, 1, 1024),
        {slot_bytes, {default, 16384}, fun is_slot_bytes/1, "a power of two from 4096 to 65536"},
        {area_bytes, {default, 1 bsl 30}, fun is_area_bytes/1,
            "a multiple of 4096 up to 68719476736"},
        whole(max_reply_bytes, 1 bsl 30, 4096, 1 bsl 40),
        whole(max_atoms, 100000, 0, 1 bsl 20),
        {limits, {default, #{}}, fun tame_host_limits:check/1, tame_host_limits:expected()},
        one_of(otherwise, [fail, in_vm], "fail or in_vm"),
        {share, none, fun is_group/1, "the name of a group: an atom of at most 200 bytes"},
        {library, none, fun is_file/1, "the name of a file"},
        one_of(bind, [auto, recompile, overlay], "auto, recompile or overlay"),
        {host, none, fun is_file/1, "the name of a file"}
    ].

whole(Name, Default, Least, Most) ->
    {Name, {default, Default}, fun(Value) -> is_within(Value, Least, Most) end,
        text("a whole number from ~b to ~b", [Least, Most])}.

whole_or_infinity(Name, Default) ->
    {Name, {default, Default},
        fun(Value) -> Value =:= infinity orelse is_within(Value, 1, 1 bsl 31) end,
        text("infinity, or a whole number from 1 to ~b", [1 bsl 31])}.

%% The first is the default.
one_of(Name, [Default | _] = Values, Expected) ->
    {Name, {default, Default}, fun(Value) -> lists:member(Value, Values) end, Expected}.

is_within(Value, Least, Most) ->
    is_integer(Value) andalso Value >= Least andalso Value =< Most.

is_hosts({Min, Max}) -> is_within(Min, 1, 64) andalso is_within(Max, 1, 64) andalso Max >= Min;
is_hosts(Count) -> is_within(Count, 1, 64).

is_intensity(infinity) -> true;
is_intensity({Count, Ms}) when is_integer(Count), is_integer(Ms) -> Count >= 0 andalso Ms > 0;
is_intensity(_) -> false.

is_backoff({First, Most}) when is_integer(First), is_integer(Most) ->
    First >= 0 andalso Most >= First;
is_backoff(_) ->
    false.

is_slot_bytes(Value) -> is_within(Value, 4096, 65536) andalso Value band (Value - 1) =:= 0.

is_area_bytes(Value) -> is_within(Value, 4096, 1 bsl 36) andalso Value rem 4096 =:= 0.

is_group(Value) ->
    is_atom(Value) andalso not lists:member(Value, [nil, undefined]) andalso
        byte_size(atom_to_binary(Value)) =< 200.

is_file(Value) -> is_list(Value) orelse is_binary(Value).

%% What was asked for, a map or a list of pairs, with defaults for the rest and hosts as {Min, Max}.
-spec complete(term()) -> {ok, options()} | {error, {bad_option, string()}}.
complete(Options) when is_map(Options) ->
    case lists:append([refusal(Name, Value) || {Name, Value} <- maps:to_list(Options)]) of
        [] ->
            Defaults = maps:from_list([{Name, Value} || {Name, {default, Value}, _, _} <- table()]),
            #{hosts := Hosts} = All = maps:merge(Defaults, Options),
            {ok, All#{hosts := range(Hosts)}};
        [Sentence | _] ->
            {error, {bad_option, Sentence}}
    end;
complete(Options) when is_list(Options) ->
    try
        complete(maps:from_list(proplists:unfold(Options)))
    catch
        error:_ -> complete(not_a_map)
    end;
complete(Options) ->
    {error, {bad_option, text("~0tP: expected a map of options", [Options, 9])}}.

%% The options that are named in what complete/1 takes.
-spec named(term()) -> [atom()].
named(Options) when is_map(Options) -> maps:keys(Options);
named(Options) -> proplists:get_keys(Options).

range(Count) when is_integer(Count) -> {Count, Count};
range(Range) -> Range.

%% No sentence, or the one that refuses this value.
refusal(Name, Value) ->
    case lists:keyfind(Name, 1, table()) of
        {Name, _, Is, Expected} ->
            case Is(Value) of
                true -> [];
                false -> [text("~tp => ~0tP: expected ~ts", [Name, Value, 9, Expected])];
                {false, Here} -> [text("~tp => ~0tP: expected ~ts", [Name, Value, 9, Here])]
            end;
        false ->
            Names = lists:sort([atom_to_list(Known) || {Known, _, _, _} <- table()]),
            [text("~tp => ~0tP: no such option; there are ~ts", [
                Name, Value, 9, lists:join(", ", Names)
            ])]
    end.
