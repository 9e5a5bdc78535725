%% What tame:isolate/2 does with one module, step by step: finds its code and its library, binds the
%% code to hosts, starts the library's processes, and loads the bound code. A step that fails leaves
%% the module as it was.
-module(tame_binding).

-include("tame_registry.hrl").

-export([bind/3]).
-export([load_binary/3]).
-export([forget_coming/2]).

-import(tame_text, [text/2]).

-spec bind(module(), tame_group:group(), tame_isolate_options:options()) ->
    ok | tame_isolation:refusal().
bind(Module, Group, Options) ->
    Key = tame_versions:new_key(),
    steps([
        fun(_Known) -> own_code(Module) end,
        fun(Known) -> library(Module, Options, Known) end,
        fun(Known) -> loader(Module, Known) end,
        fun(Known) -> rebound(Module, Key, map_get(bind, Options), Known) end,
        fun(_Known) -> without_old_code(Module) end,
        fun(Known) -> started(Key, Module, Group, Options, Known) end,
        fun(Known) -> preloaded(Key, Module, Known) end,
        fun(Known) -> loaded(Module, Known) end
    ], #{}).

%% New code of an isolated module, which was compiled for the VM. The code before becomes old code,
%% and goes on with the library that it has; old code that is in the way is purged by
%% code:load_binary/3.
-spec load_binary(#entry{}, file:filename(), binary()) ->
    {module, module()} | tame_isolation:refusal().
load_binary(#entry{module = Module, group = Group, options = Options}, File, Beam) ->
    Key = tame_versions:new_key(),
    Loaded = steps([
        fun(_Known) -> {ok, #{own_beam => Beam, beam_file => File}} end,
        fun(Known) -> library(Module, Options, Known) end,
        fun(Known) -> rebound(Module, Key, map_get(bind, Options), Known) end,
        fun(Known) -> replaced(Key, Module, Group, Known) end
    ], #{}),
    case Loaded of
        ok -> {module, Module};
        Refused -> Refused
    end.

replaced(Key, Module, Group, Known) ->
    #{own_beam := Beam, beam_file := File, bound_beam := Bound} = Known,
    ok = tame_library:add(Key, Module, Group),
    Version = version(Key, Known),
    ok = tame_registry:set_coming(Module, Version#{own_code => {Beam, File}}),
    case code:load_binary(Module, File, Bound) of
        {module, Module} ->
            ok = tame_registry:arrived(Module),
            {ok, #{}};
        {error, Why} ->
            ok = forget_coming(Module, Key),
            refused(Why, "the new code of ~p does not load: ~0tP; the code before goes on", [
                Module, Why, 20
            ])
    end.

%% New code that was not loaded: the code before goes on.
-spec forget_coming(module(), tame_library:key()) -> ok.
forget_coming(Module, Key) ->
    ok = tame_registry:set_coming(Module, none),
    tame_library:withdraw(Key).

version(Key, #{bound_md5 := Md5, functions := Functions}) ->
    #{key => Key, md5 => Md5, functions => Functions}.

%% Each step adds to what is known, or says what is wrong.
steps([], _Known) ->
    ok;
steps([Step | Steps], Known) ->
    case Step(Known) of
        {ok, More} -> steps(Steps, maps:merge(Known, More));
        {error, _} = Error -> Error
    end.

refused(Reason, Format, Args) ->
    {error, {Reason, text(Format, Args)}}.

%% ---- what there is --------------------------------------------------------------------------

own_code(Module) ->
    case code:which(Module) of
        preloaded ->
            refused(preloaded, "~p is part of the emulator itself; it cannot be isolated", [
                Module
            ]);
        non_existing ->
            refused(unknown_module, "there is no module ~p on the code path", [Module]);
        cover_compiled ->
            refused(cover_compiled, "~p is cover compiled; isolate it before cover does that", [
                Module
            ]);
        _ ->
            case code:get_object_code(Module) of
                {Module, Beam, File} ->
                    {ok, #{own_beam => Beam, beam_file => File}};
                error ->
                    refused(no_object_code, "the beam file of ~p is not on the code path", [Module])
            end
    end.

library(Module, #{library := File}, Known) ->
    one_library(tame_probe:files([File]), Module, Known);
library(Module, _Options, Known) ->
    case tame_probe:find(Module) of
        {ok, []} ->
            refused(
                no_nifs,
                "no NIF library below the priv/ of ~p's application binds ~p; "
                "the option library names one that lies elsewhere",
                [Module, Module]
            );
        {broken, [#{<<"error">> := #{<<"text">> := Text}} | _]} ->
            refused(
                bad_library,
                "no NIF library below the priv/ of ~p's application says that it binds ~p, "
                "and one does not load: ~ts",
                [Module, Module, Text]
            );
        Found ->
            one_library(Found, Module, Known)
    end.

one_library({error, Text}, _Module, _Known) ->
    {error, {no_host, Text}};
one_library({ok, [#{<<"error">> := Error, <<"file">> := Path} | _]}, _Module, _Known) ->
    #{<<"reason">> := Reason, <<"text">> := Text} = Error,
    refused(reason(Reason), "~ts: ~ts", [Path, Text]);
one_library({ok, [#{<<"missing">> := [_ | _] = Missing, <<"file">> := Path} | _]}, _, _) ->
    refused(missing_functions, "~ts needs what tame_host does not provide: ~ts", [
        Path, lists:join(", ", Missing)
    ]);
one_library({ok, [#{<<"functions">> := Rows, <<"file">> := Path} | _]}, Module, Known) ->
    case beam_lib:chunks(map_get(own_beam, Known), [atoms]) of
        {ok, {_, [{atoms, Atoms}]}} ->
            ByName = maps:from_list([{atom_to_binary(Atom), Atom} || {_, Atom} <- Atoms]),
            functions(Path, Rows, Module, ByName);
        {error, beam_lib, Why} ->
            unreadable(Module, Why)
    end.

%% A name of the library's becomes an atom only where the module has it: the VM binds no other, and
%% atoms that a library made up would stay for ever.
functions(Path, Rows, Module, Atoms) ->
    Names = [{Name, Arity} || #{<<"name">> := Name, <<"arity">> := Arity} <- Rows],
    Flags = [Flags || #{<<"flags">> := Flags} <- Rows],
    case wrong_function(lists:zip(Names, Flags), #{}, Atoms, Module) of
        none ->
            Functions = [{map_get(Name, Atoms), Arity} || {Name, Arity} <- Names],
            {ok, #{so => Path, functions => Functions}};
        Wrong ->
            refused(bad_library, "~ts has ~ts", [Path, Wrong])
    end.

%% The first of a table that the VM would not load.
wrong_function([], _Before, _Atoms, _Module) ->
    none;
wrong_function([{{Name, _} = Function, _} | _], _Before, Atoms, Module) when
    not is_map_key(Name, Atoms)
->
    text("a function ~ts, and ~p has none of that name", [function_text(Function), Module]);
wrong_function([{Function, _} | _], Before, _Atoms, _Module) when is_map_key(Function, Before) ->
    text("the function ~ts twice, which the VM refuses as well", [function_text(Function)]);
wrong_function([{Function, Flags} | _], _Before, _Atoms, _Module) when Flags > 2 ->
    text("flags ~b for ~ts, and a NIF has 0, 1 (dirty CPU) or 2 (dirty I/O)", [
        Flags, function_text(Function)
    ]);
wrong_function([{Function, _} | Functions], Before, Atoms, Module) ->
    wrong_function(Functions, Before#{Function => true}, Atoms, Module).

function_text({null, Arity}) -> text("without a name/~b", [Arity]);
function_text({Name, Arity}) -> text("~ts/~b", [tame_control:printable(Name, 510), Arity]).

unreadable(Module, Why) ->
    refused(cannot_bind, "the beam file of ~p cannot be read: ~0tP", [Module, Why, 20]).

%% As the host's own words (tame_control:words/0).
reason(Reason) ->
    case [Word || Word <- tame_control:words(), atom_to_binary(Word) =:= Reason] of
        [Word] -> Word;
        [] -> bad_library
    end.

%% A library that is loaded in this VM must be loaded in the host as well. Where no -on_load does
%% that, tame does.
loader(Module, #{own_beam := Beam, so := So, functions := Functions}) ->
    IsLoaded = tame_loader:is_loaded(Module, Functions, So),
    case IsLoaded andalso not tame_loader:has_on_load(Beam) of
        false ->
            {ok, #{preload => none}};
        true ->
            case tame_loader:load_info(Module, Beam) of
                {ok, LoadInfo} ->
                    {ok, #{preload => {So, LoadInfo}}};
                unknown ->
                    refused(
                        loaded_elsewhere,
                        "the NIF library of ~p is loaded, by its application and not by -on_load, "
                        "and with what cannot be told: isolate ~p before its application starts",
                        [Module, Module]
                    )
            end
    end.

rebound(Module, Key, How, #{functions := Functions, own_beam := Beam}) ->
    case tame_bind:bind(How, Module, Key, Functions, Beam) of
        {ok, Bound} ->
            {ok, {Module, Md5}} = beam_lib:md5(Bound),
            {ok, #{bound_beam => Bound, bound_md5 => Md5}};
        {error, no_debug_info} ->
            refused(
                no_debug_info,
                "~p has no debug_info that can be read here, which bind => recompile needs; "
                "overlay does not",
                [Module]
            );
        {error, no_compiler} ->
            refused(
                no_compiler,
                "the application compiler is not on the code path, which bind => recompile needs; "
                "overlay does not",
                []
            );
        {error, {compile, Why}} ->
            refused(cannot_bind, "~p cannot be compiled again: ~0tP", [Module, Why, 20]);
        {error, {instruction, Op}} ->
            refused(
                cannot_bind,
                "~p has instruction number ~b, which bind => overlay does not know",
                [Module, Op]
            );
        {error, {not_a_beam, Why}} ->
            unreadable(Module, Why)
    end.

without_old_code(Module) ->
    case code:soft_purge(Module) of
        true -> {ok, #{}};
        false -> tame_old_code:in_use(Module)
    end.

%% ---- what is made ---------------------------------------------------------------------------

%% The library's processes, and the entry that the bound code looks for.
started(Key, Module, Group, Options, Known) ->
    #{own_beam := Beam, beam_file := File} = Known,
    ok = tame_registry:put(#entry{
        module = Module,
        group = Group,
        joined = erlang:unique_integer([monotonic]),
        options = Options,
        beam_file = File,
        own_beam = Beam,
        coming = version(Key, Known)
    }),
    ok = tame_library:add(Key, Module, Group),
    case tame_isolation_sup:start_library(Group) of
        ok ->
            {ok, #{}};
        {error, Why} ->
            ok = tame_restoring:forget(Module),
            refused(no_processes, "the processes for ~p do not start: ~0tP", [Module, Why, 20])
    end.

%% Before the code is replaced, because there would be no way back.
preloaded(_Key, _Module, #{preload := none}) ->
    {ok, #{}};
preloaded(Key, Module, #{preload := {So, LoadInfo}}) ->
    case tame_call:load_nif(Key, filename:rootname(So, ".so"), LoadInfo) of
        ok ->
            {ok, #{}};
        {error, {Why, Text}} ->
            ok = tame_restoring:forget(Module),
            not_loaded(Module, Why, ": " ++ Text)
    end.

loaded(Module, #{beam_file := File, bound_beam := BoundBeam}) ->
    case code:load_binary(Module, File, BoundBeam) of
        {module, Module} ->
            ok = tame_registry:arrived(Module),
            _ = code:soft_purge(Module),
            {ok, #{}};
        {error, Why} ->
            %% What was loaded before, if anything, still is.
            Text = load_text(Module, Why),
            ok = tame_restoring:forget(Module),
            not_loaded(Module, Why, Text)
    end.

not_loaded(Module, Why, Text) ->
    Format = "~p, bound to a host, does not load~ts; it is not isolated: its calls run in the VM",
    refused(Why, Format, [Module, Text]).

load_text(Module, Why) ->
    {ok, #entry{group = Group}} = tame_registry:find(Module),
    try tame_hosts:info(Group, Module) of
        {#{load := {error, {_, Text}}}, _} -> ": " ++ Text;
        _ -> text(": ~p", [Why])
    catch
        exit:_ -> text(": ~p", [Why])
    end.
