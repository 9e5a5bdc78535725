%% Where the built natives of the labs lie: libraries, drivers and programs. Built by
%% labs/c_src/Makefile, into one folder for each emulator version.
-module(tame_labs_native).

-export([dir/0]).
-export([path/1]).
-export([source_dir/0]).

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

%% The folder of the labs' sources. A build-time answer, from the path kept in the beam file.
-spec source_dir() -> file:filename().
source_dir() ->
    {source, Source} = lists:keyfind(source, 1, ?MODULE:module_info(compile)),
    filename:dirname(filename:dirname(Source)).
