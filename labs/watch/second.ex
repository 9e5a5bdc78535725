defmodule Tame.Watch.Second do
  @moduledoc """
  The figures of one second, from the node's reading. Pure.
  """

  alias Tame.{FunctionName, Utilisation}
  alias Tame.Watch.{Blame, Facts}

  @typedoc """
  One second. Percentages are of the schedulers of a kind, `cost_percent` is of one core; nil is what could not be seen.
  `waiting` are jobs in the dirty run queues; `held` is a process that has not answered for that long.
  """
  @type t :: %{
          at_ms: non_neg_integer(),
          utilisation: %{Utilisation.kind() => float() | nil},
          dirty: %{(:cpu | :io) => %{busy: non_neg_integer(), waiting: non_neg_integer()} | nil},
          holders: [holder()],
          neighbour: %{
            wakes: non_neg_integer(),
            p50_us: number() | nil,
            p99_us: number() | nil,
            max_us: number()
          },
          long_schedules: [long()],
          long_left_out: non_neg_integer(),
          monitor: nil | String.t(),
          held: nil | %{process: String.t(), for_ms: non_neg_integer()},
          processes: non_neg_integer(),
          looked_at: nil | non_neg_integer(),
          cost_percent: float()
        }

  @type holder :: %{
          process: String.t(),
          function: String.t(),
          kind: :cpu | :io | :unknown,
          for_ms: non_neg_integer()
        }

  @type long :: %{
          nifs: [String.t()],
          from: String.t() | nil,
          count: pos_integer(),
          longest_ms: non_neg_integer(),
          process: String.t()
        }

  @kinds Utilisation.kinds()

  @doc """
  The figures of a reading. `base` are the reading before it, and the last one that had the schedulers' counters.
  """
  @spec new(map(), %{last: map(), wall: map()}, Facts.t(), Blame.t()) :: {t(), Blame.t()}
  def new(reading, base, facts, blame) do
    {long, blame} = long_schedules(reading.long, Blame.dirty(blame, reading.dirty))
    dirty = dirty(reading.wall)

    {%{
       at_ms: div(reading.at_ns - facts.began_ns, 1_000_000),
       utilisation: utilisation(reading.wall, base.wall.wall, facts),
       dirty: dirty,
       holders: Enum.map(reading.holders, &holder(&1, looked_ns(reading), dirty)),
       neighbour: neighbour(reading.ticks),
       long_schedules: long,
       long_left_out: reading.long_left_out,
       monitor: monitor(reading.monitor),
       held: held(reading.held, reading.at_ns),
       processes: reading.processes,
       looked_at: looked_at(reading.looked_at),
       cost_percent:
         100 * (reading.cost_ns - base.last.cost_ns) / max(1, reading.at_ns - base.last.at_ns)
     }, blame}
  end

  # ---- schedulers -----------------------------------------------------------------------------------

  defp utilisation(:late, _before, _facts), do: Map.new(@kinds, &{&1, nil})
  defp utilisation(_wall, :late, _facts), do: Map.new(@kinds, &{&1, nil})

  defp utilisation({_, wall, _, _}, {_, before, _, _}, facts) do
    shares =
      for {id, active, total} <- Utilisation.between(before, wall) do
        {Utilisation.kind(id, facts.schedulers, facts.dirty_cpu_schedulers), active, total}
      end

    Map.new(@kinds, fn kind ->
      of_kind = for {^kind, active, total} <- shares, do: {active, total}
      total = of_kind |> Enum.map(&elem(&1, 1)) |> Enum.sum()
      active = of_kind |> Enum.map(&elem(&1, 0)) |> Enum.sum()
      {kind, if(total > 0, do: 100 * active / total)}
    end)
  end

  # The last two of each list; those that are active wait or run.
  defp dirty(:late), do: %{cpu: nil, io: nil}

  defp dirty({_, _, queues, active}) do
    [waiting_cpu, waiting_io] = Enum.take(queues, -2)
    [active_cpu, active_io] = Enum.take(active, -2)

    %{
      cpu: %{busy: max(0, active_cpu - waiting_cpu), waiting: waiting_cpu},
      io: %{busy: max(0, active_io - waiting_io), waiting: waiting_io}
    }
  end

  # ---- processes ------------------------------------------------------------------------------------

  # While the scanner waits for a process it looks at no other.
  defp looked_ns(%{held: {_, since_ns}}), do: since_ns
  defp looked_ns(%{at_ns: at_ns}), do: at_ns

  defp holder({pid, name, function, since_ns}, now_ns, dirty) do
    %{
      process: process(pid, name),
      function: what(function),
      kind: dirty_kind(dirty),
      for_ms: div(max(0, now_ns - since_ns), 1_000_000)
    }
  end

  defp what(:garbage_collection), do: "garbage collection"
  defp what(function), do: FunctionName.text(function)

  # The VM does not say on which kind of thread a process is; when only one kind is at work it is that one.
  defp dirty_kind(%{cpu: %{busy: cpu}, io: %{busy: 0}}) when cpu > 0, do: :cpu
  defp dirty_kind(%{cpu: %{busy: 0}, io: %{busy: io}}) when io > 0, do: :io
  defp dirty_kind(_), do: :unknown

  @doc """
  A process as the node itself writes it, by its name where it has one.

      iex> Tame.Watch.Second.process(self(), :logger)
      "logger"
  """
  @spec process(pid() | port(), atom()) :: String.t()
  def process(pid, :undefined), do: pid |> inspect() |> local()
  def process(_pid, name), do: Atom.to_string(name)

  # #PID<12345.90.0> is <0.90.0> there.
  defp local(text), do: Regex.replace(~r/^#(?:PID|Port)<\d+\./, text, "<0.")

  defp held(:none, _now_ns), do: nil

  defp held({pid, since_ns}, now_ns),
    do: %{process: process(pid, :undefined), for_ms: div(now_ns - since_ns, 1_000_000)}

  defp looked_at(:none), do: nil
  defp looked_at({seen, _all}), do: seen

  defp monitor(:ok), do: nil
  defp monitor({:taken, pid, name}), do: process(pid, name)

  # ---- neighbours -----------------------------------------------------------------------------------

  @doc """
  The delays of all tickers together. A wake-up counts with the middle of its bucket.

      iex> Tame.Watch.Second.neighbour([{3, 1_300_000, [{0, 2}, {36, 1}]}])
      %{wakes: 3, p50_us: 0.5, p99_us: 1152.0, max_us: 1300.0}
  """
  @spec neighbour([{non_neg_integer(), non_neg_integer(), [{non_neg_integer(), pos_integer()}]}]) ::
          map()
  def neighbour(ticks) do
    counts = for({_, _, buckets} <- ticks, bucket <- buckets, do: bucket) |> Enum.sort()

    wakes = counts |> Enum.map(&elem(&1, 1)) |> Enum.sum()
    max_us = (ticks |> Enum.map(&elem(&1, 1)) |> Enum.max(fn -> 0 end)) / 1000

    %{
      wakes: wakes,
      p50_us: percentile(counts, wakes, 0.5, max_us),
      p99_us: percentile(counts, wakes, 0.99, max_us),
      max_us: max_us
    }
  end

  defp percentile(_counts, 0, _share, _max_us), do: nil

  defp percentile(counts, wakes, share, max_us) do
    rank = max(1, ceil(share * wakes))

    {bucket, _} =
      Enum.reduce_while(counts, {0, 0}, fn {bucket, count}, {_, before} ->
        if before + count >= rank,
          do: {:halt, {bucket, rank}},
          else: {:cont, {bucket, before + count}}
      end)

    min(max_us, (lowest_us(bucket) + lowest_us(bucket + 1)) / 2)
  end

  # As tame_watch_ticker:bucket/1 has them.
  defp lowest_us(bucket) when bucket < 4, do: bucket
  defp lowest_us(bucket), do: Bitwise.bsl(4 + rem(bucket, 4), div(bucket, 4) - 1)

  # ---- long schedules -------------------------------------------------------------------------------

  # By the NIF they were spent in, the most first.
  defp long_schedules(events, blame) do
    {rows, blame} =
      Enum.map_reduce(events, blame, fn {who, name, ms, functions}, blame ->
        {verdict, blame} = Blame.verdict(blame, functions)
        {Map.merge(verdict, %{process: process(who, name), ms: ms}), blame}
      end)

    {rows |> Enum.map(&Map.merge(&1, %{count: 1, longest_ms: &1.ms})) |> group(), blame}
  end

  @doc "Takes the blame from NIFs that were seen on a dirty thread since."
  @spec acquit(t(), MapSet.t(String.t())) :: t()
  def acquit(second, dirty) do
    rows =
      for row <- second.long_schedules, do: %{row | nifs: Enum.reject(row.nifs, &(&1 in dirty))}

    %{second | long_schedules: group(rows)}
  end

  @doc "Rows of the same NIFs and caller as one, the longest slice's process its example."
  @spec group([map()]) :: [long()]
  def group(rows) do
    rows
    |> Enum.group_by(&{&1.nifs, &1.from})
    |> Enum.map(fn {{nifs, from}, rows} ->
      longest = Enum.max_by(rows, & &1.longest_ms)

      %{
        nifs: nifs,
        from: from,
        count: rows |> Enum.map(& &1.count) |> Enum.sum(),
        longest_ms: longest.longest_ms,
        process: longest.process
      }
    end)
    |> Enum.sort_by(&{-&1.longest_ms, &1.nifs, &1.from})
  end
end
