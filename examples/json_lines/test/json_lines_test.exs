defmodule JsonLinesTest do
  use ExUnit.Case, async: true
  import :proper_types, only: [integer: 2, list: 1, non_neg_integer: 0]

  # jiffy is the judge: each line is what it says, and it refuses what we refuse.
  defp jiffy(line) do
    {:ok, :jiffy.decode(line, [:return_maps])}
  catch
    :error, _ -> :error
  end

  defp ours(data) do
    {:ok, :json_lines.to_list(data)}
  rescue
    error in ErlangError ->
      {:json_lines, {line, column}, sentence} = error.original
      true = line >= 1 and column >= 1 and is_binary(sentence)
      :error
  end

  defp error(data) do
    %ErlangError{original: {:json_lines, at, sentence}} =
      assert_raise ErlangError, fn -> :json_lines.to_list(data) end

    {at, sentence}
  end

  defp holds(type, numtests, property) do
    test = :proper.forall(type, property)
    options = [:quiet, :long_result, numtests: numtests]

    assert :proper.quickcheck(test, options) == true,
           "does not hold for #{inspect(:proper.counterexample())}"
  end

  defp seed, do: integer(0, 1_000_000_000)

  @text ~S({"a":[1,-2.5e3,"x\u00e9\uD834\uDD1E\n",{}],"é":null,"":[[],true,123456789012345678901234567890]})

  test "lines as jiffy has them, cut anywhere" do
    holds({list({seed(), integer(0, 6)}), seed()}, 300, fn {lines, cut} ->
      lines = for {seed, size} <- lines, do: RandomJson.line(seed, size)
      data = lines |> Enum.intersperse("\n") |> IO.iodata_to_binary() |> RandomJson.cut(cut)
      :json_lines.to_list(data) === for(line <- lines, {:ok, value} = jiffy(line), do: value)
    end)
  end

  test "refuses what jiffy refuses, cut anywhere" do
    holds({seed(), integer(0, 5), seed(), non_neg_integer()}, 3000, fn {seed, size, broken, cut} ->
      line = seed |> RandomJson.line(size) |> RandomJson.broken(broken)

      case {ours(RandomJson.cut(line, cut)), jiffy(line)} do
        {{:ok, [value]}, {:ok, value}} -> true
        {{:ok, []}, :error} -> String.trim(line) == ""
        # jiffy takes an exponent without digits, 1e for 1.0.
        {:error, {:ok, _}} -> line =~ ~r/\d[eE][-+]?(?!\d)/
        # It calculates with a rounded mantissa where that is no 64-bit integer.
        {{:ok, [_]}, {:ok, _}} -> line =~ ~r/\d{17}[.eE]/
        {ours, theirs} -> ours == :error and theirs == :error
      end
    end)
  end

  test "every cut in two, and byte by byte" do
    {:ok, value} = jiffy(@text)

    for at <- 0..byte_size(@text) do
      <<head::binary-size(at), tail::binary>> = @text
      assert :json_lines.to_list([head, tail]) === [value]
      assert :json_lines.to_list([head, "", "", tail, "\n"]) === [value]
    end

    assert :json_lines.to_list(for <<byte <- @text>>, do: <<byte>>) === [value]
    assert :json_lines.to_list(:binary.bin_to_list(@text)) === [value]
  end

  test "what ends early says where" do
    for at <- 1..(byte_size(@text) - 1) do
      <<head::binary-size(at), _::binary>> = @text
      assert {{1, column}, sentence} = error(head)
      # A word is told with its beginning.
      assert column == at + 1 or sentence in ["is no value", "is no number"]
    end
  end

  test "any iodata; blank lines are left out" do
    assert :json_lines.to_list([]) == []
    assert :json_lines.to_list("\n \r\n\t\n") == []
    assert :json_lines.to_list([?1, ["2\r\n", [[], "\n3"]] | "4"]) == [12, 34]
    assert_raise ArgumentError, fn -> :json_lines.to_list(:atom) end
    assert_raise ArgumentError, fn -> :json_lines.to_list(["1\n", :atom]) end
  end

  test "an error has its line and its column" do
    assert {{1, 1}, "is no value"} = error("x")
    assert {{3, 4}, "is no value"} = error(["1\n", "\n[1", ",]\n"])
    assert {{2, 5}, "expected :"} = error("{}\n{\"a\"}")
    assert {{1, 6}, "expected , or }"} = error("{\"a\":1]") |> shift(-1)
    assert {{1, 2}, "the line ends within a list or a map"} = error("[\n1]")
    assert {{1, 3}, "expected the end of the line"} = error("1 2")
    assert {{2, 3}, "is not UTF-8"} = error(["\"ok\"\n\"a", <<0xC0, ?">>])
    assert {{1, 4}, "is not UTF-8"} = error(["\"", <<0xE2, 0x82>>, "\""])
    assert {{1, 8}, "has half a pair of surrogates"} = error(~S("\uD800"))
    assert {{1, 3}, "has an unknown escape"} = error(~S("\x"))
    assert {{1, 2}, "has a control character"} = error("\"\t\"")
    assert {{1, 1}, "is too large a number"} = error("1e400")
    assert {{2, 2}, "is no number"} = error(["0\n[0", "1]"])
  end

  # The column is that of the byte that is wrong.
  defp shift({{line, column}, sentence}, by), do: {{line, column + by}, sentence}

  test "a line's error comes when the line is asked for" do
    [1 | next] = :json_lines.parse("1\nx").()
    assert_raise ErlangError, fn -> next.() end
  end

  test "numbers" do
    for text <-
          ~w(0 -0 1 -1 999999999999999999 1000000000000000000 9223372036854775807) ++
            ~w(9223372036854775808 -9223372036854775808 -9223372036854775809 0.1 -0.0) ++
            ~w(1e308 1.7976931348623157e308 1e-400 2.2250738585072011e-308) ++
            [String.duplicate("9", 4096), "-" <> String.duplicate("1234567890", 100)] do
      assert {:ok, value} = jiffy(text)
      assert :json_lines.to_list(text) === [value]
    end

    # jiffy has 0.0 here.
    assert :json_lines.to_list("5e-324") === [5.0e-324]
    assert {_, "is longer than a number may be"} = error(String.duplicate("9", 4097))
    assert {_, "is longer than a number may be"} = error(List.duplicate("9", 1_000_000))
  end

  test "the last of equal keys counts" do
    many =
      for n <- 1..1000,
          do: ["\"k\":", Integer.to_string(n), ",\"", Integer.to_string(rem(n, 700)), "\":1,"]

    for text <- [~S({"a":1,"a":2}), IO.iodata_to_binary(["{", many, "\"k\":0}"])] do
      assert {:ok, value} = jiffy(text)
      assert :json_lines.to_list(text) === [value]
    end
  end

  test "deep, wide and long" do
    deep = String.duplicate("[", 200_000) <> String.duplicate("]", 200_000)
    list = Enum.to_list(1..300_000)
    map = Map.new(1..50_000, &{Integer.to_string(&1), &1})
    wide = IO.iodata_to_binary([:jiffy.encode(list), "\n", :jiffy.encode(map), "\n"])
    long = String.duplicate("a long text ", 500_000)

    assert {:ok, nested} = jiffy(deep)
    assert :json_lines.to_list(deep) === [nested]
    assert :json_lines.to_list(wide) === [list, map]
    assert :json_lines.to_list(["\"", long, "\""]) === [long]
    assert :json_lines.to_list(["\"", long, "\\n", long, "\"\n1"]) === [long <> "\n" <> long, 1]
    assert {{1, 1_000_002}, "is nested too deep"} = error(String.duplicate("[", 2_000_000))
  end

  test "a long string is a part of the input, a short one is not" do
    long = String.duplicate("x", 10_000)
    [value] = :json_lines.to_list(<<?", long::binary, ?">>)
    assert :binary.referenced_byte_size(value) == 10_002
    [value] = :json_lines.to_list(<<?[, ?", long::binary, ?", ?,, "\"short\"]">>)
    assert value |> List.last() |> :binary.referenced_byte_size() == 5
  end

  test "a deadline ends it" do
    data = List.duplicate("[1,2,3]\n", 3_000_000)

    assert_raise ErlangError, ~r/deadline/, fn ->
      Tame.deadline(5, fn -> :json_lines.fold(fn _, n -> n + 1 end, 0, data) end)
    end
  end
end
