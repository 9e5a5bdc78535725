defmodule Tame.GuideTest do
  # The complete files of docs/guide/well_behaved_nif.md, compiled and run as they stand there.
  use ExUnit.Case, async: true

  import Tame.Test.CLibrary

  @guide File.read!("../docs/guide/well_behaved_nif.md")
  @files Map.new(
           Regex.scan(~r/^```\w+ file=(\S+)\n(.*?)^```$/ms, @guide),
           fn [_, name, text] -> {name, text} end
         )
  @placements ~w(AUTO INLINE YIELDING DIRTY_CPU DIRTY_IO YIELDING_DIRTY THREAD POOL)

  # Writes files of the guide into a folder of their own, changed by `change`.
  defp folder(names, change \\ & &1) do
    dir = tmp_dir!()
    for name <- names, do: File.write!(Path.join(dir, name), change.(Map.fetch!(@files, name)))
    dir
  end

  defp build(dir, library, module) do
    assert {"", 0} = compile(dir, library)
    assert {"", 0} = erlc(dir, module)
    dir
  end

  test "the guide has the files that this test knows" do
    assert Enum.sort(Map.keys(@files)) == ~w(exor.c exor.erl measure.erl words.cpp words.erl)
  end

  test "exor in C has at most 40 lines, the function table included" do
    lines = String.split(@files["exor.c"], "\n", trim: false)
    assert length(lines) - 1 <= 40
    assert @files["exor.c"] =~ "TAME_NIF_INIT"
    assert Enum.all?(lines, &(String.length(&1) <= 100))
  end

  # A value is checked in the VM that ran it; what comes out is its name.
  @exor_checks """
  Bytes = fun(N, F) -> << <<(F(I) band 255)>> || I <- lists:seq(1, N) >> end,
  Check = fun(N) ->
      A = Bytes(N, fun(I) -> I end), B = Bytes(N, fun(I) -> I * 7 + I bsr 8 end),
      true = exor:exor(A, B) =:= crypto:exor(A, B)
  end,
  [Check(N) || N <- [0, 1, 63, 64, 65, 1000, 100000]],
  Large = binary:copy(<<1, 2, 3, 4, 5, 6, 7>>, 10000000),
  true = exor:exor(Large, Large) =:= binary:copy(<<0>>, byte_size(Large)),
  <<_:3, Unaligned:69999999/binary, _/bitstring>> = Large,
  Other = binary:part(Large, 1, 69999999),
  true = crypto:hash(sha256, exor:exor(Unaligned, Other)) =:=
         crypto:hash(sha256, crypto:exor(Unaligned, Other)),
  [{error, badarg} = try exor:exor(X, Y) catch error:R -> {error, R} end
      || {X, Y} <- [{a, <<>>}, {<<>>, 1}, {<<1:7>>, <<1>>}, {<<1>>, <<>>}]],
  io:put_chars("right")
  """

  for placement <- @placements do
    test "exor as TAME_#{placement} is right for empty, short, unaligned and large binaries" do
      replacement = "TAME_#{unquote(placement)})"

      dir =
        folder(~w(exor.c exor.erl), &String.replace(&1, ~r/TAME_\w+\)$/m, replacement))
        |> build("exor.c", "exor.erl")

      assert File.read!(Path.join(dir, "exor.c")) =~ "exor, " <> replacement
      assert {"right", 0} = erl(dir, @exor_checks)
    end
  end

  test "exor's session gives what stands there" do
    [_, command, expected] = Regex.run(~r/^1> (exor:exor\(.*\))\.\n(.*)$/m, @guide)
    dir = folder(~w(exor.c exor.erl)) |> build("exor.c", "exor.erl")
    # As the shell has it: a binary of characters that can be printed is a text.
    assert {^expected, 0} = erl(dir, ~s|io:format("~tp", [#{command}])|)
  end

  test "exor says which argument is wrong, in words" do
    dir = folder(~w(exor.c exor.erl)) |> build("exor.c", "exor.erl")

    # erl_error is what the shell itself prints with.
    assert {out, 0} =
             erl(dir, """
             try exor:exor(<<1,2>>, <<1>>) catch C:R:S ->
                 io:put_chars(erl_error:format_exception(C, R, S)) end
             """)

    assert out =~ "called as exor:exor(<<1,2>>,<<1>>)"
    assert out =~ "*** argument 2: must be a binary as long as the first"
  end

  test "words in C++ is right for empty, one-byte and large text" do
    dir = folder(~w(words.cpp words.erl)) |> build("words.cpp", "words.erl")

    assert {"right", 0} =
             erl(dir, """
             {0, 0, <<>>} = words:count(<<>>),
             {0, 1, <<"a">>} = words:count(<<"a">>),
             {1, 0, <<>>} = words:count(<<"\\n">>),
             {1, 2, <<"words">>} = words:count(<<"two words\\n">>),
             Line = <<"a line of\\tsix words  \\r\\n">>,
             {2000000, 10000000, <<"words">>} = words:count(binary:copy(Line, 2000000)),
             badarg = try words:count(atom) catch error:R -> R end,
             {no_text, 24000000} =
                 try words:count(<<(binary:copy(<<"lines">>, 4800000))/binary, 0>>) catch error:E -> E end,
             io:put_chars("right")
             """)
  end

  for placement <- ~w(AUTO POOL) do
    test "words as TAME_#{placement} is right where it is isolated: its text stays where it lay" do
      replacement = "TAME_#{unquote(placement)})"

      dir =
        folder(~w(words.cpp words.erl), &String.replace(&1, ~r/TAME_\w+\)$/m, replacement))
        |> build("words.cpp", "words.erl")

      assert {"right", 0} =
               erl(dir, """
               {ok, _} = application:ensure_all_started(tame),
               ok = tame:isolate(words),
               [{0, N, <<"ab">>} = words:count(binary:copy(<<"ab ">>, N))
                   || N <- [1, 21, 22, 42, 43, 44, 1000, 100000, 1000000], _ <- lists:seq(1, 5)],
               io:put_chars("right")
               """)
    end
  end

  test "measure prints a line with the figures that the guide explains" do
    dir = folder(~w(exor.c exor.erl measure.erl)) |> build("exor.c", "exor.erl")
    assert {"", 0} = erlc(dir, "measure.erl")

    assert {out, 0} =
             erl(
               dir,
               "A = binary:copy(<<1>>, 1048576), measure:run(\"inline\", fun() -> exor:exor(A, A) end)",
               ["+S", "1"]
             )

    line = ~r/^inline +[\d.]+ ms +\d+ reductions +\d+ waits, longest \d+ us, 99 % under \d+ us$/m
    assert out =~ line

    for row <- Regex.scan(~r/^\w+ +[\d.]+ ms.*$/m, @guide) do
      assert hd(row) =~ ~r/^\w+ +[\d.]+ ms +\d+ reductions +\d+ waits, longest \d+ us, 99 % under/
    end
  end

  test "every link of the guide leads to a file" do
    for [_, path] <- Regex.scan(~r/\]\(([^)#]+)\)/, @guide) do
      assert File.exists?(Path.join("../docs/guide", path))
    end
  end
end
