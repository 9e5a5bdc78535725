defmodule Mix.Tasks.Tame.IsolationTest do
  use ExUnit.Case, async: true

  alias Mix.Tasks.Tame.Isolation

  for {argv, expected} <- [
        {~w(--sizes 16,x), "--sizes x: expected whole numbers of 0 or more, in bytes"},
        {~w(--sizes -1), "--sizes -1: expected whole numbers of 0 or more, in bytes"},
        {~w(--sizes 16,999999999999999), "--sizes 999999999999999: does not fit in memory"},
        {~w(--iterations 0), "--iterations 0: expected a whole number of 1 or more"},
        {~w(--crashes none), "--crashes none: expected a whole number of 1 or more"},
        {~w(--json /proc/none/x.json), ~s(cannot write "/proc/none/x.json")},
        {~w(--bytes 16), "unknown switch --bytes, expected one of: --quick, --sizes"},
        {~w(more), ~s(unexpected word "more")}
      ] do
    test "a wrong command line is one line: #{Enum.join(argv, " ")}" do
      error = assert_raise Mix.Error, fn -> Isolation.run(unquote(argv)) end
      assert error.message =~ unquote(expected)
      refute error.message =~ "\n"
    end
  end
end
