%% Looks at NIF libraries without loading them into this VM: tame_host loads each in a process of its
%% own, which it throws away, and prints the library's ErlNifEntry.
-module(tame_probe).

-export([files/1]).
-export([find/1]).

-export_type([entry/0]).

%% As tame_host --probe prints it (c_src/host/README.md): <<"file">>, and <<"module">>, <<"functions">> and
%% more, or <<"error">> with <<"reason">> and <<"text">>.
-type entry() :: #{binary() => tame_json:value()}.

%% So many files are given to one tame_host: a command line has its bounds.
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
    Program = tame_native:path("tame_host"),
    try
        open_port({spawn_executable, Program}, [
            binary, exit_status, in, {args, ["--probe" | Files]}
        ])
    of
        Port -> collect(Port, [])
    catch
        error:Why ->
            {error, lists:flatten(io_lib:format("~ts does not start: ~p; it is built by make", [Program, Why]))}
    end.

collect(Port, Parts) ->
    receive
        {Port, {data, Part}} ->
            collect(Port, [Part | Parts]);
        {Port, {exit_status, 0}} ->
            Lines = binary:split(iolist_to_binary(lists:reverse(Parts)), <<"\n">>, [global, trim_all]),
            {ok, [entry(Line) || Line <- Lines]};
        {Port, {exit_status, Status}} ->
            {error, lists:flatten(io_lib:format("tame_host --probe ended with status ~b", [Status]))}
    end.

entry(Line) ->
    {ok, Entry} = tame_json:decode(Line),
    Entry.

%% The libraries that bind a module, of those that lie where its application keeps such: below priv/, or
%% beside the beam file.
-spec find(module()) -> {ok, [entry()]} | {error, string()}.
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
                {ok, Entries} -> {ok, [Entry || Entry <- Entries, binds(Entry, Module)]};
                Error -> Error
            end;
        _ ->
            {ok, []}
    end.

binds(#{<<"module">> := Name}, Module) -> Name =:= atom_to_binary(Module);
binds(_Entry, _Module) -> false.
