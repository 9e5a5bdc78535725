defmodule Tame.IsolatedTablesTest do
  # What the VM makes of a library's table and of load_nif/2, and what isolation makes of the same library: each in
  # a VM of its own.
  use ExUnit.Case, async: true

  alias Tame.Test.CLibrary

  @code """
  #include <erl_nif.h>
  #include <stddef.h>

  static ERL_NIF_TERM later(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
  {
      (void)argv;
      return enif_make_int(env, 40 + argc);
  }

  static ERL_NIF_TERM named(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
  {
      return enif_schedule_nif(env, "\\xe5_later", 0, later, argc, argv);
  }
  """

  # {in the VM, isolated}: what an expression prints in a module of stubs that is on the code path, unless its on_load
  # fails or isolate/1 refuses it.
  defp both(module, table, expression, erlang \\ "") do
    folder = CLibrary.tmp_dir!()
    init = "static ErlNifFunc functions[] = {#{table}};\n"
    nif_init = "ERL_NIF_INIT(#{module}, functions, NULL, NULL, NULL, NULL)\n"
    CLibrary.nif!(folder, "#{module}", @code <> init <> nif_init)

    File.write!(Path.join(folder, "#{module}.erl"), """
    %% -*- coding: utf-8 -*-
    -module(#{module}).
    -compile([export_all, nowarn_export_all]).
    -on_load(load/0).
    load() -> said(erlang:load_nif("./#{module}", 0)).
    said(Error) when Error =/= ok -> io:format("~0tp ", [Error]), Error;
    said(ok) -> ok.
    f() -> erlang:nif_error(not_loaded).
    'å_latin'() -> erlang:nif_error(not_loaded).
    #{erlang}
    """)

    {"", 0} = CLibrary.erlc(folder, "#{module}.erl")
    {in_vm, _} = CLibrary.erl(folder, says(expression))

    isolate =
      "{ok, _} = application:ensure_all_started(tame), " <>
        says("case tame:isolate(#{module}) of ok -> #{expression}; Refused -> Refused end")

    {isolated, 0} = CLibrary.erl(folder, isolate)
    {in_vm, isolated}
  end

  defp says(expression), do: "io:format(\"~tp\", [#{expression}])"

  test "names of functions are Latin-1, those that are scheduled too" do
    assert both(:latin_names, ~S({"\xe5_latin", 0, named, 0}), ~S|latin_names:'\xe5_latin'()|) ==
             {"40", "40"}
  end

  test "flags that mean nothing are refused" do
    {in_vm, isolated} = both(:odd_flags, ~S|{"f", 0, named, 3}|, "odd_flags:f()")
    assert in_vm =~ "Illegal flags field value 3 for NIF odd_flags:f/0"
    assert isolated =~ ~r|{error,{bad_library,".*/odd_flags.so has flags 3 for f/0, and .*"}}|
  end

  test "a function that is there twice is refused, one of two arities is not" do
    {in_vm, isolated} = both(:twice, ~S|{"f", 0, named, 0}, {"f", 0, later, 0}|, "twice:f()")

    assert in_vm =~ "Duplicate NIF entry for twice:f/0"
    assert isolated =~ ~r|{error,{bad_library,".*/twice.so has the function f/0 twice.*"}}|

    table = ~S|{"f", 0, named, 1}, {"f", 1, later, 2}|
    twos = both(:two_arities, table, "{two_arities:f(), two_arities:f(a)}", "f(_) -> 0.")
    assert twos == {"{40,41}", "{40,41}"}
  end

  test "load_nif/2 of a library that is loaded says so, whatever path that names none" do
    erlang = """
    again() -> [class(Path) || Path <- ["", <<>>, "./again", <<>>, '', [0], 7, [$a, b]]].
    class(Path) -> try element(1, element(2, erlang:load_nif(Path, 0))) catch _:Why -> Why end.
    """

    both = both(:again, ~S|{"f", 0, named, 0}|, "again:again()", erlang)
    all = "[reload,reload,reload,reload,badarg,badarg,badarg,badarg]"
    assert both == {all, all}
  end
end
