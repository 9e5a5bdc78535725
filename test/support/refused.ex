defmodule Tame.Test.Refused do
  @moduledoc false
  # Command lines that are wrong: each is a test that the task refuses it in one line.

  import ExUnit.Assertions

  # `lines` are {argv, words of the message}.
  defmacro test_refused(task, lines) do
    quote bind_quoted: [task: task, lines: lines] do
      for {argv, expected} <- lines do
        test "a wrong command line is one line: #{Enum.join(argv, " ")}" do
          Tame.Test.Refused.assert_refused(unquote(task), unquote(argv), unquote(expected))
        end
      end
    end
  end

  def assert_refused(task, argv, expected) do
    error = assert_raise Mix.Error, fn -> task.run(argv) end
    assert error.message =~ expected
    refute error.message =~ "\n"
  end
end
