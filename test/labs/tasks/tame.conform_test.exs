defmodule Mix.Tasks.Tame.ConformTest do
  # A library that does the same, another thing, something by chance, and crashes. Not async: the code path is set, and
  # standard error is captured.
  use ExUnit.Case
  import Tame.Test.{Refused, Schema}

  alias Mix.Tasks.Tame.Conform
  alias Tame.Test.{CLibrary, MixTask}

  @erlang """
  -module(conform_nif).
  -on_load(load/0).
  -export([same/1, same_twice/1, program/1, clock/0, coin/0, crash/1, new/0, count/1, pure/1, halt/0]).
  load() -> erlang:load_nif(filename:rootname(code:which(?MODULE)), 0).
  same(_) -> erlang:nif_error(not_loaded).
  same_twice(A) -> {same(A), same(A)}.
  program(_) -> erlang:nif_error(not_loaded).
  clock() -> erlang:nif_error(not_loaded).
  coin() -> erlang:nif_error(not_loaded).
  crash(_) -> erlang:nif_error(not_loaded).
  new() -> erlang:nif_error(not_loaded).
  count(_) -> erlang:nif_error(not_loaded).
  pure(A) -> A.
  halt() -> same(1), erlang:halt(9).
  """

  setup_all do
    folder = Path.join(System.tmp_dir!(), "tame_conform_test_#{System.pid()}")
    File.mkdir_p!(folder)
    File.cp!("support/natives/conform_nif.c", Path.join(folder, "conform_nif.c"))
    File.write!(Path.join(folder, "conform_nif.erl"), @erlang)
    {"", 0} = CLibrary.compile(folder, "conform_nif.c", ["-D_GNU_SOURCE"])
    {_, 0} = CLibrary.erlc(folder, "conform_nif.erl")

    on_exit(fn ->
      :code.del_path(String.to_charlist(folder))
      File.rm_rf!(folder)
    end)

    # One run for all that look at what it found.
    json = Path.join(folder, "out.json")
    inputs = Path.join(folder, "inputs.exs")
    File.write!(inputs, ~s([{"conform_nif:crash/1", [""]}]))

    {out, _, status} =
      conform(["#{folder}:conform_nif", "--seed", "3", "--json", json, "--inputs", inputs])

    %{folder: folder, out: out, status: status, json: json}
  end

  # {standard output, standard error, exit status}
  defp conform(argv), do: MixTask.run(Conform, argv)

  defp found(json) do
    assert %{"seed" => 3, "failures" => [], "libraries" => [library]} = assert_schema(json)
    {library, Map.new(library["functions"], &{&1["function"], &1})}
  end

  test "functions that lead to the library, 300 calls and 20 of each", %{json: json} do
    {_, functions} = found(json)

    assert Enum.sort(Map.keys(functions)) ==
             for(
               f <- ~w(clock/0 coin/0 count/1 crash/1 new/0 program/1 same/1 same_twice/1),
               do: "conform_nif:#{f}"
             )

    all = Map.values(functions)
    assert all |> Enum.map(& &1["calls"]) |> Enum.sum() >= 300
    for row <- all, row["function"] != "conform_nif:crash/1", do: assert(row["calls"] >= 20)
  end

  test "what is the same is equal, also on what an earlier call returned", %{json: json} do
    {_, functions} = found(json)

    for name <- ~w(same/1 same_twice/1 new/0) do
      row = functions["conform_nif:#{name}"]
      assert {row["differs"], row["varies"], row["answered"]} == {0, 0, row["equal"]}
    end

    # Only the reference of a box is answered.
    assert functions["conform_nif:count/1"]["answered"] > 0
    assert functions["conform_nif:count/1"]["differs"] == 0
  end

  test "what the VM does not do twice varies; what ends the VM is contained", %{json: json} do
    {_, functions} = found(json)
    clock = functions["conform_nif:clock/0"]
    assert clock["varies"] == clock["calls"]
    crash = functions["conform_nif:crash/1"]
    assert crash["contained"] > 0
    assert crash["differs"] == 0
  end

  test "what is alike in the two VMs by chance is no difference", %{json: json} do
    {_, functions} = found(json)
    coin = functions["conform_nif:coin/0"]
    assert coin["varies"] > 0
    assert coin["differs"] == 0
  end

  test "what differs is told with the smallest input, and ends with 1", %{json: json} = context do
    {library, _} = found(json)

    assert [%{"function" => "conform_nif:program/1", "kind" => "value"} = found] =
             library["differences"]

    assert found["input"] == "conform_nif:program(<<>>)"
    assert found["in_vm"] =~ "beam"
    assert found["isolated"] =~ "tame_host"
    assert found["repeats"]
    assert context.status == 1
    assert context.out =~ "  differs: conform_nif:program/1, value, "
    assert context.out =~ "    isolated:  \"tame_host\"\n"
  end

  test "the scenarios hold", %{json: json, out: out} do
    {library, _} = found(json)

    assert for(row <- library["scenarios"], do: row["scenario"]) == ~w(callers owners host_killed)
    assert for(row <- library["scenarios"], row["status"] != "ok", do: row) == []

    assert out =~
             ~r/owners that die: holds, 300 holders and 2400 callers killed; resources \d+ before, 0 after/

    assert Path.wildcard(Path.join(System.tmp_dir!(), "tame_conform_#{System.pid()}_*")) == []
  end

  test "what is accepted does not fail, and what is not found any more is named", %{folder: folder} do
    accept = Path.join(folder, "accept.exs")

    File.write!(accept, """
    [
      {"conform_nif:program/1", :value, date: "2026-11-23", reason: "the name of a program"},
      {"conform_nif:same/1", :crash, date: "2026-11-23", reason: "none"}
    ]
    """)

    inputs = Path.join(folder, "more_inputs.exs")
    File.write!(inputs, ~s([{"conform_nif:program/1", ["a"]}]))

    {out, "", 0} =
      conform([
        "#{folder}:conform_nif",
        "--calls",
        "1",
        "--seed",
        "3",
        "--accept",
        accept,
        "--inputs",
        inputs
      ])

    assert out =~ "  accepted: conform_nif:program/1, value, "
    assert out =~ "stale  conform_nif:same/1: crash, accepted on 2026-11-23 (none), was not found\n"
  end

  test "a library that the host refuses is one line, in the loader's words", %{folder: folder} do
    refused = Path.join(folder, "refused_nif")
    File.mkdir_p!(refused)

    CLibrary.nif!(refused, "refused_nif", """
    #include <erl_nif.h>
    extern long driver_mk_atom(char *name);
    static ERL_NIF_TERM f(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
    { (void)argc; (void)argv; return enif_make_long(env, driver_mk_atom("a")); }
    static ErlNifFunc functions[] = {{"f", 0, f, 0}};
    ERL_NIF_INIT(refused_nif, functions, NULL, NULL, NULL, NULL)
    """)

    File.write!(Path.join(refused, "refused_nif.erl"), """
    -module(refused_nif).
    -on_load(load/0).
    -export([f/0]).
    load() -> erlang:load_nif(filename:rootname(code:which(?MODULE)), 0).
    f() -> erlang:nif_error(not_loaded).
    """)

    {_, 0} = CLibrary.erlc(refused, "refused_nif.erl")
    {_, err, 1} = conform([refused])
    assert [line] = String.split(err, "\n", trim: true)
    assert line =~ "refused_nif.so: undefined symbol: driver_mk_atom"
  end

  # One function, and a load with the file in which they keep what must not be forgotten.
  defp remembers!(name, function, load, erlang \\ "f(A) -> nif(A).") do
    folder = CLibrary.tmp_dir!()

    CLibrary.nif!(folder, name, """
    #include <erl_nif.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <unistd.h>
    #define FILE_NAME "#{folder}/kept"
    static ErlNifResourceType *boxes __attribute__((unused));
    static ERL_NIF_TERM f(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
    { (void)argc; (void)argv; (void)env; #{function} }
    static int load(ErlNifEnv *env, void **data, ERL_NIF_TERM info)
    { (void)env; (void)data; (void)info; #{load} }
    static ErlNifFunc functions[] = {{"nif", 1, f, 0}};
    ERL_NIF_INIT(#{name}, functions, load, NULL, NULL, NULL)
    """)

    File.write!(Path.join(folder, "#{name}.erl"), """
    -module(#{name}).
    -on_load(load/0).
    -export([f/1]).
    load() -> erlang:load_nif(filename:rootname(code:which(?MODULE)), 0).
    nif(_) -> erlang:nif_error(not_loaded).
    #{erlang}
    """)

    {_, 0} = CLibrary.erlc(folder, "#{name}.erl")
    on_exit(fn -> :code.del_path(String.to_charlist(folder)) end)
    folder
  end

  @kept ~S[FILE *file = fopen(FILE_NAME, "a"); if (!file || fputc('.', file) < 0 || fclose(file)) return 1;]

  test "a library that does not load again is one line, and no success" do
    folder =
      remembers!(
        "once_nif",
        @kept <> " abort();",
        ~S[FILE *file = fopen(FILE_NAME, "r"); return file != NULL && fclose(file) == 0;]
      )

    {out, err, 1} = conform(["#{folder}:once_nif", "--calls", "1"])
    assert out =~ "1 library, "
    assert err =~ ~r/^once_nif: its VMs do not start again: in the VM: the module does not load: /m
  end

  test "a host that goes on after an exception of tame's is not started again for each look at it" do
    folder = remembers!("no_term_nif", "return 0;", @kept <> " return 0;")
    {_, _, _} = conform(["#{folder}:no_term_nif", "--calls", "1", "--seed", "1"])
    assert File.stat!(Path.join(folder, "kept")).size < 30
  end

  test "calls for which the scenarios have no time are left out of them" do
    folder = remembers!("slow_nif", ~S[sleep(1); return enif_make_int(env, 1);], "return 0;")

    {out, "", 0} = conform(["#{folder}:slow_nif", "--limit", "1s"])
    assert out =~ ~r/16 callers: not run, \d+ cases, and each takes longer than 800 ms/
  end

  test "a resource that a process holds which a call has started is nobody's leak" do
    folder =
      remembers!(
        "held_nif",
        ~S[void *box = enif_alloc_resource(boxes, 8); ERL_NIF_TERM term = enif_make_resource(env, box);
           enif_release_resource(box); return term;],
        ~S[return !(boxes = enif_open_resource_type(env, NULL, "box", NULL, ERL_NIF_RT_CREATE, NULL));],
        "f(A) -> Box = nif(A), spawn(fun() -> receive {Box} -> ok end end), ok."
      )

    {out, "", 0} = conform(["#{folder}:held_nif", "--limit", "1s"])
    assert out =~ ~r/owners that die: not run, .* and \d+ processes that calls have started/
  end

  test "an input for what is not called is named", %{folder: folder} do
    inputs = Path.join(folder, "misspelt.exs")
    File.write!(inputs, ~s([{"conform_nif:krash/1", [""]}, {"conform_nif:crash/1", ["a"]}]))

    {out, _, _} =
      conform(["#{folder}:conform_nif", "--calls", "1", "--limit", "1ms", "--inputs", inputs])

    assert out =~
             "unused  conform_nif:krash/1: an input for it, which is none of the functions above\n"

    refute out =~ "unused  conform_nif:crash/1"
  end

  test "a library of the emulator is refused in one line" do
    {_, err, 1} = conform(["prim_file"])
    assert err == "prim_file: is part of the emulator, and cannot be isolated\n"
  end

  test "where there is nothing to compare, that is said, and is no success" do
    {out, err, 1} = conform(["lists"])
    assert out =~ "0 libraries, 0 calls"
    assert err == ":lists has no NIFs: it is pure Erlang\n"
  end

  test_refused(Conform, [
    {[], "nothing to compare, expected: mix tame.conform MODULE"},
    {~w(no_such_thing), "no_such_thing: no application, module or folder of that name is here"},
    {~w(crypto:hash/2),
     "crypto:hash/2 is a function, expected a module, an application, a folder or a .so"},
    {~w(jiffy --calls 0), "--calls 0: expected a whole number of 1 or more"},
    {~w(jiffy --seed x), "--seed x: expected a whole number of 0 or more"},
    {~w(jiffy --limit 5), "--limit 5: expected a whole number above 0 with us, ms or s"},
    {~w(jiffy --inputs /none.exs), "--inputs /none.exs: there is no such file"},
    {~w(jiffy --inputs labs), "--inputs labs: a folder, expected a file"},
    {~w(jiffy --accept /none.exs), "--accept /none.exs: there is no such file"},
    {~w(jiffy --json /proc/none/x.json), ~s(cannot write "/proc/none/x.json")},
    {~w(/none/ebin:jiffy), "/none/ebin:jiffy: there is no folder /none/ebin"},
    {~w(/tmp/:jiffy), "/tmp/:jiffy: there is no jiffy.beam in /tmp/"},
    {~w(jiffy --jason x), "unknown switch --jason"}
  ])
end
