%% The versions of an isolated module's bound code: each has a library of its own, as in the VM. Old
%% code goes on with the library that it has loaded, and that library is unloaded when the code has
%% been purged.
%%
%% A version is known by a key, which its functions give (tame_call). No two have the same, not even
%% when a module is restored and isolated again, or the application tame stops and starts: code that
%% was bound before asks for a library that is not known, and raises.
-module(tame_versions).

-include("tame_registry.hrl").

-export([new_key/0]).
-export([current/1]).
-export([is_current/1]).
-export([is_gone/2]).
-export([before/2]).

-export_type([version/0]).

-type version() :: #{
    key := tame_library:key(),
    %% of the bound code, as Module:module_info(md5) says it
    md5 := binary(),
    %% of the library's own table, in its order: the code was bound to them by number
    functions := [{atom(), arity()}],
    %% of one that is about to be loaded: what the module is restored to from then on
    own_code => {Beam :: binary(), file:filename()}
}.

-spec new_key() -> tame_library:key().
new_key() ->
    erlang:unique_integer([positive]).

%% Whether the module's code is its newest version.
-spec is_current(#entry{}) -> boolean().
is_current(#entry{versions = []}) ->
    true;
is_current(#entry{module = Module, versions = [#{md5 := Md5} | _]}) ->
    current(Module) =:= Md5.

%% Whether no process can run this version any more. Code that is about to be loaded may run its
%% -on_load already, and what a module is restored to says itself when it has taken over
%% (tame_restoring).
-spec is_gone(tame_library:key(), #entry{}) -> boolean().
is_gone(_Key, #entry{phase = Phase}) when Phase =/= bound ->
    false;
is_gone(Key, #entry{coming = #{key := Key}}) ->
    false;
is_gone(Key, #entry{module = Module, versions = [#{key := Key, md5 := Md5} | _]}) ->
    current(Module) =/= Md5 andalso not erlang:check_old_code(Module);
is_gone(Key, #entry{module = Module, versions = [#{md5 := Md5}, #{key := Key}]}) ->
    %% When the newest has been deleted, it is the old code.
    current(Module) =/= Md5 orelse not erlang:check_old_code(Module);
is_gone(_Key, #entry{}) ->
    true.

%% The MD5 of the module's code, which is not loaded for this.
-spec current(module()) -> binary() | none.
current(Module) ->
    case erlang:module_loaded(Module) of
        true ->
            try
                Module:module_info(md5)
            catch
                error:undef -> none
            end;
        false ->
            none
    end.

%% The key of the version that a version of this key has replaced, if its code is still there: the
%% library of that is upgraded.
-spec before(tame_library:key(), #entry{}) -> {ok, tame_library:key()} | none.
before(Key, #entry{versions = Versions} = Entry) ->
    case [Other || #{key := Other} <- Versions, Other =/= Key] of
        [Before | _] ->
            case is_gone(Before, Entry) of
                true -> none;
                false -> {ok, Before}
            end;
        [] ->
            none
    end.
