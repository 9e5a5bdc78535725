defmodule Tame.TameHTest do
  # c_include/tame.h: its version, its manual, its reference, and function tables that are wrong.
  use ExUnit.Case, async: true

  import Tame.Test.CLibrary

  # tame/driver.h is for drivers, and has a reference of its own.
  @headers ["../c_include/tame.h" | Path.wildcard("../c_include/tame/*.h")]
           |> List.delete("../c_include/tame/driver.h")
           |> Enum.map(&{&1, File.read!(&1)})
  @manual File.read!("../c_include/tame.h")
  @reference File.read!("../docs/reference/tame_h.md")

  defp without_comments(text) do
    text |> String.replace(~r{/\*.*?\*/}s, " ") |> String.replace(~r{"[^"\n]*"}, "\"\"")
  end

  defp code, do: Enum.map_join(@headers, "\n", fn {_, text} -> without_comments(text) end)

  defp names(text) do
    Regex.scan(~r/\b(?:tame|TAME)_\w+/, text)
    |> List.flatten()
    |> Enum.reject(&(&1 =~ "impl" or &1 =~ "IMPL"))
    |> MapSet.new()
  end

  defp one_line(text), do: text |> String.split() |> Enum.join(" ")

  describe "TAME_VERSION" do
    test "is the version of the application and of the changelog's newest entry" do
      [_, version] = Regex.run(~r/^#define TAME_VERSION "(.*)"$/m, @manual)
      {:ok, [{:application, :tame, app}]} = :file.consult("../src/tame.app.src")
      [_, newest] = Regex.run(~r/^## (\d\S*)/m, File.read!("../CHANGELOG.md"))

      assert version == to_string(app[:vsn])
      assert version == newest
    end
  end

  describe "the reference" do
    test "has a heading for every public name of the headers, and for no other" do
      guards =
        for {_, text} <- @headers,
            [_, guard] <- Regex.scan(~r/^#ifndef (TAME_\w*H)$/m, text),
            do: guard

      headings = Regex.scan(~r/^### .*$/m, @reference) |> Enum.map_join("\n", &hd/1)
      public = MapSet.difference(names(code()), MapSet.new(guards))

      assert MapSet.size(public) > 30
      assert Enum.sort(names(headings)) == Enum.sort(public)
    end

    test "declares everything as the headers do" do
      code = one_line(code())
      blocks = Regex.scan(~r/^```c\n(.*?)^```$/ms, @reference)

      assert length(blocks) > 10
      for [_, block] <- blocks, do: assert(code =~ one_line(block))
    end

    test "lists every public member of every public struct, with its type" do
      structs = Regex.scan(~r/^struct (tame_\w+) \{\n(.*?)^\};/ms, code())

      public =
        for [_, name, body] <- structs, not (name =~ "impl") do
          # Nested structs are private throughout.
          members =
            body
            |> String.replace(~r/struct \{.*?\}/s, "")
            |> String.split(";")
            |> Enum.map(&one_line/1)
            |> Enum.reject(&(&1 == "" or &1 =~ "impl_"))

          {name, members}
        end

      assert length(public) == 10

      for {name, members} <- public do
        [_, section] = Regex.run(~r/^### `struct #{name}`\n(.*?)(?=^##|\z)/ms, @reference)
        listed = Regex.scan(~r/^\| `([^`]+)` \|/m, section) |> Enum.map(&Enum.at(&1, 1))
        assert listed == members
      end
    end

    test "and the manual give each constant the value it has" do
      defined =
        for [_, name, value] <- Regex.scan(~r/^#define (TAME_[A-Z_]+) (\S+)$/m, code()),
            not (name =~ "IMPL"),
            digits = Regex.run(~r/\b\d+/, value),
            do: {name, hd(digits)}

      assert length(defined) >= 5

      for {name, value} <- defined do
        assert @manual =~ ~r/^ \*   #{name} +#{value} /m
        [_, section] = Regex.run(~r/^### `#{name}`\n\n(\S+)/m, @reference)
        assert section |> String.replace(",", "") |> String.trim_trailing(":") == value
      end
    end
  end

  describe "the manual" do
    test "has a library that compiles and runs as it stands there" do
      [_, block] =
        Regex.run(~r/^ \* 1  A COMPLETE LIBRARY\n(.*?)^ \* In Erlang an attribute/ms, @manual)

      dir = tmp_dir!()
      File.write!(Path.join(dir, "sum.c"), String.replace(block, ~r/^ \*( {5})?/m, ""))
      attributes = Regex.scan(~r/^ \*     (-(?:compile|tame)\(.*)$/m, @manual)

      File.write!(Path.join(dir, "sum.erl"), """
      -module(sum).
      -export([sum/1]).
      #{Enum.map_join(attributes, "\n", &Enum.at(&1, 1))}
      -on_load(load/0).
      load() -> erlang:load_nif("./sum", 0).
      """)

      assert {"", 0} = compile(dir, "sum.c")
      assert {"", 0} = erlc(dir, "sum.erl")

      assert {"[0,7,10000000]", 0} =
               erl(dir, """
               io:format("~w", [[sum:sum(B) || B <- [<<>>, <<7>>, binary:copy(<<1>>, 10000000)]]])
               """)
    end

    test "names every placement in its table" do
      [_, table] = Regex.run(~r/^ \* 2  PLACEMENTS\n(.*?)^ \* 3  /ms, @manual)
      [_, enum] = Regex.run(~r/enum tame_placement \{(.*?)\}/s, code())
      assert MapSet.equal?(names(table), names(enum))
    end
  end

  describe "a function table that is wrong" do
    @job """
    #include <tame.h>
    static enum tame_status init(struct tame_call *call, void *state)
    {
        (void)state;
        return tame_ok(call, 0);
    }
    static enum tame_status step(struct tame_call *call, void *state, size_t units)
    {
        (void)call;
        (void)state;
        (void)units;
        return TAME_DONE;
    }
    static ERL_NIF_TERM result(struct tame_call *call, void *state)
    {
        (void)state;
        return enif_make_atom(call->env, "ok");
    }
    /* One of them may be missing from the job below. */
    static inline void used(void)
    {
        (void)init, (void)step, (void)result;
    }
    """

    defp library(members, rows) do
      dir = tmp_dir!()

      File.write!(Path.join(dir, "wrong.c"), """
      #{@job}
      static const struct tame_job job = {#{members}};
      #define FUNCTIONS(JOB, NIF) #{rows}
      TAME_NIF_INIT(wrong, FUNCTIONS)
      """)

      File.write!(Path.join(dir, "wrong.erl"), """
      -module(wrong).
      -export([load/0, run/0, run/9, '$tame'/3]).
      -nifs([run/0, run/9, '$tame'/3]).
      load() -> erlang:load_nif("./wrong", 0).
      run() -> not_loaded.
      '$tame'(_, _, _) -> not_loaded.
      run(_, _, _, _, _, _, _, _, _) -> not_loaded.
      """)

      dir
    end

    # What is printed on loading it, and what load_nif returns, in one text.
    defp load(members, rows) do
      dir = library(members, rows)
      assert {"", 0} = compile(dir, "wrong.c")
      assert {"", 0} = erlc(dir, "wrong.erl")
      assert {out, 0} = erl(dir, ~s|io:format("~w", [wrong:load()])|)
      out
    end

    @row "JOB(run, 0, job, TAME_INLINE)"
    @right ".state_size = 1, .init = init, .step = step, .result = result"

    test "(one that is right loads)" do
      assert load(@right, @row) == "ok"
    end

    for {missing, reason} <- [
          {".init = init", "it has no init"},
          {".step = step", "it has no step"},
          {".result = result", "it has no result"},
          {".state_size = 1", "its state_size is 0"}
        ] do
      test "fails to load and says on standard error: #{reason}" do
        members = @right |> String.split(", ") |> List.delete(unquote(missing)) |> Enum.join(", ")

        out = load(members, @row)
        assert out =~ "tame: the job of wrong:run/0 is refused: #{unquote(reason)}"
        assert out =~ "{error,{load,"
      end
    end

    test "fails to load with more arguments than a job takes" do
      out = load(@right, "JOB(run, 9, job, TAME_AUTO)")
      assert out =~ "wrong:run/9 is refused: it takes more than TAME_MAX_ARGS arguments"
      assert out =~ "{error,{load,"
    end

    test "fails to load with a larger stack than the VM gives" do
      out = load(@right <> ", .stack_kib = TAME_MAX_STACK_KIB + 1", @row)
      assert out =~ "wrong:run/0 is refused: its stack_kib is more than TAME_MAX_STACK_KIB"
      assert out =~ "{error,{load,"
    end

    for placement <- ~w(TAME_THREAD TAME_POOL) do
      test "fails to load with terms in steps where there are none: #{placement}" do
        out = load(@right <> ", .terms = 1", "JOB(run, 0, job, #{unquote(placement)})")
        assert out =~ "wrong:run/0 is refused: its steps use terms"
        assert out =~ "{error,{load,"
      end
    end

    test "does not compile with a plain NIF where none runs" do
      dir = library(@right, "JOB(run, 0, job, TAME_AUTO) NIF(other, 1, tame_impl_verb, TAME_POOL)")
      assert {out, 1} = compile(dir, "wrong.c")
      assert out =~ "tame_impl_plain_other_1"
    end

    test "does not compile with a row that appears twice, and the compiler names it" do
      dir = library(@right, "JOB(run, 0, job, TAME_AUTO) JOB(run, 0, job, TAME_POOL)")
      assert {out, 1} = compile(dir, "wrong.c")
      assert out =~ "run_0"
      assert out =~ ~r/redeclaration|redefinition/
    end
  end
end
