defmodule Tame.Isolation.Crashes do
  @moduledoc "Crashes of a host, measured by `:tame_crashes` in a VM of its own."

  alias Tame.Isolation.There

  @typedoc """
  One crash. Times in ms from the crashing call on: when it raised `:error` (the signal's name), and when the next call was
  answered. `:calls` are `[ms, count]`: calls of another process that were answered in that millisecond.
  """
  @type crash :: %{
          error: String.t(),
          raised_ms: float(),
          answered_ms: float(),
          others_failed: non_neg_integer(),
          calls: [[integer()]]
        }

  @type result :: %{status: String.t(), reason: nil | String.t(), crashes: [crash()]}

  # After a second up, a crash is a first one: tame_backoff.
  @pause_ms 1050

  @doc "Lets a host crash that often."
  @spec measure(pos_integer()) :: result()
  def measure(count) do
    within_ms = 60_000 + 3 * count * @pause_ms

    There.run(:tame_crash, within_ms, fn call ->
      call.(:tame_crashes, :run, [%{crashes: count, pause_ms: @pause_ms}])
    end)
    |> case do
      {:ok, crashes} -> %{status: "ok", reason: nil, crashes: Enum.map(crashes, &crash/1)}
      {:error, why} -> %{status: "failed", reason: why, crashes: []}
    end
  end

  defp crash(seen) do
    %{
      error: error(seen.error),
      raised_ms: seen.raised_ns / 1_000_000,
      answered_ms: seen.answered_ns / 1_000_000,
      others_failed: seen.others_failed,
      calls: Enum.map(seen.calls, &Tuple.to_list/1)
    }
  end

  defp error({:tame, {:crashed, %{signal: signal}}}), do: to_string(signal)
  defp error(other), do: inspect(other, limit: 5)
end
