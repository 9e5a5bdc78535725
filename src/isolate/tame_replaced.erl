%% Isolated modules whose bound code is not the module's code any more: code:load_file/1, l/1 and a
%% release upgrade put its own code in its place, and after code:delete/1 the next call does. Its
%% library runs in the VM then. Nobody is asked before, so it is seen afterwards and said.
-module(tame_replaced).

-include("tame_registry.hrl").

-export([is_replaced/1]).
-export([say/1]).

-spec is_replaced(#entry{}) -> boolean().
is_replaced(#entry{phase = bound, coming = none} = Entry) -> not tame_versions:is_current(Entry);
is_replaced(#entry{}) -> false.

%% Logs each module that is among them now and was not before. Returns those that are.
-spec say([module()]) -> [module()].
say(Before) ->
    Now = [Module || #entry{module = Module} = Entry <- tame_registry:all(), is_replaced(Entry)],
    lists:foreach(fun say_one/1, Now -- Before),
    Now.

say_one(Module) ->
    logger:error(
        "~p is not isolated any more: other code of it was loaded, or its code was deleted, and "
        "calls of it run in the VM. tame:restore/1 and then tame:isolate/2 isolate it again; "
        "tame:load_binary/3 loads new code that stays isolated",
        [Module]
    ).
