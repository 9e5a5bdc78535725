defmodule Tame.FakeExor do
  @moduledoc """
  Stand-ins for the variants of the reductions lab, each with one way to behave or misbehave.
  """

  def variants(names), do: for(name <- names, do: variant(name))

  def variant(name), do: %{id: Atom.to_string(name), mfa: {__MODULE__, name}, about: "a stand-in"}

  def good(a, b), do: :tame_exor_classic.exor_loop(a, b)

  def other(a, b), do: :tame_exor_classic.exor_loop(a, b)

  # Right in length, wrong in one byte at the end.
  def wrong(a, b) do
    right = :tame_exor_classic.exor_loop(a, b)
    <<last>> = binary_part(right, byte_size(right), -1)
    binary_part(right, 0, byte_size(right) - 1) <> <<rem(last + 1, 256)>>
  end

  def no_binary(_a, _b), do: :ok

  def raising(_a, _b), do: raise("no memory\nfor two lines")

  def throwing(_a, _b), do: throw(:ball)

  def killed(_a, _b) do
    Process.exit(self(), :kill)
    Process.sleep(:infinity)
  end

  def halting(_a, _b), do: :erlang.halt(3)

  # Answers after ten dirty calls.
  def dirty(a, b) do
    for _ <- 1..10, do: :tame_echo_nif.echo_dirty_cpu(:x)
    :tame_exor_classic.exor_loop(a, b)
  end

  # Keeps its scheduler with honest reductions, long enough for the neighbour to want it.
  def slow(a, b) do
    spin(System.monotonic_time(:microsecond) + 21_000)
    :tame_exor_classic.exor_loop(a, b)
  end

  defp spin(until), do: if(System.monotonic_time(:microsecond) < until, do: spin(until))
end
