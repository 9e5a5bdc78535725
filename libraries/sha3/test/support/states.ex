defmodule Tame.SHA3.Test.States do
  @moduledoc false
  # What a VM other than that of the tests does with states.

  # What each function says of a state that is none here.
  def refusals(state) do
    for {name, arguments} <- [
          update: [state, "more"],
          final: [state],
          final: [state, 32],
          clone: [state]
        ] do
      try do
        apply(:tame_sha3, name, arguments)
      rescue
        error in ArgumentError -> error.message
      end
    end
  end

  # Twice: the first code is gone by then.
  def survives_reload do
    state = :tame_sha3.update(:tame_sha3.init(:sha3_256), "before ")
    reload()
    clone = :tame_sha3.clone(state)
    reload()
    true = :tame_sha3.final(state) == :crypto.hash(:sha3_256, "before ")
    :tame_sha3.final(:tame_sha3.update(clone, "after"))
  end

  defp reload do
    true = :code.soft_purge(:tame_sha3)
    {:module, :tame_sha3} = :code.load_file(:tame_sha3)
  end
end
