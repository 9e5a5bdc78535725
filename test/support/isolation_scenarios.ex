defmodule Tame.IsolationScenarios do
  @moduledoc "What a test does with isolated libraries, in a throw-away emulator."

  alias Tame.IsolationCalls

  @doc """
  Makes the calls in the VM, isolates, makes them again, restores, makes them a third time. Returns how many
  there were and those that came to something else, at most three.
  """
  def compare(library, count, seed) do
    {:ok, _} = Application.ensure_all_started(:tame)
    modules = IsolationCalls.libraries()[library]
    Enum.each(modules, &({:module, _} = Code.ensure_loaded(&1)))
    calls = IsolationCalls.calls(library, count, seed)
    in_vm = Enum.map(calls, &outcome/1)

    for module <- modules, do: :ok = :tame.isolate(module)
    isolated = Enum.map(calls, &outcome/1)

    served =
      :tame.info()
      |> Map.values()
      |> Enum.flat_map(& &1.hosts)
      |> Enum.map(& &1.ring.calls)
      |> Enum.sum()

    for module <- modules, do: :ok = :tame.restore(module)
    restored = Enum.map(calls, &outcome/1)

    %{
      count: count,
      served: served,
      isolated: differences(in_vm, isolated),
      restored: differences(in_vm, restored)
    }
  end

  # Funs and references made anew by each call are equal to nothing else.
  defp outcome(call), do: IsolationCalls.outcome(call)

  defp differences(expected, got) do
    Enum.zip(expected, got) |> Enum.reject(fn {a, b} -> a === b end) |> Enum.take(3)
  end
end
