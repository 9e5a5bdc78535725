%% Where tame's built natives lie: tame_host, the ring's NIF, tame_permits and tame_iovec.
%%
%% They are built by c_src/Makefile into one folder per emulator version, because a
%% library built with a newer OTP does not load in an older one.
-module(tame_native).

-include_lib("kernel/include/file.hrl").

-export([dir/0]).
-export([path/1]).
-export([source_dir/0]).
-export([how_to_build/0]).
-export([runnable/1]).
-export([host_runs_on/1]).

%% The folder that c_src/Makefile fills for the running emulator. The environment variable
%% TAME_NATIVE_DIR names another: natives built with sanitizers, for the tests.
-spec dir() -> file:filename().
dir() ->
    Default = filename:join(priv_dir(), "erts-" ++ erlang:system_info(version)),
    os:getenv("TAME_NATIVE_DIR", Default).

%% The path of one built file by its name, for example "tame_ring_nif.so". It need not exist.
-spec path(string()) -> file:filename().
path(Name) ->
    filename:join(dir(), Name).

%% The folder in which tame's sources lie: by the source path in the beam file, because neither
%% rebar3 nor Mix links c_src/ or c_include/ into _build; or above the beam file, which has no such
%% path where it was stripped, or compiled with `deterministic'. A release has no sources.
-spec source_dir() -> {ok, file:filename()} | unknown.
source_dir() ->
    Kept = [Source || {source, Source} <- ?MODULE:module_info(compile)],
    Folders = [filename:dirname(filename:dirname(File)) || File <- Kept ++ beam()],
    case [Folder || Folder <- Folders, has_header(Folder)] of
        [Folder | _] -> {ok, Folder};
        [] -> unknown
    end.

has_header(Folder) ->
    filelib:is_regular(filename:join([Folder, "c_include", "tame.h"])).

%% The path of this module's beam file, if it has one.
beam() ->
    case code:which(?MODULE) of
        [_ | _] = File -> [File];
        _ -> []
    end.

%% What to do where a built file is missing, for error messages.
-spec how_to_build() -> string().
how_to_build() ->
    case lists:all(fun(File) -> filelib:is_dir(filename:dirname(File)) end, beam()) of
        true -> how_to_build(source_dir());
        %% The code path goes into an archive.
        false ->
            "isolation needs files of its own, which an escript does not have: make a release"
    end.

how_to_build(Sources) ->
    Commands = "`mix deps.compile tame` or `rebar3 compile`",
    case Sources of
        {ok, Folder} ->
            Script = filename:join([Folder, "c_src", "build.sh"]),
            "build it with " ++ Commands ++ " in your project, or with `sh " ++ Script ++ "`";
        unknown ->
            Commands ++ " builds it, with the Erlang/OTP that runs here, before the release is made"
    end.

%% Whether a file can be run as a program; raises enoent or eacces, as open_port/2 does. To be asked
%% before that: a call of open_port/2 that raises loses a file descriptor of the VM (seen on OTP
%% 25).
-spec runnable(file:filename_all()) -> true.
runnable(File) ->
    case file:read_file_info(File, [raw]) of
        {ok, #file_info{type = regular, mode = Mode}} when Mode band 8#111 =/= 0 -> true;
        {ok, _} -> error(eacces);
        %% Below a file that is no folder: an escript.
        {error, enotdir} -> error(enoent);
        {error, Reason} -> error(Reason)
    end.

%% Whether tame_host runs on a system, as os:type/0 names it. Elsewhere it is built and refuses
%% (c_src/os).
-spec host_runs_on({atom(), atom()}) -> ok | {error, {unsupported_system, string()}}.
host_runs_on({unix, linux}) ->
    ok;
host_runs_on({_, Name}) ->
    Sentence = tame_text:text("isolation runs on Linux only, and this is ~ts", [Name]),
    {error, {unsupported_system, Sentence}}.

%% code:priv_dir/1 knows the application by the folder's name; in a checkout that is not
%% called "tame" we ask for the folder beside our own ebin.
priv_dir() ->
    case code:priv_dir(tame) of
        {error, bad_name} ->
            Ebin = filename:dirname(code:which(?MODULE)),
            filename:join(filename:dirname(Ebin), "priv");
        Dir ->
            Dir
    end.
