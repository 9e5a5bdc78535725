defmodule Tame.Audit.Bound do
  @moduledoc false
  # Asks a VM of its own which NIFs a module has once it is loaded, because loading an unknown library may end the VM.
  # A module that does is named, and another VM goes on with the rest.

  alias Tame.Audit.Peer

  # For a machine that is busy, with a cold disk; one that hangs takes as long.
  @load_ms 30_000

  @type answer ::
          {:ok, [{atom(), arity()}], asks_for_library? :: boolean()}
          | {:built_in, [{atom(), arity()}], [{atom(), arity(), flags :: non_neg_integer()}]}
          | :missing
          | {:error, String.t()}

  @doc "What each module says, by module. `paths` are more folders with beam files."
  @spec ask([module()], [Path.t()]) :: {:ok, %{module() => answer()}} | {:error, String.t()}
  def ask([], _paths), do: {:ok, %{}}

  def ask(modules, paths) do
    with {:ok, peer} <- Peer.start(paths), do: ask(modules, paths, peer, %{})
  end

  defp ask([], _paths, peer, answers) do
    Peer.stop(peer)
    {:ok, answers}
  end

  defp ask([module | rest], paths, peer, answers) do
    case Peer.call(peer, :tame_audit_load, :nifs, [module], @load_ms) do
      {:ok, {:ok, nifs, _} = answer} ->
        ask(rest, paths, peer, Map.put(answers, module, built_in(peer, module, nifs) || answer))

      {:ok, answer} ->
        ask(rest, paths, peer, Map.put(answers, module, answer))

      {:error, why} ->
        Peer.stop(peer)

        with {:ok, more} <- ask(rest, paths) do
          {:ok, answers |> Map.put(module, {:error, "loading it: #{why}"}) |> Map.merge(more)}
        end
    end
  end

  # The emulator has a library of that name itself, or not.
  defp built_in(_peer, _module, []), do: nil

  defp built_in(peer, module, nifs) do
    case Peer.call(peer, :tame_audit_load, :built_in, [module], @load_ms) do
      {:ok, [_ | _] = table} -> {:built_in, nifs, table}
      _ -> nil
    end
  end
end
