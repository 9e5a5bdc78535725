defmodule Tame.Await do
  @moduledoc """
  Waits for what nobody announces: native code that has cleaned up, an OS process that is gone, a
  process that another one was told to end. It looks every millisecond; where there is a message to
  wait for, wait for that.
  """

  @doc "Whether `condition` became true within `ms`. Returns as soon as it is."
  @spec until((() -> as_boolean(term())), integer()) :: boolean()
  def until(condition, ms \\ 120_000), do: until_at(condition, now_ms() + ms)

  defp until_at(condition, at_ms) do
    cond do
      condition.() -> true
      now_ms() > at_ms -> false
      true -> Process.sleep(1) && until_at(condition, at_ms)
    end
  end

  defp now_ms, do: System.monotonic_time(:millisecond)
end
