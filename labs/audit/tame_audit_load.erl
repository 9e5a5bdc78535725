%% Loads modules whose libraries nobody knows, in a VM of its own: loading one may end it.
-module(tame_audit_load).

-export([nifs/1]).
-export([built_in/1]).
-export([prepare/1]).

%% The NIFs that a module has, once loaded, and whether it asks for a library at all.
-spec nifs(module()) -> {ok, [{atom(), arity()}], boolean()} | missing | {error, string()}.
nifs(Module) ->
    case tame_audit_process:quietly(fun() -> code:ensure_loaded(Module) end) of
        {module, Module} -> {ok, Module:module_info(nifs), asks(code:which(Module))};
        {error, nofile} -> missing;
        {error, Why} -> {error, lists:flatten(io_lib:format("it does not load: ~tp", [Why]))}
    end.

asks(File) when is_list(File), File =/= [] ->
    case beam_lib:chunks(File, [imports]) of
        {ok, {_, [{imports, Imports}]}} -> lists:member({erlang, load_nif, 2}, Imports);
        _ -> false
    end;
asks(_Preloaded) ->
    false.

%% The NIFs of a module whose library is part of the emulator, with their flags.
-spec built_in(module()) -> [{atom(), arity(), non_neg_integer()}].
built_in(Module) ->
    case tame_builtin:table(Module) of
        undefined -> [];
        Table -> Table
    end.

%% Whether the function is there. The module's application is started where the module asks for a
%% library and has none yet: some load it when they start. {idle, Application} is not started.
-spec prepare(mfa()) ->
    {ok, none | {idle | started, atom()} | {not_started, atom(), binary()}}
    | {error, no_module | no_function | {load, string()}}.
prepare(Target) ->
    tame_audit_process:quietly(fun() -> prepared(Target) end).

prepared({Module, Function, Arity}) ->
    case code:ensure_loaded(Module) of
        {module, Module} ->
            case erlang:function_exported(Module, Function, Arity) of
                true -> {ok, application(Module, code:which(Module))};
                false -> {error, no_function}
            end;
        {error, nofile} ->
            {error, no_module};
        {error, Why} ->
            {error, {load, lists:flatten(io_lib:format("~tp", [Why]))}}
    end.

application(Module, File) ->
    Bound = Module:module_info(nifs) =/= [],
    case is_list(File) andalso application_of(File) of
        {ok, Name} when not Bound ->
            case asks(File) of
                true -> start(Name);
                false -> {idle, Name}
            end;
        {ok, Name} ->
            {idle, Name};
        _ ->
            none
    end.

%% By the .app file beside the module; kernel and stdlib run anyhow.
application_of(File) ->
    case filelib:wildcard(filename:join(filename:dirname(File), "*.app")) of
        [App] ->
            Name = list_to_atom(filename:basename(App, ".app")),
            Running = [Running || {Running, _, _} <- application:which_applications()],
            case lists:member(Name, Running) of
                true -> none;
                false -> {ok, Name}
            end;
        _ ->
            none
    end.

start(Name) ->
    case application:ensure_all_started(Name) of
        {ok, _} -> {started, Name};
        {error, Why} -> {not_started, Name, tame_audit_caller:words(Why)}
    end.
