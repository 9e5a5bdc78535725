defmodule Tame.Distributed do
  @moduledoc "How a VM that was made a node for a while stops being one."

  @node_ms 10_000

  @doc """
  Ends the distribution that `:net_kernel.start/2` began, and returns when the VM is no node any more.

  `:net_kernel.stop/0` alone returns earlier: the VM stops being a node when the last of its connections is gone, and
  a supervisor waits a second, no longer, for the processes of distribution. Who asks in between finds a node that is
  about to end.
  """
  @spec stop() :: :ok
  def stop do
    _ = :net_kernel.stop()
    await_no_node(System.monotonic_time(:millisecond) + @node_ms)
  end

  defp await_no_node(deadline) do
    cond do
      not Node.alive?() ->
        :ok

      System.monotonic_time(:millisecond) > deadline ->
        raise "distribution was stopped, and after #{@node_ms} ms the VM is still #{node()}"

      true ->
        Process.sleep(1)
        await_no_node(deadline)
    end
  end
end
