defmodule Tame.TTY.Test.Property do
  @moduledoc "A property of PropEr, as an assertion."

  import ExUnit.Assertions

  def check(type, fun, options \\ []) do
    property = :proper.forall(type, fn value -> fun.(value) == true end)
    options = [:quiet, :long_result, {:numtests, options[:numtests] || 200}, {:max_size, 60}]

    case :proper.quickcheck(property, options) do
      true -> :ok
      counterexample -> flunk("it does not hold for #{inspect(counterexample, limit: 200)}")
    end
  end
end
