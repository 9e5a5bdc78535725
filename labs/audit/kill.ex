defmodule Tame.Audit.Kill do
  @moduledoc """
  Whether work goes on when its caller is killed half-way (`tame_audit:kill/2`).
  """

  alias Tame.Audit.Point

  # From here on a call is long enough to be killed half-way: a job of tame.h on a dirty scheduler looks at its caller each 5 ms.
  @killable_us 20_000

  # Several times; of what comes of them the least counts, because others on the machine can only make an end later.
  @kills 3

  # They can make the kill later, too, and the measured call longer than the killed one; what is half over by then says
  # nothing of the rest. So there are more tries, each of these after half the time.
  @tries 12

  # CPU time is counted in portions of some milliseconds.
  @cpu_ns 25_000_000

  @typedoc "How long a call takes, when its caller was killed, and how long after that its work went on."
  @type t :: %{
          call_us: number(),
          after_us: number(),
          stopped_us: number(),
          bytes: pos_integer()
        }

  @doc """
  Has that many callers killed in calls of the size of `point` by `kill`, which takes what to do and asks the peer; its
  error is the answer. `:short` says why nobody was killed.
  """
  @spec look(Point.t(), pos_integer(), (map() -> {:ok, map() | :over} | {:error, term()})) ::
          {:ok, t()} | {:short, String.t()} | {:error, term()}
  def look(%{elapsed_us: us}, _callers, _kill) when us < @killable_us,
    do: {:short, "no call took #{div(@killable_us, 1000)} ms, so killed callers were not tried"}

  def look(%{elapsed_us: us, bytes: bytes, slice_kind: kind}, callers, kill) do
    after_ms = trunc(us / 4000) |> max(1) |> min(100)
    ask = fn after_ms -> kill.(%{after_ms: after_ms, callers: callers}) end

    case half_way(ask, after_ms, %{us: us, kind: kind}, [], @tries) do
      {:ok, seen} ->
        {after_us, stopped_us} =
          Enum.min_by(seen, fn {after_us, stopped} -> stopped / (us - after_us) end)

        {:ok, %{call_us: us, after_us: after_us, stopped_us: stopped_us, bytes: bytes}}

      error ->
        error
    end
  end

  defp half_way(_ask, _after_ms, _call, seen, _tries) when length(seen) == @kills, do: {:ok, seen}

  defp half_way(_ask, _after_ms, _call, _seen, 0),
    do: {:error, "the call was half over at most of #{@tries} kills"}

  defp half_way(ask, after_ms, %{us: us, kind: kind} = call, seen, tries) do
    case ask.(after_ms) do
      {:ok, %{after_ns: after_ns} = killed} when after_ns / 1000 <= us / 2 ->
        seen = [{after_ns / 1000, ended_us(killed, kind)} | seen]
        half_way(ask, after_ms, call, seen, tries - 1)

      {:ok, _late_or_over} ->
        half_way(ask, max(div(after_ms, 2), 1), call, seen, tries - 1)

      error ->
        error
    end
  end

  # Whether a dirty thread is free says nothing of a call that is on none.
  defp ended_us(%{down_ns: down, dirty_ns: dirty, cpu_ns: cpu}, kind) do
    Enum.max([down, if(kind == :dirty, do: dirty, else: 0), if(cpu > @cpu_ns, do: cpu, else: 0)]) /
      1000
  end
end
