defmodule Tame.ControlScenarios do
  @moduledoc """
  What a test feeds into the reader of the control port in a throw-away emulator, whose atoms and memory are counted.
  """

  alias Tame.Test.{ControlFrames, ExternalForms, SizeClasses}

  @doc """
  Hostile external forms: what came of each, `{name, kind}`. The seeds of right messages that were not read as they are.
  How many atoms were made meanwhile.
  """
  def hostile do
    forms = ExternalForms.hostile()
    _ = Enum.map(forms, fn {_, bytes} -> read(ControlFrames.framed_bytes(bytes)) end)
    atoms = :erlang.system_info(:atom_count)

    kinds = for {name, bytes} <- forms, do: {name, elem(read(ControlFrames.framed_bytes(bytes)), 0)}

    wrong =
      for seed <- 1..5000,
          term = SizeClasses.random(seed, 2000),
          frame = ControlFrames.framed({:send, self(), term, []}),
          not match?({:ok, [{:send, _, ^term, [], _}], _}, read(frame)),
          do: seed

    {kinds, wrong, :erlang.system_info(:atom_count) - atoms}
  end

  @doc "A million frames with mistakes: what was seen, how many atoms were made, and by how much memory grew."
  def million(seed) do
    corpus = ControlFrames.corpus(2)
    new = fn -> :tame_control.new() end
    feed = fn data, reader -> :tame_control.feed(data, reader) end
    _ = ControlFrames.play(new, feed, seed, 10_000, corpus)
    :erlang.garbage_collect()
    # Memory first: to ask for it makes atoms.
    memory = :erlang.memory(:total)
    atoms = :erlang.system_info(:atom_count)
    seen = ControlFrames.play(new, feed, seed + 1, 1_000_000, corpus)
    :erlang.garbage_collect()
    atoms = :erlang.system_info(:atom_count) - atoms
    {seen, atoms, :erlang.memory(:total) - memory}
  end

  defp read(data), do: :tame_control.feed(data, :tame_control.new())
end
