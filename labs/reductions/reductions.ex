defmodule Tame.Reductions do
  @moduledoc """
  The reductions lab: what does the same native work, the exclusive or of two large binaries, do to its scheduler and
  to its neighbour there, in each way of running it?

      iex> Tame.Reductions.compare(268_435_456)

  prints a table. `measure/2` returns the same as data, from which the table, the JSON and the report are made. The
  ways are `Tame.Reductions.Variants`.

  The words of the table:

    * *slice* - a stretch of time in which the calling process had a scheduler thread to itself, read
      from outside by trace (`:tame_slices`); *longest* and *p99.9* are those on normal schedulers, the
      ones on dirty schedulers have a column of their own
    * *reductions* - what the VM charged the calling process
    * *charged ÷ used* - reductions ÷ 4000 per ms of slices on normal schedulers: 1 is honest, 0 is free of charge,
      more than 1 is generous; there is none where less than 100 µs were used there, or more on dirty schedulers,
      because the VM keeps one account for both
    * *neighbour* - how late a process on the same scheduler woke that wanted to wake every
      millisecond, counted from the planned moment (`:tame_neighbour`)

    * *fresh pages*, *pages at hand* - the first and the second call in a VM: the memory of the first one's output comes
      from the operating system, page by page, and the VM may have kept it for the second one. *Page faults* say how many
      pages had to be found during the call, in the whole VM and in the thread of the call's scheduler

  Each turn of a variant is a VM of its own, and each round has an order of its own, drawn from a seed: so neither the
  order nor who else is measured has a part in the figures. Times and counts are the median of the rounds; what is
  called longest, p99.9, p99 or max is that of all rounds together. The *spread* of a figure is its least and its greatest
  round: that is the noise, and medians that lie further apart than that are different (`Tame.Stats.agree?/2`).

  ## What it cannot see

  What a thread of the library's own does: its time is no slice, and takes a core from another thread. Dirty CPU and
  dirty I/O schedulers cannot be told apart by trace, and a large garbage collection counts as a dirty slice.
  """

  import Tame.Stats, only: [median: 1]

  alias Tame.Reductions.{Bursts, Format, Input, Runner, Turn, Variants}
  alias Tame.{Charge, OtherLoad, Stats, SystemInfo, Turns, Warning}

  @typedoc """
  One variant's row: its figures with pages at hand, and as `:fresh` those on fresh pages; `nil` where it was not
  measured, and the `:id`, `:about`, `:status` and `:reason` of it.
  """
  @type row :: %{
          required(:id) => String.t(),
          required(:about) => String.t(),
          required(:status) => String.t(),
          required(:reason) => nil | String.t(),
          required(:fresh) => figures(),
          optional(atom()) => term()
        }

  @typedoc "The figures of one state of the memory. `:spread` has the least and the greatest round of each."
  @type figures :: %{
          elapsed_us: nil | float(),
          page_faults: nil | non_neg_integer(),
          scheduler_page_faults: nil | non_neg_integer(),
          gb_per_s: nil | float(),
          slices: nil | non_neg_integer(),
          longest_slice_us: nil | float(),
          p999_slice_us: nil | float(),
          dirty_slices: nil | non_neg_integer(),
          longest_dirty_slice_us: nil | float(),
          reductions: nil | non_neg_integer(),
          charge_ratio: nil | float(),
          neighbour_wake_ups: non_neg_integer(),
          neighbour_p99_us: nil | float(),
          neighbour_max_us: nil | float(),
          picture: [slice()],
          left_out: non_neg_integer(),
          spread: %{atom() => nil | Stats.spread()}
        }

  @typedoc "A slice of the run that had the longest one, in order of time."
  @type slice :: %{start_us: float(), us: float(), kind: String.t()}

  @type result :: %{
          tool: String.t(),
          format: pos_integer(),
          system: SystemInfo.t(),
          warnings: [Warning.t()],
          bytes: pos_integer(),
          rounds: pos_integer(),
          seed: Turns.seed(),
          command: String.t(),
          floor: Turn.floor(),
          variants: [row()],
          bursts: [Bursts.row()]
        }

  @typedoc """
  How to measure:

    * `:variants` - what to measure (default: all of `Tame.Reductions.Variants.all/0`)
    * `:rounds` - turns of each variant (default: 5)
    * `:bursts` - bursts of jobs of each variant, for the picture (`Tame.Reductions.Bursts`; default: 0)
    * `:seed` - of the order in each round (default: a new one)
    * `:command` - the command line, for the record (default: `"Tame.Reductions.measure"`)
    * `:progress` - called before each run, see `t:Tame.Reductions.Runner.progress/0`
  """
  @type option ::
          {:variants, [Variants.variant()]}
          | {:rounds, pos_integer()}
          | {:bursts, non_neg_integer()}
          | {:seed, Turns.seed()}
          | {:command, String.t()}
          | {:progress, Runner.progress()}

  @default_bytes 256 * 1024 * 1024
  # With fewer, two spreads of the same figure often lie beside each other.
  @default_rounds 5

  # Below this the lab's own microsecond around the call is a visible part of what was used.
  @least_used_ns 100_000

  # Below this p99 is the maximum.
  @enough_wake_ups 100

  # The share of the elapsed time above which the cost of tracing is worth a warning.
  @visible_share 0.05

  # Figures that are the median of the rounds; the others are of all rounds together.
  @medians ~w(elapsed_us gb_per_s page_faults scheduler_page_faults slices dirty_slices reductions)a

  @keys @medians ++
          ~w(longest_slice_us p999_slice_us longest_dirty_slice_us charge_ratio)a ++
          ~w(neighbour_wake_ups neighbour_p99_us neighbour_max_us)a

  @doc "The figures that are medians of the rounds: those that two runs are compared by."
  @spec medians() :: [atom()]
  def medians, do: @medians

  @doc "The size of an input when none is asked for."
  @spec default_bytes() :: pos_integer()
  def default_bytes, do: @default_bytes

  @doc "The number of rounds when none is asked for."
  @spec default_rounds() :: pos_integer()
  def default_rounds, do: @default_rounds

  @doc "Measures all variants on two inputs of `bytes` bytes each and prints the table."
  @spec compare(pos_integer(), [option()]) :: :ok
  def compare(bytes \\ @default_bytes, options \\ []) do
    bytes |> measure(options) |> Format.text() |> IO.write()
  end

  @doc """
  Measures each variant on two inputs of `bytes` bytes each, in turns, and returns the result as data.

  Raises `ArgumentError` when that does not fit in memory.
  """
  @spec measure(pos_integer(), [option()]) :: result()
  def measure(bytes, options \\ []) when is_integer(bytes) and bytes > 0 do
    options =
      Keyword.validate!(options, [
        :variants,
        :seed,
        rounds: @default_rounds,
        bursts: 0,
        command: "Tame.Reductions.measure",
        progress: fn _ -> :ok end
      ])

    variants = options[:variants] || Variants.all()
    seed = options[:seed] || Turns.seed()
    with {:error, why} <- Input.fits(bytes), do: raise(ArgumentError, why)
    with {:error, why} <- :tame_labs_native.build(), do: raise(why)

    system = SystemInfo.collect(options[:command])
    load = OtherLoad.start()
    floor = floor!()

    rows =
      variants
      |> Runner.run(bytes, options[:rounds], seed, options[:progress])
      |> Enum.map(&row(&1, bytes))

    bursts = bursts(variants, rows, bytes, options[:bursts], options[:progress])
    system = SystemInfo.ended(system, load)

    %{
      tool: "tame.reductions",
      format: 1,
      system: system,
      warnings: SystemInfo.warnings(system) ++ warnings(rows, floor, system),
      bytes: bytes,
      rounds: options[:rounds],
      seed: seed,
      command: options[:command],
      floor: floor,
      variants: rows,
      bursts: bursts
    }
  end

  # Of those that were measured, so that a failure is said once.
  defp bursts(variants, rows, bytes, count, progress) do
    measured = for %{id: id, status: "ok"} <- rows, do: id
    variants = Enum.filter(variants, &(&1.id in measured))

    Bursts.measure(variants, bytes, count, fn id ->
      done = Enum.find_index(variants, &(&1.id == id))

      progress.(%{
        what: "#{id}, bursts",
        done: done || length(variants),
        total: length(variants) + 1
      })
    end)
  end

  defp floor! do
    case Runner.floor() do
      {:ok, floor} -> floor
      {:error, why} -> raise why
    end
  end

  @doc "Whether every variant that is there ended well."
  @spec ok?(result()) :: boolean()
  def ok?(result), do: Enum.all?(result.variants, &(&1.status != "failed"))

  defp row(%Runner{status: :ok, turns: [_ | _] = turns} = outcome, bytes) do
    outcome
    |> blank()
    |> Map.merge(turns |> Enum.map(& &1.at_hand) |> figures(bytes))
    |> Map.put(:fresh, turns |> Enum.map(& &1.fresh) |> figures(bytes))
  end

  defp row(outcome, _bytes), do: blank(outcome)

  defp blank(%Runner{variant: variant, status: status, reason: reason}) do
    none = Map.new(@keys, &{&1, nil})
    none = Map.merge(none, %{neighbour_wake_ups: 0, picture: [], left_out: 0, spread: %{}})

    Map.merge(none, %{
      id: variant.id,
      about: Map.get(variant, :about, ""),
      status: Atom.to_string(status),
      reason: reason,
      fresh: none
    })
  end

  defp figures(runs, bytes) do
    rounds = for run <- runs, do: Map.merge(of_one(run, bytes), of_all([run]))
    values = fn key -> rounds |> Enum.map(& &1[key]) |> Enum.reject(&is_nil/1) end
    worst = Enum.max_by(runs, &max(&1.reading.normal.longest_ns, &1.reading.dirty.longest_ns))

    medians = Map.new(@medians, &{&1, median(values.(&1))})

    medians
    |> Map.merge(of_all(runs))
    |> Map.merge(%{
      # Of two rounds the median is the lower one, and the one with less time has more bytes a second.
      gb_per_s: gb_per_s(bytes, medians.elapsed_us),
      spread: Map.new(@keys, &{&1, Stats.spread(values.(&1))}),
      picture: Enum.map(worst.reading.slices, &slice/1),
      left_out: worst.reading.left_out
    })
  end

  defp of_one(run, bytes) do
    %{
      elapsed_us: us(run.elapsed_ns),
      gb_per_s: gb_per_s(bytes, us(run.elapsed_ns)),
      page_faults: run.faults && run.faults.vm,
      scheduler_page_faults: run.faults && run.faults.scheduler,
      slices: run.reading.normal.count,
      dirty_slices: run.reading.dirty.count,
      reductions: run.reading.reductions
    }
  end

  # Bytes a nanosecond.
  defp gb_per_s(bytes, us), do: bytes / max(1000 * us, 1)

  defp of_all(runs) do
    longest_ns = runs |> Enum.map(& &1.reading.normal.longest_ns) |> Enum.max()
    slices = histogram(Enum.map(runs, & &1.reading.normal.histogram))
    neighbour = histogram(Enum.map(runs, & &1.neighbour))
    wake_ups = :tame_histogram.count(neighbour)

    %{
      longest_slice_us: us(longest_ns),
      # The histogram answers with the upper end of a bucket, which may lie above the longest.
      p999_slice_us: us(min(longest_ns, :tame_histogram.percentile(slices, 99.9))),
      longest_dirty_slice_us: runs |> Enum.map(& &1.reading.dirty.longest_ns) |> Enum.max() |> us(),
      charge_ratio: charge_ratio(runs),
      neighbour_wake_ups: wake_ups,
      neighbour_p99_us: if(wake_ups > 0, do: us(:tame_histogram.percentile(neighbour, 99.0))),
      neighbour_max_us: if(wake_ups > 0, do: us(:tame_histogram.max(neighbour)))
    }
  end

  defp slice({start_ns, duration_ns, kind}) do
    %{start_us: us(start_ns), us: us(duration_ns), kind: Atom.to_string(kind)}
  end

  defp charge_ratio(runs) do
    used_ns = runs |> Enum.map(& &1.reading.normal.total_ns) |> Enum.sum()
    dirty_ns = runs |> Enum.map(& &1.reading.dirty.total_ns) |> Enum.sum()
    charged = runs |> Enum.map(& &1.reading.reductions) |> Enum.sum()

    Charge.ratio(charged, used_ns, dirty_ns, @least_used_ns * length(runs))
  end

  defp histogram(lists) do
    all = :tame_histogram.new()
    for list <- lists, {ns, count} <- list, do: :tame_histogram.record(all, ns, count)
    all
  end

  defp us(ns), do: ns / 1000

  @doc "What a reader must know about these rows."
  @spec warnings([row()], Turn.floor(), SystemInfo.t()) :: [Warning.t()]
  def warnings(rows, floor, system) do
    measured = Enum.filter(rows, &(&1.status == "ok"))
    unexplained = Enum.filter(measured, &unexplained?/1)
    few = Enum.filter(measured, &(&1.neighbour_wake_ups < @enough_wake_ups))
    traced = Enum.filter(measured, &(trace_share(&1, floor) > @visible_share))

    Warning.select([
      {few != [], :too_few_wake_ups,
       fn ->
         "The neighbour's p99 rests on fewer than #{@enough_wake_ups} wake-ups for #{names(few)}: it is nearly the " <>
           "maximum there. Ask for more with --rounds or --bytes."
       end},
      {traced != [], :overhead_visible,
       fn ->
         "Tracing costs about #{floor.slice_cost_ns} ns a slice, which is more than #{round(100 * @visible_share)} % of the " <>
           "elapsed time of #{names(traced)}."
       end},
      {unexplained != [], :late_without_slice,
       fn ->
         "The neighbour of #{names(unexplained)} woke far later than any slice explains: a thread of no normal " <>
           "scheduler had its core, the work itself or one that waits busily (busy wait: #{system[:busy_wait] || "unknown"}). " <>
           "Compare with ERL_FLAGS=\"+sbwt none +sbwtdcpu none +sbwtdio none\"."
       end},
      {system[:schedulers] == 1, :one_scheduler,
       fn ->
         "With one scheduler the process that collects the slices runs beside those it watches and delays both. " <>
           "Start with +S 2 or more."
       end}
    ])
  end

  # Later than the operating system's own slices of a few milliseconds make it.
  defp unexplained?(%{neighbour_max_us: nil}), do: false

  defp unexplained?(row) do
    row.neighbour_max_us > 10_000 and row.neighbour_max_us > 2 * row.longest_slice_us
  end

  defp trace_share(row, floor) do
    (row.slices + row.dirty_slices) * floor.slice_cost_ns / 1000 / max(row.elapsed_us, 0.001)
  end

  defp names(rows), do: Enum.map_join(rows, ", ", & &1.id)
end
