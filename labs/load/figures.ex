defmodule Tame.Load.Figures do
  @moduledoc """
  What was seen in a cell -> its figures. Pure.

  Times of `/hello` are of what was planned while jobs were asked for; rates and CPU are of the same window. Moments are in ms from
  the first job on.
  """

  alias Tame.{CPU, Utilisation}
  alias Tame.Load.{Cell, Requests, Threads}

  @interval_ms 250

  # A job that is asked for at the end may still be under way then, without any queue.
  @in_time_ms 250

  @doc "The length of an interval."
  @spec interval_ms() :: pos_integer()
  def interval_ms, do: @interval_ms

  @doc "The figures of a cell. `bound_us` is how late hello may be before it counts as not back to normal."
  @spec figures(Cell.raw(), Cell.spec(), pos_integer()) :: map()
  def figures(raw, spec, bound_us) do
    hello = raw.hello.requests
    hello_end = Requests.end_ns(hello, spec.wait_ms)
    {from, to} = {spec.lead_ms * 1_000_000, (spec.lead_ms + spec.for_ms) * 1_000_000}
    during = Enum.filter(hello, &(&1.planned_ns >= from and &1.planned_ns < to))
    times = for r <- during, us = Requests.us(r, hello_end), do: us
    before = for r <- hello, r.planned_ns < from, us = Requests.us(r, hello_end), do: us
    {first, last} = raw.threads
    served = in_window(hello, from, to) + job_answers(raw.jobs, spec)

    %{
      calm_p99_us: Requests.quantiles(before).p99,
      recovered_ms: recovered_ms(hello, to, hello_end, bound_us),
      client_late_p99_us: late(raw),
      client_cores: client_cores(raw, spec),
      server_us_per_request: total(Threads.us_per_request(first, last, served)),
      us_per_request: Threads.us_per_request(first, last, served),
      cores: cores(first, last),
      counts_agree?: agree?(raw),
      died: raw.died,
      intervals: intervals(raw, spec, hello_end),
      cpu: CPU.shares(raw.cpu, raw.facts.cores, raw.jobs_start_ns),
      utilisation: utilisation(raw)
    }
    |> Map.merge(prefixed("hello", Requests.quantiles(times), Requests.counts(hello)))
    |> Map.merge(jobs(raw.jobs, spec))
  end

  @doc "The figures of a cell that could not be run: the same keys, without values."
  @spec none() :: map()
  def none do
    times = %{p50: nil, p99: nil, p999: nil, max: nil}
    counts = Map.new(Requests.counts([]), fn {key, _} -> {key, 0} end)

    ~w(calm_p99_us recovered_ms client_late_p99_us client_cores server_us_per_request us_per_request cores job_answered_per_s job_in_time died)a
    |> Map.new(&{&1, nil})
    |> Map.merge(prefixed("hello", times, counts))
    |> Map.merge(prefixed("job", times, counts))
    |> Map.merge(%{counts_agree?: true, intervals: [], cpu: [], utilisation: []})
  end

  defp prefixed(name, times, counts) do
    times = for {key, us} <- times, do: {:"#{name}_#{key}_us", us}
    counts = for {key, count} <- counts, do: {:"#{name}_#{key}", count}
    Map.new(times ++ counts)
  end

  defp jobs(nil, _spec) do
    Map.take(none(), for({key, _} <- none(), String.starts_with?(to_string(key), "job_"), do: key))
  end

  defp jobs(%{requests: requests}, spec) do
    end_ns = Requests.end_ns(requests, spec.wait_ms)
    times = for r <- requests, us = Requests.us(r, end_ns), do: us
    answered = in_window(requests, 0, spec.for_ms * 1_000_000)

    "job"
    |> prefixed(Requests.quantiles(times), Requests.counts(requests))
    |> Map.merge(%{
      job_answered_per_s: 1000 * answered / spec.for_ms,
      job_in_time:
        in_window(requests, 0, (spec.for_ms + @in_time_ms) * 1_000_000) / length(requests)
    })
  end

  defp job_answers(nil, _spec), do: 0
  defp job_answers(jobs, spec), do: in_window(jobs.requests, 0, spec.for_ms * 1_000_000)

  defp in_window(requests, from, to) do
    Enum.count(requests, &(&1.status == :answered and &1.done_ns >= from and &1.done_ns < to))
  end

  # After the last request that was late, of those planned since the jobs' end or still under way then. nil when that is not over.
  defp recovered_ms(hello, jobs_end, end_ns, bound_us) do
    late =
      for r <- hello, us = Requests.us(r, end_ns), us > bound_us, do: {r, r.planned_ns + us * 1000}

    over = for {_, ns} <- late, ns > jobs_end, do: ns

    cond do
      Enum.any?(late, fn {r, _} -> r.status != :answered and r.planned_ns >= jobs_end end) -> nil
      over == [] -> 0.0
      Enum.max(over) > List.last(hello).planned_ns + 1000 * bound_us -> nil
      true -> (Enum.max(over) - jobs_end) / 1_000_000
    end
  end

  defp late(raw) do
    [raw.hello | List.wrap(raw.jobs)]
    |> Enum.map(&Requests.own_late_us(&1.requests))
    |> Enum.reject(&is_nil/1)
    |> Enum.max(fn -> nil end)
  end

  # Of both clients, while both were there.
  defp client_cores(raw, spec) do
    all_ms = spec.lead_ms + spec.for_ms + spec.tail_ms
    jobs = if raw.jobs, do: raw.jobs.cpu_ns / (spec.for_ms * 1_000_000), else: 0
    raw.hello.cpu_ns / (all_ms * 1_000_000) + jobs
  end

  defp total(nil), do: nil
  defp total(kinds), do: kinds |> Map.values() |> Enum.sum()

  defp cores(first, last) when first == nil or last == nil, do: nil

  defp cores(first, last) do
    for kind <- Threads.kinds(),
        into: %{},
        do: {kind, max(0, last.ns[kind] - first.ns[kind]) / max(1, last.at_ns - first.at_ns)}
  end

  # A client gives up, and closes its connections, while the server is still at work: so what the server has seen lies between
  # what the clients know to be so and what they sent. Where nothing was given up, both are the same.
  defp agree?(%{died: died, counts: counts}) when died != nil or counts == nil, do: true

  defp agree?(%{counts: counts} = raw) do
    # One that does not count says nothing.
    counts |> Map.values() |> Enum.sum() == 0 or
      (agree?(raw.hello, counts.hello_came, counts.hello_answered, 0) and
         agree?(raw.jobs, counts.job_came, counts.job_answered, counts.job_refused))
  end

  defp agree?(nil, came, _answered, _refused), do: came == 0

  defp agree?(%{requests: requests}, came, answered, refused) do
    seen = Requests.counts(requests)

    seen.sent == seen.answered + seen.refused + seen.failed and
      came in seen.answered..seen.sent//1 and
      answered in seen.answered..(seen.answered + seen.failed)//1 and
      refused in seen.refused..(seen.refused + seen.failed)//1 and
      answered + refused <= came
  end

  # ---- over time ---------------------------------------------------------------------------------

  defp intervals(raw, spec, hello_end) do
    every = @interval_ms * 1_000_000
    lead = spec.lead_ms * 1_000_000
    last = lead + (spec.for_ms + spec.tail_ms) * 1_000_000
    hello = Requests.intervals(raw.hello.requests, 0, last, every, hello_end)

    jobs =
      if raw.jobs do
        end_ns = Requests.end_ns(raw.jobs.requests, spec.wait_ms)
        Requests.intervals(raw.jobs.requests, -lead, last - lead, every, end_ns)
      else
        Enum.map(hello, &%{&1 | answered_per_s: 0.0, refused_per_s: 0.0})
      end

    for {hello, jobs} <- Enum.zip(hello, jobs) do
      %{
        since_ms: div(hello.from_ns - lead, 1_000_000),
        at_ms: div(hello.from_ns - lead, 1_000_000) + @interval_ms,
        hello_per_s: hello.answered_per_s,
        hello_p50_us: hello.p50,
        hello_p99_us: hello.p99,
        hello_p999_us: hello.p999,
        hello_max_us: hello.max,
        jobs_per_s: jobs.answered_per_s,
        refused_per_s: jobs.refused_per_s
      }
    end
  end

  # Between two samples of the VM's own. One that came late was waited for: a scheduler was held meanwhile.
  defp utilisation(raw) do
    for [before, later] <- Enum.chunk_every(raw.samples, 2, 1, :discard) do
      passed = (later.at_ns - before.at_ns) / 1_000_000
      kinds = kinds(Utilisation.between(before.wall, later.wall), raw.facts)

      %{
        since_ms: Float.round((before.at_ns - raw.jobs_start_ns) / 1_000_000, 1),
        at_ms: Float.round((later.at_ns - raw.jobs_start_ns) / 1_000_000, 1),
        normal: kinds.normal,
        dirty: kinds.dirty_cpu,
        queued: later.queued,
        late: passed > 2 * Cell.sample_ms()
      }
    end
  end

  defp kinds(walls, facts) do
    by_kind =
      Enum.group_by(walls, fn {id, _, _} ->
        Utilisation.kind(id, facts.all_schedulers, facts.dirty_cpu_schedulers)
      end)

    for kind <- [:normal, :dirty_cpu], into: %{} do
      {kind, share(Map.get(by_kind, kind, []))}
    end
  end

  defp share(walls) do
    {active, total} =
      Enum.reduce(walls, {0, 0}, fn {_, active, total}, {a, t} -> {a + active, t + total} end)

    if total > 0, do: Float.round(active / total, 3), else: 0.0
  end
end
