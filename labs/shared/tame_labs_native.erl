%% The natives of the labs, libraries, drivers and programs: builds them, and says where they lie.
%% labs/c_src/Makefile puts them into one folder for each emulator version. Mix builds them when it
%% compiles the labs, and each lab brings them up to date with their sources.
-module(tame_labs_native).

-export([build/0]).
-export([build/2]).
-export([dir/0]).
-export([path/1]).
-export([source_dir/0]).

%% Brings the natives up to date with their sources; quick when they are. The error is the
%% compiler's own last words. Without sources it is ok: what was built before is used as it is.
-spec build() -> ok | {error, Text :: unicode:unicode_binary()}.
build() ->
    case {source_dir(), tame_native:source_dir()} of
        {{ok, Sources}, {ok, Tame}} -> build(Sources, Tame);
        _ -> ok
    end.

%% The same, for who knows where the sources of the labs and tame's are.
-spec build(file:filename(), file:filename()) ->
    ok | {error, Text :: unicode:unicode_binary()}.
build(Sources, Tame) ->
    Folder = filename:join(Sources, "c_src"),
    case {filelib:is_regular(filename:join(Folder, "Makefile")), os:find_executable("make")} of
        {false, _} -> ok;
        {true, false} -> {error, <<"no make on PATH: install make and gcc">>};
        {true, Make} -> make(Make, Folder, Tame)
    end.

make(Make, Folder, Tame) ->
    Args = ["-s", "-C", Folder, "OUT=" ++ dir(), "TAME=" ++ Tame | otp()],
    Options = [exit_status, stderr_to_stdout, binary, {args, Args}],
    case output(open_port({spawn_executable, Make}, Options), <<>>) of
        {0, _} -> ok;
        {_, Output} ->
            {error, iolist_to_binary(["the natives do not build:\n" | last_lines(Output, 15)])}
    end.

%% What c_src/otp.mk would start an erl to ask for: that of the OTP that runs us. A start takes
%% longer than all the rest of a make that has nothing to do.
otp() ->
    Version = erlang:system_info(version),
    Jar = filename:join(lib_dir(jinterface), "priv/OtpErlang.jar"),
    [
        "ERTS_VERSION=" ++ Version,
        "ERTS_INCLUDE=" ++ filename:join([code:root_dir(), "erts-" ++ Version, "include"]),
        "EI_INCLUDE=" ++ filename:join(lib_dir(erl_interface), "include"),
        "EI_LIB=" ++ filename:join(lib_dir(erl_interface), "lib"),
        "JINTERFACE_JAR=" ++ lists:append([Jar || filelib:is_regular(Jar)])
    ].

lib_dir(App) ->
    case code:lib_dir(App) of
        {error, bad_name} -> "-";
        Dir -> Dir
    end.

output(Port, Seen) ->
    receive
        {Port, {data, Data}} -> output(Port, <<Seen/binary, Data/binary>>);
        {Port, {exit_status, Status}} -> {Status, Seen}
    end.

last_lines(Text, Count) ->
    Lines = binary:split(Text, <<"\n">>, [global, trim_all]),
    lists:join("\n", lists:nthtail(max(0, length(Lines) - Count), Lines)).

%% The folder for the running emulator. The environment variable TAME_LABS_NATIVE_DIR names another:
%% natives built with sanitizers, for the tests.
-spec dir() -> file:filename().
dir() ->
    Priv = code:priv_dir(tame_labs),
    os:getenv("TAME_LABS_NATIVE_DIR", filename:join(Priv, "erts-" ++ erlang:system_info(version))).

%% The path of one built file by its name, for example "tame_echo_nif.so". It need not exist.
-spec path(string()) -> file:filename().
path(Name) ->
    filename:join(dir(), Name).

%% The folder of the labs' sources, by the path in the beam file, which has none where it was
%% stripped, or compiled with `deterministic'.
-spec source_dir() -> {ok, file:filename()} | unknown.
source_dir() ->
    case [Source || {source, Source} <- ?MODULE:module_info(compile)] of
        [Source] -> {ok, filename:dirname(filename:dirname(Source))};
        [] -> unknown
    end.
