defmodule Tame.Load.Requests do
  @moduledoc """
  What became of the requests of a client: counts, times, and both by interval. Pure.

  A time is from the planned start to the answer. A request that was never answered counts with as long as it had waited when it
  was given up: a server that answers only some requests must not look fast. One whose connection was lost, or that was answered
  by something else than 200 or 503, counts as failed and has no time.
  """

  alias Tame.Load.Client
  alias Tame.Stats

  @typedoc "`sent` is answered + refused + failed; unanswered ones are among the failed."
  @type counts :: %{
          planned: non_neg_integer(),
          sent: non_neg_integer(),
          answered: non_neg_integer(),
          refused: non_neg_integer(),
          failed: non_neg_integer(),
          unanswered: non_neg_integer()
        }

  @doc "How many came to what."
  @spec counts([Client.request()]) :: counts()
  def counts(requests) do
    of = Enum.frequencies_by(requests, & &1.status)
    count = fn status -> Map.get(of, status, 0) end
    planned = length(requests)

    %{
      planned: planned,
      sent: planned - count.(:unsent),
      answered: count.(:answered),
      refused: count.(:refused),
      failed: count.(:failed) + count.(:unanswered),
      unanswered: count.(:unanswered)
    }
  end

  @doc """
  Why there is no figure, where a server answered nothing.

      iex> Tame.Load.Requests.none_answered(800)
      "none of 800 requests for hello was answered"
  """
  @spec none_answered(non_neg_integer()) :: String.t()
  def none_answered(count), do: "none of #{count} requests for hello was answered"

  @doc """
  The time of a request in µs, given up at `end_ns`; nil of one that was refused or has failed.

      iex> request = %{planned_ns: 1_000, sent_ns: 2_000, done_ns: 5_000, status: :answered}
      iex> Tame.Load.Requests.us(request, 9_000)
      4.0
      iex> Tame.Load.Requests.us(%{request | status: :unanswered, done_ns: nil}, 9_000)
      8.0
  """
  @spec us(map(), integer()) :: nil | float()
  def us(%{status: :answered} = request, _end_ns),
    do: (request.done_ns - request.planned_ns) / 1000

  def us(%{status: status} = request, end_ns) when status in [:unanswered, :unsent],
    do: max(0, end_ns - request.planned_ns) / 1000

  def us(_request, _end_ns), do: nil

  @doc "p50, p99, p99.9 and the greatest of some times in µs; nil of none."
  @spec quantiles([float()]) :: %{
          p50: nil | float(),
          p99: nil | float(),
          p999: nil | float(),
          max: nil | float()
        }
  def quantiles(times) do
    %{
      p50: Stats.percentile(times, 50),
      p99: Stats.percentile(times, 99),
      p999: Stats.percentile(times, 99.9),
      max: Enum.max(times, fn -> nil end)
    }
  end

  @doc "When a client gave up what was not answered, from its own start: after its last planned start."
  @spec end_ns([Client.request()], non_neg_integer()) :: non_neg_integer()
  def end_ns(requests, wait_ms), do: List.last(requests).planned_ns + wait_ms * 1_000_000

  @doc """
  How late the client itself was, in µs, at p99: of requests for which a stream was free when they were planned.
  """
  @spec own_late_us([Client.request()]) :: nil | float()
  def own_late_us(requests) do
    Stats.percentile(
      for(
        %{at_once: true, sent_ns: ns} = r when is_integer(ns) <- requests,
        do: (ns - r.planned_ns) / 1000
      ),
      99
    )
  end

  @doc """
  By interval of that number of ns from `from_ns` on, until `to_ns`: answers that came in it a second, and times of what was planned in it.
  Moments are from the client's start.
  """
  @spec intervals([Client.request()], integer(), integer(), pos_integer(), integer()) :: [map()]
  def intervals(requests, from_ns, to_ns, every_ns, end_ns) do
    place = fn ns -> div(ns - from_ns, every_ns) end
    inside? = fn ns -> ns != nil and ns >= from_ns and ns < to_ns end

    planned =
      for(r <- requests, inside?.(r.planned_ns), us = us(r, end_ns), do: {place.(r.planned_ns), us})
      |> Enum.group_by(&elem(&1, 0), &elem(&1, 1))

    done = fn status ->
      for(r <- requests, r.status == status, inside?.(r.done_ns), do: place.(r.done_ns))
      |> Enum.frequencies()
    end

    {answered, refused} = {done.(:answered), done.(:refused)}
    per_s = fn count -> Float.round(count * 1.0e9 / every_ns, 1) end

    for i <- 0..(ceil((to_ns - from_ns) / every_ns) - 1)//1 do
      Map.merge(quantiles(Map.get(planned, i, [])), %{
        from_ns: from_ns + i * every_ns,
        answered_per_s: per_s.(Map.get(answered, i, 0)),
        refused_per_s: per_s.(Map.get(refused, i, 0))
      })
    end
  end
end
