%% What tame:restore/1 does with one module: loads its own code again, and takes it out of its group
%% when no process runs the bound code any more.
-module(tame_restoring).

-include("tame_registry.hrl").

-export([restore/1]).
-export([has_left/1]).
-export([forget/1]).

-import(tame_text, [text/2]).

%% How long restore waits for processes that run the bound code, and how often it looks.
-define(LEAVE_MS, 5000).
-define(LOOK_MS, 20).

%% New callers get the original module, with its library in the VM. Hosts serve the processes that
%% still run the bound code until these have left; then the hosts end.
-spec restore(#entry{}) -> ok | tame_isolation:refusal().
restore(#entry{module = Module, phase = leaving}) ->
    left_in_time(Module);
restore(#entry{module = Module} = Entry) ->
    case {code:soft_purge(Module), tame_replaced:is_replaced(Entry)} of
        {true, true} ->
            %% Its own code is there already, or is to be loaded by the next call.
            ok = tame_registry:set_phase(Module, leaving),
            left_in_time(Module);
        {true, false} ->
            case own_code(Entry) of
                {ok, Beam} -> loaded(Entry, Beam);
                {error, _} = Error -> Error
            end;
        {false, _} ->
            tame_old_code:in_use(Module)
    end.

%% The phase says so before: who takes the place of this process finds that it was begun.
loaded(#entry{module = Module, beam_file = File}, Beam) ->
    ok = tame_registry:set_phase(Module, leaving),
    case code:load_binary(Module, File, Beam) of
        {module, Module} ->
            left_in_time(Module);
        {error, Why} ->
            ok = tame_registry:set_phase(Module, bound),
            {error, {Why, text("~p does not load any more: ~p; it stays isolated", [Module, Why])}}
    end.

%% The module's own code, which loads its library if that was loaded in a host.
own_code(#entry{own_beam = Beam, load_args = none}) ->
    {ok, Beam};
own_code(#entry{module = Module, own_beam = Beam, load_args = {_Path, LoadInfo}}) ->
    case tame_loader:has_on_load(Beam) of
        true ->
            {ok, Beam};
        false ->
            case tame_loader:with_on_load(Module, Beam, LoadInfo) of
                {ok, Loading} ->
                    {ok, Loading};
                {error, Why} ->
                    Text = text(
                        "the NIF library of ~p is loaded by its application and not by -on_load, "
                        "which cannot be made up for (~0tP): ~p stays isolated",
                        [Module, Why, 20, Module]
                    ),
                    {error, {loaded_elsewhere, Text}}
            end
    end.

left_in_time(Module) ->
    left_in_time(Module, erlang:monotonic_time(millisecond) + ?LEAVE_MS).

left_in_time(Module, Until) ->
    case {has_left(Module), erlang:monotonic_time(millisecond) < Until} of
        {true, _} ->
            ok;
        {false, true} ->
            timer:sleep(?LOOK_MS),
            left_in_time(Module, Until);
        {false, false} ->
            {error, {_, Text}} = tame_old_code:in_use(Module),
            named_or_left(Module, Text)
    end.

%% While they were asked for their names the last of them may have ended.
named_or_left(Module, Text) ->
    case has_left(Module) of
        true ->
            ok;
        false ->
            Format = "~p is restored for new calls; its hosts go on until these end: ~ts",
            {error, {in_use, text(Format, [Module, Text])}}
    end.

%% Whether no process runs old code of a module any more. If the module was restored, its hosts and
%% what is known of it go then.
-spec has_left(module()) -> boolean().
has_left(Module) ->
    case code:soft_purge(Module) of
        true ->
            case tame_registry:find(Module) of
                {ok, #entry{phase = leaving}} -> forget(Module);
                _ -> ok
            end,
            true;
        false ->
            false
    end.

%% Deletes all that is known of a module. The hosts of its group end with the last of it; for others
%% they go on, and unload its library.
-spec forget(module()) -> ok.
forget(Module) ->
    {ok, #entry{group = Group}} = tame_registry:find(Module),
    case tame_group:members(Group) of
        [#entry{module = Module}] ->
            ok = tame_isolation_sup:stop_library(Group),
            ok = tame_library:remove(Module),
            ok = tame_given:forget(Group),
            tame_registry:delete(Module);
        _ ->
            ok = tame_library:remove(Module),
            ok = tame_registry:delete(Module),
            tame_hosts:changed(Group)
    end.
