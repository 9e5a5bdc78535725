%% A job that returns its argument (c_src/natives/echo/echo_job_nif.c): what a call to it costs is
%% what its placement costs. Not in `yielding', where it ends in its first slice, as `echo/1' does.
%%
%%     1> tame_echo:echo_pool({any, "term"}).
%%     {any,"term"}
-module(tame_echo).

-export([echo/1]).
-export([echo_inline/1]).
-export([echo_dirty/1]).
-export([echo_yielding_dirty/1]).
-export([echo_thread/1]).
-export([echo_pool/1]).

-compile({parse_transform, tame_job}).

-tame([
    echo/1,
    echo_inline/1,
    echo_dirty/1,
    echo_yielding_dirty/1,
    echo_thread/1,
    echo_pool/1
]).

-on_load(load/0).

load() ->
    erlang:load_nif(filename:rootname(tame_labs_native:path("tame_echo.so")), 0).

%% Where it fits: it is done in the first slice, so inline.
-spec echo(Term) -> Term.

%% On the caller's scheduler.
-spec echo_inline(Term) -> Term.

%% On a dirty CPU scheduler.
-spec echo_dirty(Term) -> Term.

%% From the caller's scheduler by a hop to a dirty CPU scheduler.
-spec echo_yielding_dirty(Term) -> Term.

%% On a thread made for the call.
-spec echo_thread(Term) -> Term.

%% In the library's own pool of threads.
-spec echo_pool(Term) -> Term.
