%% The public door of the runtime: what it is, and where its parts are.
-module(tame).

-export([version/0]).
-export([source_dir/0]).

%% The version of tame, as written in src/tame.app.src.
%%
%%     1> tame:version().
%%     "0.1.0"
-spec version() -> string().
version() ->
    _ = application:load(tame),
    {ok, Version} = application:get_key(tame, vsn),
    Version.

%% The folder in which tame's sources lie. A build-time answer, found through the
%% source path kept in the beam file, because neither rebar3 nor Mix links c_src/
%% or c_include/ into _build. It says nothing inside a release.
-spec source_dir() -> file:filename().
source_dir() ->
    {source, Source} = lists:keyfind(source, 1, ?MODULE:module_info(compile)),
    filename:dirname(filename:dirname(Source)).
