defmodule Tame.SlicesScenarios do
  @moduledoc """
  What a test does with the slices inside a throw-away emulator.
  """

  @doc "Watches each of `workers` processes that do nothing but dirty calls, `times` times; how many readings came back."
  def watch_dirty(workers, times) do
    pids = for _ <- 1..workers, do: spawn_link(&dirty_calls/0)

    for _ <- 1..times, pid <- pids, reduce: 0 do
      count ->
        {:ok, watch} = :tame_slices.start(pid)
        _ = :tame_slices.stop(watch)
        count + 1
    end
  end

  defp dirty_calls do
    :tame_echo_nif.echo_dirty_cpu(:x)
    dirty_calls()
  end
end
