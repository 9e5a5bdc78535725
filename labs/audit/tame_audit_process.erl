%% The operating system's process in which the audit calls functions: keeps what is printed there to
%% itself, and says how much memory is in use (c_src/natives/audit/process_nif.c).
-module(tame_audit_process).

-export([memory/0]).
-export([quietly/1]).

%% Internal.
-export([sink/0]).

-export_type([memory/0]).

-nifs([mute/0, unmute/1, malloced/0]).

-on_load(load/0).

%% Bytes in use, by those who gave them out: the VM's allocators, malloc, and the operating system,
%% whose figure counts whole pages and holds the other two. And how many descriptors are open.
%% undefined where that is not known.
-type memory() :: #{
    erlang := non_neg_integer(),
    malloc := non_neg_integer() | undefined,
    process := non_neg_integer() | undefined,
    descriptors := non_neg_integer() | undefined
}.

load() ->
    erlang:load_nif(filename:rootname(tame_labs_native:path("tame_audit_process.so")), 0).

mute() -> erlang:nif_error(nif_not_loaded).
unmute(_Saved) -> erlang:nif_error(nif_not_loaded).
malloced() -> erlang:nif_error(nif_not_loaded).

%% Runs Fun while nothing that is printed gets out: by native code, or by Fun's process and those
%% that it starts. Standard output is the line to the auditing VM, which answers are not sent on
%% meanwhile, so native code that prints would be in between, or be held by a pipe that is full.
-spec quietly(fun(() -> Answer)) -> Answer.
quietly(Fun) ->
    Leader = group_leader(),
    true = group_leader(whereis_sink(), self()),
    Saved = mute(),
    try
        Fun()
    after
        _ = unmute(Saved),
        group_leader(Leader, self())
    end.

%% It stays, because it is the group leader of applications that are started.
whereis_sink() ->
    case whereis(tame_audit_sink) of
        undefined ->
            Sink = spawn(?MODULE, sink, []),
            true = register(tame_audit_sink, Sink),
            Sink;
        Sink ->
            Sink
    end.

%% An I/O server that takes everything and has nothing.
-spec sink() -> no_return().
sink() ->
    receive
        {io_request, From, As, Request} -> From ! {io_reply, As, taken(Request)};
        _ -> ok
    end,
    sink().

taken({put_chars, _, _}) -> ok;
taken({put_chars, _, _, _, _}) -> ok;
taken({requests, Requests}) -> taken(lists:last(Requests));
taken({setopts, _}) -> ok;
taken(_) -> {error, enotsup}.

-spec memory() -> memory().
memory() ->
    #{
        erlang => erlang:memory(total),
        malloc => malloced(),
        process => resident(),
        descriptors => descriptors()
    }.

%% What is no file's, which a library's pages are: its own, and what is shared.
resident() ->
    Options = [global, {capture, all_but_first, binary}],
    case file:read_file("/proc/self/status") of
        {ok, Text} ->
            case re:run(Text, "Rss(?:Anon|Shmem):\\s*(\\d+) kB", Options) of
                {match, Kbs} -> 1024 * lists:sum([binary_to_integer(Kb) || [Kb] <- Kbs]);
                nomatch -> undefined
            end;
        _ ->
            undefined
    end.

descriptors() ->
    case file:list_dir("/proc/self/fd") of
        {ok, Names} -> length(Names);
        _ -> undefined
    end.
