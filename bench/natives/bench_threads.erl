%% Binds the hand-written twins of the placements thread and pool (bench_threads_nif.c); nothing
%% else.
-module(bench_threads).

-export([in_new_thread/2]).
-export([in_queue/2]).

-nifs([in_new_thread/2, in_queue/2]).

-on_load(load/0).

load() ->
    erlang:load_nif(filename:join(filename:dirname(code:which(?MODULE)), ?MODULE_STRING), 0).

%% Starts a thread that sends {Ref, Term} to the caller. Raises system_limit when the system
%% gives no thread, enomem when it gives no memory.
-spec in_new_thread(reference(), term()) -> ok.
in_new_thread(_Ref, _Term) ->
    erlang:nif_error(nif_not_loaded).

%% Queues the term for the library's own pool of threads, one of which sends {Ref, Term} to the
%% caller. Raises enomem when the system gives no memory.
-spec in_queue(reference(), term()) -> ok.
in_queue(_Ref, _Term) ->
    erlang:nif_error(nif_not_loaded).
