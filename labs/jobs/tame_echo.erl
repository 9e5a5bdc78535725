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

-nifs([
    echo_nif/1,
    echo_inline_nif/1,
    echo_dirty_nif/1,
    echo_yielding_dirty_nif/1,
    echo_thread_nif/1,
    echo_pool_nif/1
]).

-on_load(load/0).

load() ->
    erlang:load_nif(filename:rootname(tame_labs_native:path("tame_echo.so")), 0).

%% Where it fits: it is done in the first slice, so inline.
-spec echo(Term) -> Term.
echo(Term) ->
    tame:value(echo_nif(Term), fun echo_nif/1, {?MODULE, echo, [Term]}).

%% On the caller's scheduler.
-spec echo_inline(Term) -> Term.
echo_inline(Term) ->
    tame:value(echo_inline_nif(Term), fun echo_inline_nif/1, {?MODULE, echo_inline, [Term]}).

%% On a dirty CPU scheduler.
-spec echo_dirty(Term) -> Term.
echo_dirty(Term) ->
    tame:value(echo_dirty_nif(Term), fun echo_dirty_nif/1, {?MODULE, echo_dirty, [Term]}).

%% From the caller's scheduler by a hop to a dirty CPU scheduler.
-spec echo_yielding_dirty(Term) -> Term.
echo_yielding_dirty(Term) ->
    Call = {?MODULE, echo_yielding_dirty, [Term]},
    tame:value(echo_yielding_dirty_nif(Term), fun echo_yielding_dirty_nif/1, Call).

%% On a thread made for the call.
-spec echo_thread(Term) -> Term.
echo_thread(Term) ->
    tame:value(echo_thread_nif(Term), fun echo_thread_nif/1, {?MODULE, echo_thread, [Term]}).

%% In the library's own pool of threads.
-spec echo_pool(Term) -> Term.
echo_pool(Term) ->
    tame:value(echo_pool_nif(Term), fun echo_pool_nif/1, {?MODULE, echo_pool, [Term]}).

echo_nif(_Term) -> erlang:nif_error(nif_not_loaded).
echo_inline_nif(_Term) -> erlang:nif_error(nif_not_loaded).
echo_dirty_nif(_Term) -> erlang:nif_error(nif_not_loaded).
echo_yielding_dirty_nif(_Term) -> erlang:nif_error(nif_not_loaded).
echo_thread_nif(_Term) -> erlang:nif_error(nif_not_loaded).
echo_pool_nif(_Term) -> erlang:nif_error(nif_not_loaded).
