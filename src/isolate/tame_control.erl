%% Reads and writes the frames of a host's control port. Pure: it owns no process and no port.
%%
%% Each way in from a host is hostile. A frame is four bytes of length, the highest first, and a
%% term in external format. It is accepted when its length is within bounds, it is not compressed,
%% it names only atoms that exist, it is a term from its first byte to its last, and the term is one
%% of frame() with every field checked: kind, size, count. Anything else is {bad, Sentence}, and
%% ends the host. Whether a frame may come now, and whether a process may be sent to, is for
%% tame_host to say.
-module(tame_control).

-export([new/0]).
-export([long/1]).
-export([feed/2]).
-export([check/1]).
-export([encode/1]).
-export([printable/2]).
-export([words/0]).

-export_type([frame/0]).
-export_type([query/0]).
-export_type([reader/0]).

-import(tame_text, [text/2]).

%% As c_src/host/life/control.h.
-define(PROTOCOL, 4).
%% The longest frame, and the most memory that one may take as a term: a list of empty lists takes
%% 16 bytes of memory for each byte of its frame. As c_src/host/port/frame_bounds.h.
-define(FRAME_BYTES_MAX, 1 bsl 26).
-define(FRAME_MEMORY_MAX, 1 bsl 28).
%% Before it has its ring, and loads a library, a host has little to say.
-define(EARLY_BYTES_MAX, 1 bsl 20).
%% The most that a library can have: enif's function table is written by hand.
-define(FUNCTIONS_MAX, 10000).
-define(NAME_BYTES_MAX, 1020).
-define(TEXT_BYTES_MAX, 16384).
%% New names in one query, leases in one frame: a host that has more to say says it in several.
-define(NAMES_MAX, 100000).
-define(LEASES_MAX, 1000000).
%% As ETF_NAMES_MAX and ETF_NAMES_NS (c_src/ring/etf_names.h).
-define(NAMES_OF_NODES, 1024).
-define(NAMES_S, 60).
-define(IS_ID(Id), is_integer(Id) andalso Id >= 0 andalso Id < 1 bsl 64).
-define(IS_SMALL(N, Most), is_integer(N) andalso N >= 0 andalso N =< Most).
-define(IS_TEXT(Text), is_binary(Text) andalso byte_size(Text) =< ?TEXT_BYTES_MAX).

-define(IS_LIMIT(Limit),
    Limit =:= none orelse Limit =:= memory orelse Limit =:= cpu orelse Limit =:= open_files orelse
        Limit =:= threads
).

-type query() ::
    {existing_atom, binary()}
    | {new_atoms, [binary()]}
    | {phash2, term()}
    | {flat_size, term()}
    | {whereis, binary()}
    | {alive, pid() | port()}
    | {port_command, port(), iodata()}
    | {monitor, non_neg_integer(), pid()}
    | {demonitor, non_neg_integer()}
    | {hold, non_neg_integer(), [reference()]}
    | {unique_integer, [positive | monotonic]}
    | leases
    | sync
    | make_ref.

-type frame() ::
    {hello, pos_integer()}
    | {ring, non_neg_integer()}
    | {ring_refused, binary()}
    | {loaded, [{binary(), arity()}], {non_neg_integer(), tame_host_libraries:info()}}
    | {unloaded, non_neg_integer()}
    | {refused, atom(), binary()}
    | {query, non_neg_integer(), query()}
    | {send, pid(), term(), [non_neg_integer()], Memory :: non_neg_integer()}
    | {pong, non_neg_integer()}
    | {ended, map()}.

-record(reader, {
    %% The longest frame that may come.
    most = ?EARLY_BYTES_MAX :: pos_integer(),
    %% What was read of an incomplete one; and how many bytes there must be before it is worth a
    %% look: its length and what that says, or only the length.
    have = <<>> :: binary(),
    needed = 4 :: pos_integer(),
    %% Names of nodes, by their hashes, since when they are counted.
    names = #{} :: #{non_neg_integer() => true},
    names_since = never :: never | integer()
}).

-opaque reader() :: #reader{}.

-spec new() -> reader().
new() ->
    #reader{}.

%% From now on frames may be as long as messages are.
-spec long(reader()) -> reader().
long(Reader) ->
    Reader#reader{most = ?FRAME_BYTES_MAX}.

%% More bytes from the port: the frames that they complete, in order. What is bad ends the stream;
%% the frames before it count.
%%
%% Bytes are appended to one binary that nobody else has, which the emulator lets grow in its place
%% as long as it is not matched: a frame that comes byte by byte is neither copied nor looked at for
%% each of them.
-spec feed(binary(), reader()) -> {ok, [frame()], reader()} | {bad, [frame()], string()}.
feed(Data, #reader{have = Have, needed = Needed} = Reader) when
    byte_size(Have) + byte_size(Data) < Needed
->
    {ok, [], Reader#reader{have = <<Have/binary, Data/binary>>}};
feed(Data, #reader{have = <<>>} = Reader) ->
    frames(Data, Reader, []);
feed(Data, #reader{have = Have} = Reader) ->
    frames(<<Have/binary, Data/binary>>, Reader, []).

frames(<<Size:32, _/binary>>, #reader{most = Most}, Frames) when Size > Most ->
    {bad, lists:reverse(Frames), too_long(Size, Most)};
frames(<<Size:32, Bytes:Size/binary, Rest/binary>>, Reader, Frames) ->
    case decode(Bytes) of
        {ok, Frame, Names} ->
            case named(Names, Reader) of
                {ok, Later} ->
                    frames(Rest, Later, [Frame | Frames]);
                error ->
                    {bad, Sentence} = too_many_names(),
                    {bad, lists:reverse(Frames), Sentence}
            end;
        {bad, Sentence} ->
            {bad, lists:reverse(Frames), Sentence}
    end;
frames(Rest, Reader, Frames) ->
    %% A copy: the rest must not hold what was read before it.
    {ok, lists:reverse(Frames), Reader#reader{have = binary:copy(Rest), needed = needed(Rest)}}.

%% The emulator remembers each name of a node for a minute after its last use.
named([], Reader) ->
    {ok, Reader};
named(Names, #reader{names = Before, names_since = Since} = Reader) ->
    Now = erlang:monotonic_time(second),
    {Known, From} =
        if
            is_integer(Since), Now - Since =< ?NAMES_S -> {Before, Since};
            true -> {#{}, Now}
        end,
    All = maps:merge(Known, maps:from_keys(Names, true)),
    case map_size(All) =< ?NAMES_OF_NODES of
        true -> {ok, Reader#reader{names = All, names_since = From}};
        false -> error
    end.

needed(<<Size:32, _/binary>>) -> 4 + Size;
needed(_) -> 4.

too_long(Size, Most) ->
    text("a frame of ~b bytes, and ~b are the most", [Size, Most]).

decode(<<131, 80, _/binary>> = Bytes) ->
    {bad, text("a compressed frame of ~b bytes", [byte_size(Bytes)])};
decode(<<131, _, _/binary>> = Bytes) ->
    case tame_ring:scan(Bytes) of
        {ok, #{memory := Memory} = Scanned} when Memory =< ?FRAME_MEMORY_MAX ->
            case tame_ring:read(Bytes, Scanned) of
                {ok, Term} -> measured(Scanned, check(Term));
                error -> no_term(Bytes, "no term, or names an unknown atom")
            end;
        {ok, #{memory := Memory}} ->
            Format = "a frame that takes ~b bytes of memory, and ~b are the most",
            {bad, text(Format, [Memory, ?FRAME_MEMORY_MAX])};
        {error, nodes} ->
            too_many_names();
        {error, What} ->
            no_term(Bytes, text("no term: ~p", [What]))
    end;
decode(Bytes) ->
    no_term(Bytes, "no term").

no_term(Bytes, What) ->
    {bad, text("a frame of ~b bytes that is ~s", [byte_size(Bytes), What])}.

too_many_names() ->
    {bad, text("pids, ports and references of more than ~b nodes in a minute", [?NAMES_OF_NODES])}.

%% What a message takes in its receiver is no more than what its frame does here.
measured(#{memory := Memory, names := Names}, {ok, {send, Pid, Message, Leases, _}}) ->
    {ok, {send, Pid, Message, Leases, Memory}, Names};
measured(#{names := Names}, {ok, Frame}) ->
    {ok, Frame, Names};
measured(_Scanned, {bad, _} = Bad) ->
    Bad.

%% The frame that a term is. Details that are of no use here are dropped.
-spec check(term()) -> {ok, frame()} | {bad, string()}.
check({hello, ?PROTOCOL, OsPid, Info}) when ?IS_SMALL(OsPid, 1 bsl 31), OsPid > 1, is_map(Info) ->
    {ok, {hello, OsPid}};
check({hello, Protocol, _, _}) when Protocol =/= ?PROTOCOL ->
    Format = "hello with protocol ~s, and this is ~b: tame and tame_host are of different versions",
    {bad, text(Format, [protocol(Protocol), ?PROTOCOL])};
check({ring, Fd}) when ?IS_SMALL(Fd, 1 bsl 20) ->
    {ok, {ring, Fd}};
check({ring_refused, Text}) when ?IS_TEXT(Text) ->
    {ok, {ring_refused, Text}};
check({loaded, Functions, Info}) when is_list(Functions), is_map(Info) ->
    Loaded = maps:with([wants_caller, sends, resources], Info),
    Number = maps:get(library, Info, none),
    Booleans = map_size(Loaded) =:= 3 andalso lists:all(fun is_boolean/1, maps:values(Loaded)),
    IsNumbered = ?IS_SMALL(Number, 63),
    case IsNumbered andalso Booleans andalso all_are(fun is_row/1, Functions, ?FUNCTIONS_MAX) of
        true -> {ok, {loaded, [{Name, Arity} || {Name, Arity, _} <- Functions], {Number, Loaded}}};
        false -> {bad, shape("frame", {loaded, Functions, Info})}
    end;
check({unloaded, Number}) when ?IS_SMALL(Number, 63) ->
    {ok, {unloaded, Number}};
check({refused, Reason, Details, Text}) when is_atom(Reason), is_map(Details), ?IS_TEXT(Text) ->
    {ok, {refused, Reason, Text}};
check({query, Id, What}) when ?IS_ID(Id) ->
    case is_query(What) of
        true -> {ok, {query, Id, What}};
        false -> {bad, shape("query", What)}
    end;
check({send, Pid, Message, Leases}) when is_pid(Pid), is_list(Leases) ->
    case all_are(fun is_id/1, Leases, ?LEASES_MAX) of
        true -> {ok, {send, Pid, Message, Leases, 0}};
        false -> {bad, shape("frame", {send, Pid, Message, Leases})}
    end;
check({pong, N}) when ?IS_ID(N) ->
    {ok, {pong, N}};
check({ended, Signal, Address, Function, Arity, Backtrace, Stderr, Limit}) when
    ?IS_SMALL(Signal, 128),
    ?IS_ID(Address),
    is_binary(Function),
    byte_size(Function) =< ?NAME_BYTES_MAX,
    ?IS_SMALL(Arity, 255),
    ?IS_TEXT(Backtrace),
    ?IS_TEXT(Stderr),
    ?IS_LIMIT(Limit)
->
    {ok,
        {ended, #{
            signal => Signal,
            address => Address,
            function => {Function, Arity},
            backtrace => Backtrace,
            stderr => Stderr,
            limit => Limit
        }}};
check(Other) ->
    {bad, shape("frame", Other)}.

%% What a host calls its protocol may be any term, and a number of any length.
protocol(Protocol) when ?IS_SMALL(Protocol, 16#FFFFFFFF) -> integer_to_list(Protocol);
protocol(_) -> "that is no number from 0 to 4294967295".

is_row({Name, Arity, Flags}) ->
    is_binary(Name) andalso byte_size(Name) =< ?NAME_BYTES_MAX andalso
        ?IS_SMALL(Arity, 255) andalso is_integer(Flags);
is_row(_) ->
    false.

is_id(Id) ->
    ?IS_ID(Id).

is_query({existing_atom, Name}) -> is_name(Name);
is_query({new_atoms, Names}) -> all_are(fun is_name/1, Names, ?NAMES_MAX);
is_query({phash2, _Term}) -> true;
is_query({flat_size, _Term}) -> true;
is_query({whereis, Name}) -> is_name(Name);
is_query({alive, Identifier}) -> is_pid(Identifier) orelse is_port(Identifier);
is_query({port_command, Port, _Data}) -> is_port(Port);
is_query({monitor, Id, Pid}) -> ?IS_ID(Id) andalso is_pid(Pid);
is_query({demonitor, Id}) -> ?IS_ID(Id);
is_query({hold, Call, Refs}) -> ?IS_ID(Call) andalso all_are(fun is_reference/1, Refs, ?LEASES_MAX);
is_query({unique_integer, Modifiers}) -> all_are(fun is_modifier/1, Modifiers, 2);
is_query(What) -> What =:= leases orelse What =:= sync orelse What =:= make_ref.

is_modifier(Modifier) ->
    Modifier =:= positive orelse Modifier =:= monotonic.

%% Valid UTF-8, and no longer than an atom may be.
is_name(Name) when is_binary(Name), byte_size(Name) =< ?NAME_BYTES_MAX ->
    case unicode:characters_to_list(Name) of
        Characters when is_list(Characters) -> length(Characters) =< 255;
        _ -> false
    end;
is_name(_) ->
    false.

%% Whether a term is a proper list of at most this many such elements.
all_are(_Is, [], _Most) ->
    true;
all_are(Is, [Element | Rest], Most) when Most > 0 ->
    Is(Element) andalso all_are(Is, Rest, Most - 1);
all_are(_Is, _Rest, _Most) ->
    false.

%% By kind and size alone: to print what a host wrote could take for ever.
shape(What, Term) when is_tuple(Term), tuple_size(Term) > 0, is_atom(element(1, Term)) ->
    text("a malformed ~s: ~tp with ~b fields", [What, element(1, Term), tuple_size(Term) - 1]);
shape(What, Term) when is_atom(Term) ->
    text("a malformed ~s: ~tp", [What, Term]);
shape(What, _Term) ->
    text("a malformed ~s: neither an atom nor a tuple that begins with one", [What]).

%% A frame for the host, with its length.
-spec encode(term()) -> [binary()].
encode(Term) ->
    Bytes = term_to_binary(Term),
    [<<(byte_size(Bytes)):32>>, Bytes].

%% The atoms that a host may name, in frames and in replies. They must be in a loaded module, this
%% one, because binary_to_term with [safe] refuses an atom that does not exist.
-spec words() -> [atom()].
words() ->
    [
        hello, ring, ring_refused, loaded, library, unloaded, wants_caller, sends, resources,
        refused, query, send, pong, ended, existing_atom, new_atoms, phash2, flat_size, whereis,
        alive, port_command, monitor, demonitor, leases, hold, sync, make_ref, unique_integer,
        positive, monotonic, workers, nif_version, functions, value, reply, raise, bad_library,
        cannot_read, crashed, exited, hangs, load_returned, upgrade_returned, no_upgrade,
        missing_functions, needs_newer_erts, no_such_file, wrong_architecture, limit, none,
        memory, cpu, open_files, threads, tame, reply_too_large, returned_no_term, system_limit,
        undefined
    ].

%% A host's text, made safe for a log: at most BytesMax bytes, valid UTF-8, no control characters
%% but line ends.
-spec printable(binary(), non_neg_integer()) -> binary().
printable(Text, BytesMax) ->
    Cut = binary:part(Text, 0, min(byte_size(Text), BytesMax)),
    Characters =
        case unicode:characters_to_list(Cut) of
            List when is_list(List) -> List;
            {_, List, _} when byte_size(Cut) < byte_size(Text) -> List;
            _ -> binary_to_list(Cut)
        end,
    <<<<(plain(Character))/utf8>> || Character <- Characters>>.

plain($\n) -> $\n;
plain($\t) -> $\s;
plain(Character) when Character < 32; Character >= 127, Character < 160 -> $.;
plain(Character) -> Character.
