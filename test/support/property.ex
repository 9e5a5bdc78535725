defmodule Tame.Property do
  @moduledoc """
  Checks a property on random values, with PropEr, and fails with the smallest value that breaks it.

      alias Tame.Property
      import :proper_types, only: [integer: 2, list: 1]

      Property.check(list(integer(0, 9)), fn list ->
        Enum.sort(list) == Enum.sort(Enum.reverse(list))
      end)

  Generators are PropEr's types (`:proper_types`); a tuple or list of generators is a generator too.
  """

  @options [numtests: 100, max_size: 42, max_shrinks: 500]

  # What breaks now and then is made smaller for ever.
  @shrink_ms 60_000

  @doc """
  Calls `property` with values of `generator` until it has held `:numtests` times.

  The property holds when it returns `true`. When it returns anything else or raises (a failed
  `assert` does), the value is made smaller as long as the property still breaks, for a minute at most, and the test
  fails with that value and with what the property did: with it, and at first.

  Options: `:numtests`, how many values (default: 100); `:max_size`, how far PropEr's sizes grow,
  which for a list is its greatest length (default: 42); `:max_shrinks`, how often it is made smaller (default: 500).
  """
  @spec check(term(), (term() -> boolean()), keyword()) :: :ok
  def check(generator, property, options \\ []) do
    options = Keyword.validate!(options, @options)
    # PropEr writes to the terminal unless it is quiet; the report below replaces what it writes.
    quickcheck_options = [:quiet, :long_result] ++ options

    Process.delete(__MODULE__)
    test = :proper.forall(generator, fn value -> holds?(property, value) end)

    case quickcheck(test, quickcheck_options) do
      true -> :ok
      [value] -> flunk(property, value)
      {:error, reason} -> raise "PropEr could not run the property: #{inspect(reason)}"
    end
  end

  # PropEr 1.2 raises while it makes some values smaller; the value that it had reached says enough.
  defp quickcheck(test, options) do
    :proper.quickcheck(test, options)
  rescue
    error ->
      case Process.get(__MODULE__) do
        %{value: value} -> [value]
        nil -> reraise error, __STACKTRACE__
      end
  end

  defp holds?(property, value) do
    broken = Process.get(__MODULE__)

    if broken != nil and now_ms() > broken.at_ms + @shrink_ms do
      true
    else
      outcome = outcome(property, value)
      if outcome != :holds, do: Process.put(__MODULE__, broken(broken, value, outcome))
      outcome == :holds
    end
  end

  defp broken(nil, value, outcome),
    do: %{value: value, outcome: outcome, first: outcome, at_ms: now_ms()}

  defp broken(broken, value, outcome), do: %{broken | value: value, outcome: outcome}

  defp now_ms, do: System.monotonic_time(:millisecond)

  # The property is run once more, because PropEr keeps the value but not what it led to.
  defp flunk(property, value) do
    counterexample = inspect(value, limit: :infinity, charlists: :as_lists)

    ExUnit.Assertions.flunk("""
    the property does not hold for #{counterexample}

    #{explain(outcome(property, value), Process.get(__MODULE__))}
    """)
  end

  # Caught here, because PropEr 1.2 itself fails on an exception from OTP 24 on: it asks for the
  # stack trace with a function that is gone.
  defp outcome(property, value) do
    case property.(value) do
      true -> :holds
      other -> {:returned, other}
    end
  catch
    kind, reason -> {:raised, Exception.format(kind, reason, __STACKTRACE__)}
  end

  defp explain(:holds, broken) do
    "It held when tried once more: it depends on more than the value. Before: " <>
      explain(broken.outcome) <> at_first(broken.outcome, broken)
  end

  defp explain(outcome, broken), do: explain(outcome) <> at_first(outcome, broken)

  defp at_first(outcome, %{first: outcome}), do: ""
  defp at_first(_, broken), do: "\nAt first, with another value: " <> explain(broken.first)

  defp explain({:returned, other}), do: "It returned #{inspect(other)} instead of true."
  defp explain({:raised, text}), do: text
end
