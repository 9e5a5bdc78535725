defmodule Tame.JobTransformTest do
  # What -tame and defjob write, and what they refuse. The NIFs are Erlang here: the forms are what is looked at.
  use ExUnit.Case, async: true

  import Tame.Test.CLibrary

  defp compiled(text) do
    dir = tmp_dir!()
    load = "load() -> erlang:load_nif(\"none\", 0).\n"
    File.write!(Path.join(dir, "made.erl"), text <> load)
    {dir, erlc(dir, "made.erl")}
  end

  @head "-module(made).\n-export([f/2, load/0]).\n-compile({parse_transform, tame_job}).\n"

  test "writes the function, the stubs and '$tame'/3 without a warning, and keeps the spec" do
    {dir, result} =
      compiled(@head <> "-tame([f/2]).\n-spec f(integer(), integer()) -> integer().\n")

    assert result == {"", 0}

    assert {out, 0} =
             erl(dir, """
             io:format("~w", [lists:sort(made:module_info(exports))])
             """)

    assert out =~ "[{'$tame',3},{f,2},{load,0},"
  end

  test "a function that the module defines itself is the module's own" do
    {dir, result} =
      compiled(
        @head <>
          "-export([f_nif/2]).\n-tame([f/2]).\nf(A, B) -> {own, A, B}.\nf_nif(A, B) -> A + B.\n"
      )

    assert {_, 0} = result
    assert {"{own,1,2}", 0} = erl(dir, ~s|io:format("~w", [made:f(1, 2)])|)
  end

  test "what the NIF returns comes through, and under a deadline the library is asked to begin" do
    # The stubs of the module itself stand for the library.
    {dir, {_, 0}} =
      compiled("""
      #{@head}-tame([{f, 2, \#{nif => g}}]).
      -export([g/2, '$tame'/3]).
      g(A, B) -> {A, B}.
      '$tame'(Nif, Deadline, Args) -> {begun, Nif, is_integer(Deadline), Args}.
      """)

    assert {"{{1,2},{begun,g,true,[1,2]}}", 0} =
             erl(dir, """
             io:format("~w", [{made:f(1, 2),
                 tame:with(\#{deadline_ms => 1000}, fun() -> made:f(1, 2) end)}])
             """)
  end

  test "a NIF with options, which no function of the module calls, is there for its library" do
    {dir, result} = compiled(@head <> "-tame([{f, 2, \#{deadline_ms => 50}}]).\n")
    assert result == {"", 0}

    assert {"true", 0} =
             erl(dir, ~s|io:format("~w", [lists:member({f_nif, 2}, made:module_info(exports))])|)
  end

  test "options: a deadline, iodata, a stream" do
    {dir, {_, 0}} =
      compiled("""
      #{@head}-tame([{f, 2, \#{deadline_ms => 50, iodata => [2]}}, {s, 1, \#{stream => true}}]).
      -export([s/1, '$tame'/3]).
      '$tame'(f_nif, Deadline, Args) ->
          Left = Deadline - erlang:monotonic_time(nanosecond),
          {Left > 0 andalso Left =< 50000000, Args};
      '$tame'(s_nif, infinity, [_]) -> {'$tame', part, {one, run}};
      '$tame'(run, Ref, [_]) when is_reference(Ref) -> done.
      """)

    assert {"{{true,[x,[<<1,2>>]]},{true,[x,no_iodata]},[one],[]}", 0} =
             erl(dir, """
             [One | Next] = (made:s(1))(),
             io:format("~w", [{made:f(x, [1, [2]]), made:f(x, no_iodata), [One], Next()}])
             """)
  end

  # Before OTP 27 native code can tell in time, and says `align`.
  test "from OTP 27 on a long binary that begins in the middle of a byte is copied before the NIF gets it" do
    {dir, {_, 0}} =
      compiled("""
      #{@head}-tame([f/2]).
      -export([f_nif/2]).
      f_nif(A, B) -> [A, B].
      """)

    assert {out, 0} =
             erl(dir, """
             Bytes = rand:bytes(70000),
             <<_:3, Bits:70000/binary, _/bitstring>> = <<0:3, Bytes/binary, 0:5>>,
             [A, B] = made:f(Bits, Bytes),
             io:format("~w", [{A =:= Bytes, erts_debug:same(A, Bits), erts_debug:same(B, Bytes)}])
             """)

    assert out == "{true,#{System.otp_release() < "27"},true}"
  end

  test "refuses what it does not know, with the line and a sentence" do
    for {entry, sentence} <- [
          {"f", "must be Name/Arity or {Name, Arity, Options}"},
          {"{f, 2, \#{dead_line => 1}}", "dead_line: no such option"},
          {"{f, 2, \#{deadline_ms => -1}}", "deadline_ms: must be milliseconds"},
          {"{f, 2, \#{iodata => [3]}}", "iodata: must be a list of numbers of arguments"},
          {"{f, 2, \#{iodata => [1 | 2]}}", "iodata: must be a list of numbers of arguments"},
          {"f/2 | b", "must be Name/Arity or {Name, Arity, Options}"},
          {"f/2, f/2", "-tame({f,2}): must be there once"},
          {"{f, 2, \#{nif => f}}", "nif: must be another name than that of a function in -tame"},
          {"f/2, {g, 2, \#{nif => f}}", "nif: must be another name"},
          {"f/9", "-tame({f,9}): Arity must be from 0 to 8"},
          {"#{String.duplicate("f", 253)}/2", "nif: must be there, for a name so long"},
          {"{f, 2, \#{stream => yes}}", "stream: must be true or false"}
        ] do
      {_, {out, status}} = compiled(@head <> "-tame([#{entry}]).\n")
      assert {entry, status} == {entry, 1}
      assert out =~ "made.erl:4"
      assert out =~ sentence
    end
  end

  test "takes as many arguments as the C side" do
    core = File.read!(Path.join(:tame.include_dir(), "tame/job.h"))
    assert [_, max] = Regex.run(~r/^#define TAME_MAX_ARGS (\d+)/m, core)
    assert {_, _, _} = :tame_job.entry({:f, String.to_integer(max)})
    assert {_, sentence} = catch_throw(:tame_job.entry({:f, String.to_integer(max) + 1}))
    assert to_string(sentence) =~ "from 0 to #{max}"
  end

  test "defjob refuses the same" do
    for {code, sentence} <- [
          {"defjob f(a), iodata: [2]", "iodata: must be a list of numbers of arguments"},
          {"defjob f(a), late: 1", "late: no such option"},
          {"defjob 1", "must be name(arg, ...)"}
        ] do
      text = "defmodule Tame.JobTransformTest.Made do\nuse Tame.Job\n#{code}\nend"
      error = assert_raise ArgumentError, fn -> Code.eval_string(text) end
      assert Exception.message(error) =~ sentence
    end

    text = "defmodule Tame.JobTransformTest.Made do\nuse Tame.Job, deadline_ms: 10\nend"
    error = assert_raise ArgumentError, fn -> Code.eval_string(text) end
    assert Exception.message(error) == "use Tame.Job, [deadline_ms: 10]: takes no options"
  end
end
