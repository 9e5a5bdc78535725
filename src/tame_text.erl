%% Sentences for people, as strings.
-module(tame_text).

-export([text/2]).

-spec text(io:format(), [term()]) -> string().
text(Format, Args) ->
    lists:flatten(io_lib:format(Format, Args)).
