%% Turns a module whose functions are NIFs into one whose functions ask a host, without its source:
%% the module is compiled again from the debug_info in its beam file.
%%
%% Four things change. Each function that the NIF library names becomes a call of tame_call; its
%% body stays, under another name, and runs while no library is loaded. Each call of
%% erlang:load_nif/2 becomes one of tame_call:load_nif/3, and each of erlang:system_info(taints) one
%% of tame_call:system_info/1. The attribute -nifs goes, because nothing is bound in this VM any
%% more; where it leaves out a function of the library, load_nif comes to the VM's error.
-module(tame_recompile).

-export([bind/4]).
-export([forms/1]).

%% The module's beam, bound to a host. Functions are those of the library's own table, in its order.
%% A release may be without the compiler, which is OTP's application of that name.
-spec bind(module(), tame_library:key(), [{atom(), arity()}], binary()) ->
    {ok, binary()} | {error, no_debug_info | no_compiler | {compile, term()}}.
bind(Module, Key, Functions, Beam) ->
    changed(Beam, fun(Forms) -> transform(Module, Key, Functions, Forms) end).

changed(Beam, Change) ->
    case {code:ensure_loaded(compile), forms(Beam)} of
        {{error, _}, _} -> {error, no_compiler};
        {_, error} -> {error, no_debug_info};
        {_, {ok, Forms, Options}} -> compile(Change(Forms), Options)
    end.

%% A module's forms, as Erlang's abstract code also where it was written in another language, and
%% its compiler options, with the source that module_info(compile) names.
-spec forms(binary()) -> {ok, [erl_parse:abstract_form()], [term()]} | error.
forms(Beam) ->
    case beam_lib:chunks(Beam, [debug_info, compile_info]) of
        {ok, {Module, [{debug_info, {debug_info_v1, Backend, Data}}, {compile_info, Info}]}} ->
            %% Elixir's backend is in Elixir, which may not be on the code path.
            try Backend:debug_info(erlang_v1, Module, Data, []) of
                {ok, Forms} -> {ok, Forms, options(Info)};
                {error, _} -> error
            catch
                _:_ -> error
            end;
        _ ->
            error
    end.

%% A file that was compiled with the option `deterministic' has no source.
options(Info) ->
    [Source || {source, _} = Source <- Info] ++ proplists:get_value(options, Info, []).

%% Parse transforms have been applied to these forms already and must not run again. Warnings are
%% for the module's own author, who has seen them. What the compiler was given was not always
%% Erlang's forms: Elixir gives it Core Erlang.
compile(Forms, Options) ->
    Kept = [Option || Option <- Options, keep(Option)],
    case compile:forms(Forms, [binary, return_errors, nowarn, debug_info | Kept]) of
        {ok, _, Beam} -> {ok, Beam};
        {ok, _, Beam, _} -> {ok, Beam};
        {error, Errors, _} -> {error, {compile, Errors}}
    end.

keep({parse_transform, _}) -> false;
keep(Option) when Option =:= from_core; Option =:= from_asm; Option =:= from_abstr -> false;
keep(no_core_prepare) -> false;
keep(warnings_as_errors) -> false;
keep({outdir, _}) -> false;
keep({i, _}) -> false;
keep({d, _}) -> false;
keep({d, _, _}) -> false;
keep(Option) -> Option =/= deterministic andalso Option =/= report andalso Option =/= 'P'.

transform(Module, Key, Functions, Forms) ->
    Declared = [Nifs || {attribute, _, nifs, Nifs} <- Forms],
    case Declared =/= [] andalso Functions -- lists:append(Declared) of
        [{Name, Arity} | _] ->
            Text = tame_text:text("Function not declared as nif ~tp:~tp/~b", [Module, Name, Arity]),
            bound({refused, erl_parse:abstract({error, {bad_lib, Text}})}, [], Forms);
        _ ->
            bound(Key, Functions, Forms)
    end.

bound(Key, Functions, Forms) ->
    Rows = maps:from_list(lists:zip(Functions, lists:seq(0, length(Functions) - 1))),
    lists:flatmap(fun(Form) -> form(Key, Rows, Form) end, Forms).

form(_Key, _Rows, {attribute, _, nifs, _}) ->
    [];
form(Key, Rows, {function, Anno, Name, Arity, Clauses}) ->
    case Rows of
        #{{Name, Arity} := Index} ->
            Own = own_name(Name),
            [
                asking(Key, Anno, Name, Arity, Index),
                {function, Anno, Own, Arity, redirect(Key, Clauses)}
            ];
        #{} ->
            [{function, Anno, Name, Arity, redirect(Key, Clauses)}]
    end;
form(_Key, _Rows, Form) ->
    [Form].

%% Name(A1, ..., An) ->
%%     case tame_call:library(Key) of
%%         none -> the body as it was;
%%         Library -> hd(tame_call:call(Library, Index, Name, [A1, ..., An]))
%%     end.
asking(Key, Anno0, Name, Arity, Index) ->
    Anno = erl_anno:set_generated(true, Anno0),
    Args = [{var, Anno, list_to_atom("A" ++ integer_to_list(N))} || N <- lists:seq(1, Arity)],
    Library = {var, Anno, 'Library'},
    Find = remote(Anno, tame_call, library, [{integer, Anno, Key}]),
    Own = {call, Anno, {atom, Anno, own_name(Name)}, Args},
    List = lists:foldr(fun(Arg, Tail) -> {cons, Anno, Arg, Tail} end, {nil, Anno}, Args),
    Ask = remote(Anno, tame_call, call, [
        Library, {integer, Anno, Index}, {atom, Anno, Name}, List
    ]),
    Case =
        {'case', Anno, Find, [
            {clause, Anno, [{atom, Anno, none}], [], [Own]},
            {clause, Anno, [Library], [], [remote(Anno, erlang, hd, [Ask])]}
        ]},
    {function, Anno, Name, Arity, [{clause, Anno, Args, [], [Case]}]}.

remote(Anno, Module, Function, Args) ->
    {call, Anno, {remote, Anno, {atom, Anno, Module}, {atom, Anno, Function}}, Args}.

%% No function that somebody wrote has a space in its name.
own_name(Name) ->
    list_to_atom("own " ++ atom_to_list(Name)).

%% Every erlang:load_nif(Path, Info) in a tree of forms, and erlang:system_info(taints).
redirect(
    {refused, Error} = Refused,
    {call, Anno, {remote, _, {atom, _, erlang}, {atom, _, load_nif}}, [Path, Info]}
) ->
    {block, Anno, [redirect(Refused, Path), redirect(Refused, Info), Error]};
redirect(
    _Key, {call, Anno, {remote, _, {atom, _, erlang}, {atom, _, system_info}}, [{atom, _, taints}]}
) ->
    remote(Anno, tame_call, system_info, [{atom, Anno, taints}]);
redirect(
    Key, {call, Anno, {remote, _, {atom, _, erlang}, {atom, _, load_nif}}, [Path, Info]}
) ->
    remote(Anno, tame_call, load_nif, [
        {integer, Anno, Key}, redirect(Key, Path), redirect(Key, Info)
    ]);
redirect(Key, Tree) when is_tuple(Tree) ->
    list_to_tuple(redirect(Key, tuple_to_list(Tree)));
redirect(Key, [Head | Tail]) ->
    [redirect(Key, Head) | redirect(Key, Tail)];
redirect(_Key, Leaf) ->
    Leaf.
