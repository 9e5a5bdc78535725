defmodule Tame.Contention.Figures do
  @moduledoc """
  Turns what the observers of a cell saw into its figures. Pure: every time is a number that is passed in.
  """

  import Tame.Stats, only: [percentile: 2, spread: 1]

  alias Tame.{Charge, CPU, Spans, Utilisation}

  # Below this what the observers add to a slice is a visible part of it.
  @least_used_ns 100_000

  # A sample that came later than this, as a multiple of the time between two, is a gap.
  @late_sample 1.5

  @second_ns 1_000_000_000

  # A flood lasts a second or more: enough for some twenty wake-ups of each neighbour in a part.
  @parts 5

  @doc "The figures of a cell, from `t:Tame.Contention.Cell.raw/0` and the spec that it was run by."
  @spec figures(map(), map()) :: map()
  def figures(raw, spec) do
    # A node that was killed may not even have said that the flood began; it was about to.
    started = raw.started_ns || raw.facts.monotonic_ns + spec.lead_ms * 1_000_000
    span = {started, raw.ended_ns}

    woke = fn span ->
      neighbours(raw.neighbours, raw.facts.schedulers, spec.neighbour_ms * 1_000_000, span)
    end

    neighbours = woke.(span)
    dirty_cpu = waits(raw.askers, :dirty_cpu, spec.dirty_ms * 1_000_000, span)
    dirty_io = waits(raw.askers, :dirty_io, spec.dirty_ms * 1_000_000, span)
    during = Enum.filter(raw.samples, &(&1.at_ns >= started))
    utilisation = during |> edges(raw.ended_ns) |> utilisation(raw.facts)
    # The samples have the machine's clock, and the facts say what the peer's own was at one moment.
    cpu =
      CPU.shares(raw.cpu, raw.facts.cores, started + raw.facts.machine_ns - raw.facts.monotonic_ns)

    %{
      wall_ms: max(0, raw.ended_ns - started) / 1_000_000,
      ideal_ms: ideal_ms(raw, spec),
      finished: finished(raw),
      refused: if(raw.outcome, do: raw.outcome.refused, else: 0),
      bursts: if(raw.outcome, do: raw.outcome.bursts, else: 1),
      within: span |> parts() |> Enum.map(&delays(woke.(&1))) |> within(),
      missed_seconds: neighbours.missed_seconds,
      dirty_cpu_wait_p99_us: us(percentile(dirty_cpu, 99)),
      dirty_cpu_wait_max_us: us(percentile(dirty_cpu, 100)),
      dirty_io_wait_max_us: us(percentile(dirty_io, 100)),
      gc_wait_max_us: us(gc_wait(raw.askers, span)),
      gc_own_us: us(gc_own(raw.askers, span)),
      normal_utilisation: utilisation && Tame.Stats.mean(utilisation.normal),
      dirty_cpu_utilisation: utilisation && Tame.Stats.mean(utilisation.dirty_cpu),
      dirty_io_utilisation: utilisation && Tame.Stats.mean(utilisation.dirty_io),
      other_cpu: mean_share(cpu, :other, ms(raw.ended_ns - started)),
      busy_cores: utilisation && utilisation |> Map.values() |> List.flatten() |> Enum.sum(),
      longest_slice_us: us(longest(raw.slices, :longest_ns)),
      p999_slice_us: us(longest(raw.slices, :p999_ns)),
      charge_ratio: charge_ratio(raw.slices),
      long_schedule_events: raw.long_schedules,
      memory_mb: raw.memory_bytes / 1_000_000,
      samples: samples(raw.samples, raw.facts, started, spec.sample_ms * 1_000_000),
      cpu: cpu,
      held:
        for(
          {from, to} <- neighbours.held,
          do: %{from_ms: ms(from - started), to_ms: ms(to - started)}
        )
    }
    |> Map.merge(delays(neighbours))
  end

  defp delays(%{late: late}) do
    %{
      neighbour_p50_us: us(percentile(late, 50)),
      neighbour_p99_us: us(percentile(late, 99)),
      neighbour_max_us: us(percentile(late, 100))
    }
  end

  @doc """
  The span in fifths.

      iex> Tame.Contention.Figures.parts({10, 21})
      [{10, 12}, {12, 14}, {14, 16}, {16, 18}, {18, 21}]
  """
  @spec parts(Spans.span()) :: [Spans.span()]
  def parts({from, to}) do
    at = fn part -> from + div((to - from) * part, @parts) end
    for part <- 1..@parts, do: {at.(part - 1), at.(part)}
  end

  # The least and the greatest of each figure of the parts.
  defp within([first | _] = parts) do
    for {key, _} <- first, into: %{}, do: {key, parts |> Enum.map(& &1[key]) |> spread()}
  end

  @no_raw %{
    facts: %{schedulers: 1, cores: 1, monotonic_ns: 0, machine_ns: 0},
    started_ns: 0,
    ended_ns: 0,
    outcome: nil,
    slices: nil,
    neighbours: [],
    askers: [],
    long_schedules: 0,
    samples: [],
    cpu: [],
    memory_bytes: 0
  }
  @no_spec %{lead_ms: 1, neighbour_ms: 1, dirty_ms: 1, sample_ms: 1, jobs: 0, duration_us: 0}

  @doc "What was seen of a cell of which nothing was heard."
  @spec no_raw() :: map()
  def no_raw, do: @no_raw

  @doc "The figures of a cell that was not measured: the same keys, without a value, and no samples."
  @spec none() :: map()
  def none do
    @no_raw
    |> figures(@no_spec)
    |> Map.new(fn {key, _} -> {key, nil} end)
    |> Map.merge(%{samples: [], cpu: [], held: []})
  end

  @doc """
  How late the neighbours' wake-ups were that fell into the span, in ns, each missed one counted by itself, and the
  missed seconds of the neighbour that fared worst: whole seconds of each stretch without CPU. And the stretches for
  which some neighbour waited for longer than its period.

  `wakes` are `{neighbour, planned, woke}`. A neighbour that had not woken when the span ended, or never was
  heard of, counts with its lateness so far.

      iex> ms = 1_000_000
      iex> wakes = [{:a, 0, 1}, {:a, 10 * ms, 35 * ms}]
      iex> Tame.Contention.Figures.neighbours(wakes, 1, 10 * ms, {0, 45 * ms}).late |> Enum.sort()
      [1, 5 * ms, 5 * ms, 15 * ms, 25 * ms]
  """
  @spec neighbours(
          [{term(), integer(), integer()}],
          pos_integer(),
          pos_integer(),
          {integer(), integer()}
        ) ::
          %{
            late: [non_neg_integer()],
            missed_seconds: non_neg_integer(),
            held: [Spans.span()]
          }
  def neighbours(wakes, count, period, {from, to}) do
    by_neighbour = Enum.group_by(wakes, &elem(&1, 0), fn {_, planned, woke} -> {planned, woke} end)
    silent = for n <- 1..count//1, n > map_size(by_neighbour), do: [{from, to}]

    stretches =
      for wakes <- Map.values(by_neighbour) do
        {planned, woke} = List.last(wakes)
        {_, next} = :tame_neighbour.late(planned, woke, period)
        wakes ++ if(next <= to, do: [{next, to}], else: [])
      end ++ silent

    stretches =
      for wakes <- stretches do
        for {planned, woke} <- wakes, woke >= from and planned <= to, do: {planned, woke}
      end

    late =
      for wakes <- stretches,
          {planned, woke} <- wakes,
          at <- planned..min(woke, to)//period,
          at >= from do
        woke - at
      end

    missed =
      for wakes <- stretches do
        wakes
        |> Enum.map(fn {planned, woke} -> div(woke - max(planned, from), @second_ns) end)
        |> Enum.sum()
      end

    held =
      for wakes <- stretches, {planned, woke} <- wakes, woke - planned > period, do: {planned, woke}

    %{late: late, missed_seconds: Enum.max(missed, fn -> 0 end), held: Spans.union(held)}
  end

  @doc """
  How long the asking of one kind waited in the span, in ns. Asking stops while one waits: so those that would have
  been asked meanwhile count too, each from its own moment. One that waits still counts with its wait so far.

      iex> askers = [{:dirty_cpu, :asked, 0}, {:gc, :asked, 1}, {:dirty_cpu, :got, 25}, {:dirty_cpu, :asked, 40}]
      iex> Tame.Contention.Figures.waits(askers, :dirty_cpu, 10, {0, 45})
      [25, 15, 5, 5]
  """
  @spec waits([{atom(), :asked | :got, integer()}], atom(), pos_integer(), {integer(), integer()}) ::
          [non_neg_integer()]
  def waits(askers, kind, period, {from, to} = span) do
    for {asked, got} <- asked(askers, kind, to), within?(asked, got, span) do
      for at <- asked..max(asked, min(got, to))//period,
          at >= from or at == asked,
          do: max(got - at, 0)
    end
    |> List.flatten()
  end

  # Beyond what a collection takes when nothing is in its way: the least that was seen before.
  defp gc_wait(askers, {from, to} = span) do
    {before, during} = askers |> asked(:gc, to) |> Enum.split_with(fn {_, got} -> got < from end)

    own = before |> Enum.map(fn {asked, got} -> got - asked end) |> Enum.min(fn -> 0 end)

    during
    |> Enum.filter(fn {asked, got} -> within?(asked, got, span) end)
    |> Enum.map(fn {asked, got} -> max(0, got - asked - own) end)
    |> Enum.max(fn -> nil end)
  end

  defp gc_own(askers, {from, to}) do
    for({asked, got} <- asked(askers, :gc, to), got < from, do: got - asked)
    |> Enum.min(fn -> nil end)
  end

  defp within?(asked, got, {from, to}), do: got >= from and asked <= to

  # Pairs of when it was asked and when it was got, the last one got at `to` unless it was.
  defp asked(askers, kind, to) do
    askers
    |> Enum.filter(&(elem(&1, 0) == kind))
    |> Enum.map(fn {_, what, ns} -> {what, ns} end)
    |> pairs(to)
  end

  defp pairs([{:asked, asked}, {:got, got} | rest], to), do: [{asked, got} | pairs(rest, to)]
  defp pairs([{:asked, asked}], to), do: [{asked, max(asked, to)}]
  defp pairs([{:got, _} | rest], to), do: pairs(rest, to)
  defp pairs([], _to), do: []

  @doc """
  How busy each scheduler was between two samples, from 0 to 1, by kind.
  """
  @spec utilisation({map(), map()} | nil, map()) ::
          nil | %{normal: [float()], dirty_cpu: [float()], dirty_io: [float()]}
  def utilisation(nil, _facts), do: nil

  def utilisation({%{wall: before}, %{wall: later}}, facts) do
    shares =
      for {id, active, total} <- Utilisation.between(before, later) do
        kind = Utilisation.kind(id, facts.all_schedulers, facts.dirty_cpu_schedulers)
        {kind, id, if(total == 0, do: 0.0, else: min(active / total, 1.0))}
      end

    # A scheduler that is not online does nothing.
    %{
      normal: for({:normal, id, share} <- shares, id <= facts.schedulers, do: share),
      dirty_cpu: for({:dirty_cpu, _, share} <- shares, do: share),
      dirty_io: for({:dirty_io, _, share} <- shares, do: share)
    }
  end

  # The samples at the start and the end of the flood; one is taken for each.
  defp edges([first | _] = during, ended_ns) do
    case Enum.find(tl(during), &(&1.at_ns >= ended_ns)) || List.last(during) do
      ^first -> nil
      last -> {first, last}
    end
  end

  defp edges([], _ended_ns), do: nil

  @doc """
  The samples as a picture is drawn from them: each with how busy the schedulers were since the one before it.
  One that came late is a `gap`: what happened meanwhile is not known, so it has no utilisation.
  """
  @spec samples([map()], map(), integer(), pos_integer()) :: [map()]
  def samples(samples, facts, started, period) do
    for [before, later] <- Enum.chunk_every(samples, 2, 1, :discard) do
      gap? = later.at_ns - before.at_ns > @late_sample * period
      {queues, [dirty_cpu_queue, dirty_io_queue]} = Enum.split(later.queues, -2)

      %{
        at_ms: ms(later.at_ns - started),
        since_ms: ms(before.at_ns - started),
        gap: gap?,
        utilisation: if(gap?, do: nil, else: rounded(utilisation({before, later}, facts))),
        run_queues: queues,
        dirty_cpu_queue: dirty_cpu_queue,
        dirty_io_queue: dirty_io_queue,
        finished: later.finished
      }
    end
  end

  defp rounded(utilisation) do
    Map.new(utilisation, fn {kind, shares} -> {kind, Enum.map(shares, &Float.round(&1 / 1, 3))} end)
  end

  # Of the stretches within the flood, by their length.
  defp mean_share(cpu, kind, ended_ms) do
    during =
      for s <- cpu, s.since_ms >= 0 and s.at_ms <= ended_ms, do: {s.at_ms - s.since_ms, s[kind]}

    case Enum.sum(for {length, _} <- during, do: length) do
      none when none == 0 -> nil
      all -> Enum.sum(for {length, share} <- during, do: length * share) / all
    end
  end

  defp ideal_ms(raw, spec) do
    bursts = if raw.outcome, do: raw.outcome.bursts, else: 1
    at_once = min(raw.facts.schedulers, raw.facts.cores)
    bursts * spec.jobs * spec.duration_us / 1000 / at_once
  end

  defp finished(%{outcome: %{finished: finished}}), do: finished
  defp finished(%{samples: []}), do: 0
  defp finished(%{samples: samples}), do: List.last(samples).finished

  defp longest(nil, _key), do: nil
  defp longest(slices, key), do: slices |> Enum.map(& &1[key]) |> Enum.max(fn -> nil end)

  defp charge_ratio(nil), do: nil

  defp charge_ratio(slices) do
    known = Enum.filter(slices, &is_integer(&1.reductions))
    used_ns = known |> Enum.map(& &1.total_ns) |> Enum.sum()
    dirty_ns = known |> Enum.map(& &1.dirty_ns) |> Enum.sum()
    charged = known |> Enum.map(& &1.reductions) |> Enum.sum()

    Charge.ratio(charged, used_ns, dirty_ns, @least_used_ns)
  end

  defp us(nil), do: nil
  defp us(ns), do: ns / 1000

  defp ms(ns), do: Float.round(ns / 1_000_000, 1)
end
