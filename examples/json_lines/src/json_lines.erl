%% JSON lines, parsed a slice at a time: a term for each line, when it is asked for.
%%
%%     1> json_lines:fold(fun(Value, Sum) -> Sum + Value end, 0, [<<"1\n2">>, <<"3\n4\n">>]).
%%     28
%%
%% Objects are maps, strings and keys binaries, null is the atom, as jiffy:decode(Line, [return_maps])
%% has them. A string of more than 64 bytes without escapes is a part of the input and keeps it
%% alive; binary:copy/1 makes it a binary of its own.
-module(json_lines).

-export([parse/1]).
-export([fold/3]).
-export([to_list/1]).


-export_type([value/0]).

-compile({parse_transform, tame_job}).
-tame([{parse, 1, #{iodata => [1], stream => true}}]).
-on_load(load/0).

-type value() :: null | boolean() | number() | binary() | [value()] | #{binary() => value()}.

load() ->
    erlang:load_nif(filename:join(code:priv_dir(json_lines), "json_lines"), 0).

%% The lines' values as a lazy sequence: a fun that gives [Value | Next], where Next is such a fun,
%% or [] at the end. Lines that are blank are left out. Nothing is parsed before it is asked for.
%%
%%     1> [First | Next] = (json_lines:parse(<<"{\"a\":[1,2.5]}\n\n[]">>))().
%%     2> {First, Next()}.
%%     {#{<<"a">> => [1,2.5]},[[]|#Fun<tame.0.100462042>]}
%%
%% What is no JSON raises {json_lines, {Line, Column}, Sentence} when its line is asked for. Both are
%% counted from 1, columns in bytes.
-spec parse(iodata()) -> tame:stream().

%% Folds over the lines' values.
-spec fold(fun((value(), Acc) -> Acc), Acc, iodata()) -> Acc.
fold(Fun, Acc, Data) ->
    fold_on(Fun, Acc, parse(Data)).

fold_on(Fun, Acc, Next) ->
    case Next() of
        [Value | Rest] -> fold_on(Fun, Fun(Value, Acc), Rest);
        [] -> Acc
    end.

%% All values.
-spec to_list(iodata()) -> [value()].
to_list(Data) ->
    lists:reverse(fold(fun(Value, Values) -> [Value | Values] end, [], Data)).
