%% Turns a module whose functions are NIFs into one whose functions ask a host, without its source.
%% There are two ways with the same result: a function that the NIF library names asks its host
%% while the library is loaded there, and runs its own body while it is not; each call of
%% erlang:load_nif/2 becomes one of tame_call:load_nif/3. Which functions are NIFs is read from the
%% library's own table, because the module may have a real body for a NIF.
%%
%% recompile  compiles the module again from the debug_info in its beam. Its formats are documented.
%% overlay    lays the new instructions over those in the beam: for modules without debug_info, as
%%            in a stripped release. Needs no compiler.
-module(tame_bind).

-export([bind/5]).

-export_type([how/0]).
-export_type([reason/0]).

-type how() :: auto | recompile | overlay.
-type reason() :: no_debug_info | no_compiler | {compile, term()} | tame_beam:reason().

%% Key: by which the code asks for its library. Functions are those of the library's table, in its
%% order. auto: recompile where that can be done.
-spec bind(how(), module(), tame_library:key(), [{atom(), arity()}], binary()) ->
    {ok, binary()} | {error, reason()}.
bind(recompile, Module, Key, Functions, Beam) ->
    tame_recompile:bind(Module, Key, Functions, Beam);
bind(overlay, Module, Key, Functions, Beam) ->
    tame_overlay:bind(Module, Key, Functions, Beam);
bind(auto, Module, Key, Functions, Beam) ->
    case tame_recompile:bind(Module, Key, Functions, Beam) of
        {error, _} -> tame_overlay:bind(Module, Key, Functions, Beam);
        Bound -> Bound
    end.
