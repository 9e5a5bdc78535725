defmodule Tame.RingSizeTest do
  use ExUnit.Case, async: true

  alias Tame.Test.RingTerms

  test "no term is said to be larger than it is" do
    for {name, term} <- RingTerms.all() do
      assert {name, true} ==
               {name, :tame_ring_size.is_within(term, byte_size(:erlang.term_to_binary(term)))}
    end
  end

  test "what a term has at least is counted wherever it is" do
    binary = :binary.copy("a", 1000)
    alike = List.duplicate(binary, 1000)

    for term <- [alike, [1 | binary], List.to_tuple(alike), %{1 => alike}, %{alike => 1}] do
      bytes = if is_list(term) and is_binary(tl(term)), do: 1000, else: 1_000_000
      assert :tame_ring_size.is_within(term, bytes + 2)
      refute :tame_ring_size.is_within(term, bytes - 1)
    end
  end

  test "nobody looks further than it takes" do
    shared = Enum.reduce(1..60, 1, fn _, term -> {term, term} end)
    refute :tame_ring_size.is_within(shared, 100_000)
    refute :tame_ring_size.is_within([%{shared => shared}], 100_000)
  end
end
