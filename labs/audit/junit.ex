defmodule Tame.Audit.JUnit do
  @moduledoc """
  The outcome of checks as JUnit's XML, which CI systems read. Pure.
  """

  @typedoc "A check's text, how long it took, and the lines that say where it falls short."
  @type outcome :: {text :: String.t(), seconds :: float(), shortfalls :: [String.t()]}

  @doc "A test suite with a case for each outcome."
  @spec xml([outcome()]) :: iodata()
  def xml(outcomes) do
    failed = Enum.count(outcomes, fn {_, _, lines} -> lines != [] end)
    total = outcomes |> Enum.map(&elem(&1, 1)) |> Enum.sum()
    counts = ~s(tests="#{length(outcomes)}" failures="#{failed}")

    [
      ~s(<?xml version="1.0" encoding="UTF-8"?>\n),
      ~s(<testsuites #{counts} time="#{seconds(total)}">\n),
      ~s(<testsuite name="tame.audit" #{counts} errors="0" time="#{seconds(total)}">\n),
      Enum.map(outcomes, &test_case/1),
      "</testsuite>\n</testsuites>\n"
    ]
  end

  defp test_case({text, time, lines}) do
    failures =
      for line <- lines,
          do: [~s(<failure message="), escape(line), ~s(">), escape(line), "</failure>\n"]

    [
      ~s(<testcase classname="tame.audit" name="),
      escape(text),
      ~s(" time="#{seconds(time)}">\n),
      failures,
      "</testcase>\n"
    ]
  end

  defp seconds(time), do: :erlang.float_to_binary(time / 1, decimals: 3)

  defp escape(text), do: Tame.Report.HTML.escape(text)
end
