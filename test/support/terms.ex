defmodule Tame.Test.Terms do
  @moduledoc false
  # Terms that are hard to carry to another process and back, as the tests of the host want them: all of
  # Tame.Test.SizeClasses but the largest.

  alias Tame.Test.SizeClasses

  @most_bytes 1_100_000

  def hard, do: for({_, term} <- SizeClasses.some(@most_bytes), do: term)
  def generator, do: SizeClasses.type()
  defdelegate small, to: SizeClasses
end
