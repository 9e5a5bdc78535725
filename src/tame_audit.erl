%% What the audit runs in a VM of its own: it loads modules whose libraries nobody knows, and calls functions
%% that may hold a scheduler, hang or end the VM. lib/tame/audit/ judges what is seen here.
%%
%% It stands alone with the modules of src/ that it names.
-module(tame_audit).

-export([nifs/1]).

%% The NIFs that a module has, once loaded, and whether it asks for a library at all.
-spec nifs(module()) -> {ok, [{atom(), arity()}], boolean()} | missing | {error, string()}.
nifs(Module) ->
    case code:ensure_loaded(Module) of
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
