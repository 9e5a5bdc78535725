defmodule Tame.TameHppTest do
  # c_include/tame.hpp: the libraries of test/support/cpp, each in a VM of its own. `make test-sanitized` runs them under
  # the address and undefined-behaviour sanitizers.
  use ExUnit.Case, async: true

  import Tame.Test.CLibrary

  @sources Path.expand("../support/cpp", __DIR__)

  setup_all do
    %{dir: library("lives")}
  end

  defp library(name, more \\ []) do
    dir = tmp_dir!()
    for file <- File.ls!(@sources), do: File.cp!(Path.join(@sources, file), Path.join(dir, file))
    assert {"", 0} = compile(dir, name <> ".cpp", ["-O0", "-Wpedantic" | more])
    assert {"", 0} = erlc(dir, name <> ".erl")
    dir
  end

  describe "a value of each type" do
    test "comes back as it was, and what is none is refused by number and sentence" do
      assert {"right", 0} = erl(library("values"), "values:check()")
    end

    test "without exceptions and run-time types as well, in C++20" do
      more = ~w(-fno-exceptions -fno-rtti -std=c++20)
      assert {"right", 0} = erl(library("values", more), "values:check()")
    end
  end

  describe "a struct" do
    for {name, what} <- [
          {"that throws anything, in any function and placement, becomes an error", :exceptions},
          {"finds the views of its arguments where they were, also when the caller's heap moves",
           :views},
          {"emits parts, and throws between them", :streams},
          {"reads two arguments of iodata chunk by chunk", :iodata},
          {"has outputs that grow, right in every placement", :outputs},
          {"has the context that it claims alone, and lets go of it when its caller dies", :claims},
          {"is destroyed as often as it is made when callers die at any moment", :killed}
        ] do
      test name, %{dir: dir} do
        assert {"right", 0} = erl(dir, "lives:check(#{unquote(what)})")
      end
    end

    test "whose library's data throws is not loaded, and standard error says why", %{dir: dir} do
      dir = tmp_copy(dir)
      source = File.read!(Path.join(dir, "lives.erl"))

      File.write!(
        Path.join(dir, "lives.erl"),
        String.replace(source, "\"./lives\", 7", "\"./lives\", text")
      )

      assert {"", 0} = erlc(dir, "lives.erl")

      {out, status} = erl(dir, "lives:limit()")
      assert status != 0

      assert out =~
               ~s(tame: the library's data is not made: {tame,{exception,<<"load_info must be an integer">>}})
    end
  end

  test "what cannot be a job does not compile, and a sentence says why" do
    assert {out, 1} = compile(library_dir(), "refused.cpp", ["-fsyntax-only"])

    for sentence <- [
          "a move constructor that is noexcept",
          "the destructor of a job throws nothing",
          "a job has a function tame_status step(size_t units)",
          "a job has a function result()",
          "no member that needs more than 16-byte alignment",
          "a view inside a list, tuple or map is not kept for a job",
          "a job claims a context: take a tame::claim",
          "a job claims one context at most",
          "no term stands for this type: specialise tame::codec",
          "has static constexpr bool terms = true",
          "no constructor from these arguments",
          "the arity of the row l is not the number of arguments"
        ] do
      assert out =~ sentence
    end
  end

  test "the library in the header compiles and runs as it stands there" do
    [_, block] =
      Regex.run(~r/^ \*\n( \*     #include.*?)^ \*\/$/ms, File.read!("../c_include/tame.hpp"))

    dir = tmp_dir!()
    File.write!(Path.join(dir, "sum.cpp"), String.replace(block, ~r/^ \*( {5})?/m, ""))

    File.write!(Path.join(dir, "sum.erl"), """
    -module(sum).
    -export([sum/1]).
    -compile({parse_transform, tame_job}).
    -tame([sum/1]).
    -on_load(load/0).
    load() -> erlang:load_nif("./sum", 0).
    """)

    assert {"", 0} = compile(dir, "sum.cpp", ["-Wpedantic"])
    assert {"", 0} = erlc(dir, "sum.erl")

    assert {"[0,7,10000000]", 0} =
             erl(dir, """
             io:format("~w", [[sum:sum(B) || B <- [<<>>, <<7>>, binary:copy(<<1>>, 10000000)]]])
             """)
  end

  defp library_dir do
    dir = tmp_dir!()
    File.cp!(Path.join(@sources, "refused.cpp"), Path.join(dir, "refused.cpp"))
    dir
  end

  defp tmp_copy(from) do
    dir = tmp_dir!()
    File.cp_r!(from, dir)
    dir
  end
end
