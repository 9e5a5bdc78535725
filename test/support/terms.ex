defmodule Tame.Test.Terms do
  @moduledoc false
  # Terms that are hard to carry to another process and back, as the tests of the host want them: of
  # Tame.Test.SizeClasses.

  alias Tame.Test.SizeClasses

  # Some tests make many copies of each and print them.
  @most_bytes 9000

  # What a host takes as a name of its own node in an earlier life differs from what the VM does.
  def hard(most_bytes \\ @most_bytes) do
    for {name, term} <- SizeClasses.all(),
        elem(name, 0) != :earlier,
        elem(name, 0) == :deep or :erlang.external_size(term) <= most_bytes,
        do: term
  end

  def generator, do: SizeClasses.type()
  defdelegate small, to: SizeClasses
end
