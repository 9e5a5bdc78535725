defmodule Tame.Test.MissingMethods do
  @moduledoc false
  # Why methods of the latency lab that start another program cannot run on this machine. The helper asks before any test
  # runs, since the node methods give this VM a name and take it back, which other tests must not see.

  alias Tame.Latency.Methods

  @processes [Methods.Port, Methods.SocketUnix, Methods.SocketTCP]
  @nodes [Methods.CNode, Methods.JavaNode]

  def processes, do: @processes
  def nodes, do: @nodes

  def find, do: :persistent_term.put(__MODULE__, Map.new(@processes ++ @nodes, &{&1, why(&1)}))

  # nil: it can run.
  def why_not(module), do: Map.fetch!(:persistent_term.get(__MODULE__), module)

  # In a process of its own, as a method must.
  defp why(module) do
    open_and_close = fn ->
      case module.open() do
        {:ok, state} -> if(module.close(state) == :ok, do: nil)
        {:skip, why} -> why
      end
    end

    open_and_close |> Task.async() |> Task.await(600_000)
  end
end
