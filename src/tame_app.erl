%% The application tame: starts tame_sup, and isolates the modules that its configuration names:
%%
%%     {tame, [{isolate, [jiffy, {fast_yaml, #{hosts => 2, deadline_ms => 5000}}]}]}
%%
%% One that cannot be isolated stops the application's start, with a sentence: what was to be
%% isolated must not run inside the VM unnoticed. Under otherwise => in_vm it is logged instead, and
%% the module keeps running inside the VM.
-module(tame_app).
-behaviour(application).

-export([start/2]).
-export([prep_stop/1]).
-export([stop/1]).

-import(tame_text, [text/2]).

-spec start(application:start_type(), term()) -> {ok, pid()} | {error, term()}.
start(_Type, _Args) ->
    case tame_sup:start_link() of
        {ok, Sup} ->
            case isolate_all(application:get_env(tame, isolate, [])) of
                ok ->
                    {ok, Sup};
                {error, Sentence} ->
                    ok = tame_isolation_sup:stop_all(),
                    ok = tame_sup:stop(Sup),
                    logger:critical("tame does not start: ~ts", [Sentence]),
                    {error, {not_isolated, Sentence}}
            end;
        {error, Reason} ->
            {error, Reason}
    end.

isolate_all([]) ->
    ok;
isolate_all([Wanted | Rest]) ->
    case isolate(Wanted) of
        ok -> isolate_all(Rest);
        {error, Sentence} -> {error, Sentence}
    end;
isolate_all(Wanted) ->
    Format = "isolate: ~0tP: expected a list of modules, or of {Module, Options}",
    {error, text(Format, [Wanted, 20])}.

isolate({Module, Options}) ->
    case tame_isolation:isolate(Module, Options) of
        ok -> ok;
        {error, {_, Text}} -> otherwise(in_vm_wanted(Options), Module, Text)
    end;
isolate(Module) ->
    isolate({Module, #{}}).

otherwise(true, Module, Text) ->
    logger:error("tame: ~tp is not isolated, and runs inside the VM: ~ts", [Module, Text]);
otherwise(false, Module, Text) ->
    {error, text("~0tP is not isolated: ~ts", [Module, 20, Text])}.

in_vm_wanted(#{otherwise := in_vm}) -> true;
in_vm_wanted(Options) when is_list(Options) -> lists:member({otherwise, in_vm}, Options);
in_vm_wanted(_) -> false.

-spec prep_stop(State) -> State when State :: term().
prep_stop(State) ->
    ok = tame_isolation_sup:stop_all(),
    State.

%% Also where the supervisor ended by itself.
-spec stop(term()) -> ok.
stop(_State) ->
    tame_library:clear().
