defmodule Tame.PayloadTest do
  use ExUnit.Case, async: true

  alias Tame.Payload

  @plenty 1024 * 1024 * 1024

  test "bytes/2 makes a binary of that size" do
    assert {:ok, binary} = Payload.bytes(65_536, @plenty)
    assert byte_size(binary) == 65_536
    assert Payload.bytes(0, @plenty) == {:ok, ""}
  end

  test "more bytes than fit are refused, not tried" do
    assert {:error, message} = Payload.bytes(1_000_000_000_000, @plenty)
    assert message =~ "--bytes 1000000000000: does not fit in memory"
  end

  test "an expression gives its value" do
    assert Payload.expression("%{a: [1, 2.0, self()]}", @plenty) |> elem(0) == :ok
    assert Payload.expression("{1, :two}", @plenty) == {:ok, {1, :two}}
  end

  for {text, expected} <- [
        {"%{a: ", "expected an Elixir expression"},
        {"", nil},
        {"1 +", "expected an Elixir expression"},
        {"undefined_here", ": raised"},
        {"raise \"no\"", "raised no"},
        {"throw(:up)", "raised ** (throw) :up"},
        {"System.halt(0)", "ended its VM with status 0, expected a term"},
        {"System.halt(7)", "ended its VM with status 7, expected a term"},
        {":binary.copy(<<1>>, 100_000_000_000)", "does not fit in memory"},
        {":binary.copy(<<1>>, 100_000_000)", "does not fit in memory: 100000006 bytes"}
      ],
      expected != nil do
    test "#{text} is refused in one line" do
      assert {:error, message} = Payload.expression(unquote(text), @plenty)
      assert message =~ "--term #{inspect(unquote(text))}: "
      assert message =~ unquote(expected)
      refute message =~ "\n"
    end
  end

  test "a name that does not exist is named" do
    assert {:error, message} = Payload.expression("nothing_of_that_name", @plenty)
    assert message =~ ~r/raised .*undefined (function|variable).*nothing_of_that_name/
  end
end
