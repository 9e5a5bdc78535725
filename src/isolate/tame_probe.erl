%% Describes NIF libraries without loading them into this VM: tame_host loads each in a process of
%% its own, which it throws away, and prints the library's ErlNifEntry. The library's constructors
%% may print there too: what comes is hostile, and each field is checked.
-module(tame_probe).

-export([files/1]).
-export([find/1]).
-export([read/2]).

-export_type([entry/0]).

-import(tame_text, [text/2]).

%% As tame_host --probe prints it (c_src/host/README.md): <<"file">>, and <<"module">>,
%% <<"functions">> and more, or <<"error">> with <<"reason">> and <<"text">>.
-type entry() :: #{binary() => tame_json:value()}.

%% How many files one tame_host is given: a command line has its bounds.
-define(FILES, 200).

%% One entry for each file, in that order.
-spec files([file:filename_all()]) -> {ok, [entry()]} | {error, string()}.
files([]) ->
    {ok, []};
files(Files) ->
    {Now, Later} = lists:split(min(?FILES, length(Files)), Files),
    case {run(Now), files(Later)} of
        {{ok, First}, {ok, Rest}} -> {ok, First ++ Rest};
        {{ok, _}, Error} -> Error;
        {Error, _} -> Error
    end.

run(Files) ->
    case tame_native:host_runs_on(os:type()) of
        ok -> start(Files);
        {error, {_, Sentence}} -> {error, Sentence}
    end.

start(Files) ->
    Program = tame_native:path("tame_host"),
    try
        tame_native:runnable(Program) andalso open_port({spawn_executable, Program}, [
            binary, exit_status, in, {args, ["--probe" | Files]}
        ])
    of
        Port -> collect(Port, length(Files), [], 0)
    catch
        error:enoent ->
            {error, text("there is no ~ts: ~ts", [Program, tame_native:how_to_build()])};
        error:Why ->
            {error, text("~ts does not start: ~p", [Program, Why])}
    end.

%% tame_host ends a library whose constructors do not return within 10 s; if it prints nothing for
%% longer, it is stuck.
-define(PROBE_MS, 30000).
%% It prints a line of some kilobytes for each library.
-define(PROBE_BYTES_MAX, 1 bsl 23).

collect(Port, _Count, _Parts, Bytes) when Bytes > ?PROBE_BYTES_MAX ->
    given_up(Port, "printed more than a description of the libraries");
collect(Port, Count, Parts, Bytes) ->
    receive
        {Port, {data, Part}} ->
            collect(Port, Count, [Part | Parts], Bytes + byte_size(Part));
        {Port, {exit_status, 0}} ->
            read(iolist_to_binary(lists:reverse(Parts)), Count);
        {Port, {exit_status, Status}} ->
            {error, ended(Status)}
    after ?PROBE_MS ->
        given_up(Port, text("said nothing for ~b ms", [?PROBE_MS]))
    end.

%% Of a program that the system refuses to run, the status is the number of the error.
-define(ENOEXEC, 8).

ended(?ENOEXEC) ->
    text("~ts does not run here: it was built for another processor, or is not whole: ~ts", [
        tame_native:path("tame_host"), tame_native:how_to_build()
    ]);
ended(Status) ->
    text("tame_host --probe ended with status ~b", [Status]).

given_up(Port, Why) ->
    true = exit(Port, kill),
    {error, "tame_host --probe " ++ Why ++ " and was given up"}.

%% What was printed for Count libraries.
-spec read(binary(), non_neg_integer()) -> {ok, [entry()]} | {error, string()}.
read(Text, _Count) when byte_size(Text) > ?PROBE_BYTES_MAX ->
    {error, "tame_host --probe printed more than a description of the libraries"};
read(Text, Count) ->
    case entries(binary:split(Text, <<"\n">>, [global, trim_all]), []) of
        {ok, Entries} when length(Entries) =/= Count ->
            {error,
                text("tame_host --probe printed ~b lines for ~b libraries: does one print?", [
                    length(Entries), Count
                ])};
        Read ->
            Read
    end.

entries([], Entries) ->
    {ok, lists:reverse(Entries)};
entries([Line | Lines], Entries) ->
    case tame_json:decode(Line) of
        {ok, #{} = Entry} ->
            case wrong_field(Entry) of
                none ->
                    entries(Lines, [Entry | Entries]);
                Field ->
                    {error,
                        text("tame_host --probe printed a wrong ~s: does the library print?", [
                            Field
                        ])}
            end;
        _ ->
            {error, "tame_host --probe printed a line that is no JSON: does the library print?"}
    end.

%% The first field that is not there, or not of its type; of those that are used.
wrong_field(#{<<"error">> := Error} = Entry) ->
    first_wrong([
        {file, is_binary(maps:get(<<"file">>, Entry, none))},
        {error, is_error(Error)}
    ]);
wrong_field(Entry) ->
    first_wrong([
        {file, is_binary(maps:get(<<"file">>, Entry, none))},
        {module, is_binary(maps:get(<<"module">>, Entry, none))},
        {missing, all_are(fun is_binary/1, maps:get(<<"missing">>, Entry, none))},
        {functions, all_are(fun is_function_row/1, maps:get(<<"functions">>, Entry, none))}
    ]).

first_wrong(Fields) ->
    case lists:keyfind(false, 2, Fields) of
        {Field, false} -> Field;
        false -> none
    end.

is_error(#{<<"reason">> := Reason, <<"text">> := Text}) ->
    is_binary(Reason) andalso is_binary(Text);
is_error(_) ->
    false.

%% Without a name is a row that ends a table which counts it, as OTP 27's crypto_callback.so has it.
is_function_row(#{<<"name">> := Name, <<"arity">> := Arity, <<"flags">> := Flags}) ->
    (is_binary(Name) orelse Name =:= null) andalso
        is_integer(Arity) andalso Arity >= 0 andalso Arity =< 255 andalso
        is_integer(Flags) andalso Flags >= 0;
is_function_row(_) ->
    false.

all_are(Is, Values) -> is_list(Values) andalso lists:all(Is, Values).

%% The libraries that bind a module, among the files below its application's priv/ and beside its
%% beam file; where there are none, the NIF libraries of which nobody can tell, because they do not
%% load.
-spec find(module()) -> {ok, [entry()]} | {broken, [entry(), ...]} | {error, string()}.
find(Module) ->
    case code:which(Module) of
        File when is_list(File), File =/= [] ->
            Ebin = filename:dirname(filename:absname(File)),
            Folders = [filename:join([Ebin, "..", "priv"]), Ebin],
            Files = [
                filename:join(Folder, Name)
             || Folder <- Folders, Name <- filelib:wildcard("**/*.so", Folder)
            ],
            case files(Files) of
                {ok, Entries} -> found(Module, Entries);
                Error -> Error
            end;
        _ ->
            {ok, []}
    end.

found(Module, Entries) ->
    Bound = [Entry || Entry <- Entries, binds(Entry, Module)],
    case [Entry || Bound =:= [], Entry <- Entries, is_broken(Entry)] of
        [] -> {ok, Bound};
        Broken -> {broken, Broken}
    end.

%% It asks the VM for something.
is_broken(#{<<"error">> := _, <<"imports">> := Imports}) when is_list(Imports) ->
    lists:any(fun(<<"enif_", _/binary>>) -> true; (_) -> false end, Imports);
is_broken(_Entry) ->
    false.

binds(#{<<"module">> := Name}, Module) -> Name =:= atom_to_binary(Module);
binds(_Entry, _Module) -> false.
