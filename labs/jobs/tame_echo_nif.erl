%% Binds the latency lab's NIFs (c_src/natives/echo/echo_nif.c); nothing else.
%%
%% Each takes a term to native code and back and differs only in where the native code runs.
-module(tame_echo_nif).

-export([echo/1]).
-export([echo_yielding/1]).
-export([echo_dirty_cpu/1]).
-export([echo_dirty_io/1]).
-export([echo_yielding_dirty/1]).

-nifs([
    echo/1,
    echo_yielding/1,
    echo_dirty_cpu/1,
    echo_dirty_io/1,
    echo_yielding_dirty/1
]).

-on_load(load/0).

load() ->
    erlang:load_nif(filename:rootname(tame_labs_native:path("tame_echo_nif.so")), 0).

%% On the caller's scheduler, in one go.
-spec echo(Term) -> Term.
echo(_Term) ->
    erlang:nif_error(nif_not_loaded).

%% On the caller's scheduler, after one hop (enif_schedule_nif).
-spec echo_yielding(Term) -> Term.
echo_yielding(_Term) ->
    erlang:nif_error(nif_not_loaded).

%% Declared dirty CPU in the function table.
-spec echo_dirty_cpu(Term) -> Term.
echo_dirty_cpu(_Term) ->
    erlang:nif_error(nif_not_loaded).

%% Declared dirty I/O in the function table.
-spec echo_dirty_io(Term) -> Term.
echo_dirty_io(_Term) ->
    erlang:nif_error(nif_not_loaded).

%% Declared normal; hops to a dirty CPU scheduler by enif_schedule_nif.
-spec echo_yielding_dirty(Term) -> Term.
echo_yielding_dirty(_Term) ->
    erlang:nif_error(nif_not_loaded).
