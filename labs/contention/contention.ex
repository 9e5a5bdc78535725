defmodule Tame.Contention do
  @moduledoc """
  The contention lab: what does native code do to everybody else?

      iex> Tame.Contention.measure(placements: ["inline", "yielding"], durations: [10_000], multipliers: [100])

  A flood of native jobs runs in a VM of its own, started for each cell; observers there and here see what it does to
  others. `measure/1` returns data, from which the tables, the JSON and the report are made. The placements are
  `Tame.Contention.Plan.placements/0`.

  The words of the tables:

    * *cell* - one placement, one duration of a job, one number of jobs at once, given as a multiple of the schedulers
      online (`100×` is 200 jobs on two schedulers). Short jobs are repeated, burst after burst, until the cell has
      lasted a second; a cell that lasts too long is stopped and marked
    * *neighbour* - a process of normal priority on each scheduler that wants to wake each 10 ms (`:tame_neighbour`).
      Its *delay* is counted from the planned moment, and each wake-up that it missed counts by itself. *Missed
      seconds* are the whole seconds for which the worst-off neighbour did not run
    * *dirty wait* - how long a dirty CPU NIF that only reads the clock waited for its scheduler; *dirty I/O*: how
      long `file:read_file_info/2` (raw) took; *gc*: how much longer than at rest a garbage collection of a heap
      of 50 MB took, which the VM does on a dirty CPU scheduler
    * *slice*, *charged ÷ used* - as in `Tame.Reductions`, of two jobs of the flood

  Cells are measured in an order that is drawn from a seed, round by round. With more than one round a figure is the
  median of the rounds, and its *spread* their least and their greatest: that is the noise, and medians that lie further
  apart than that are different (`Tame.Stats.agree?/2`). Pictures are of the round whose longest delay is the median.
  One round says nothing of the next. What it does say is how even the delays were within it: the *fifths* of a cell are the
  least and the greatest of each delay's figure in five parts of the flood's time, of several rounds those of the pictures.

  ## Who watches

  Neighbours, and the askers that ask for dirty work, run at normal priority, like the processes they stand for. The
  process that starts and stops the flood and the one that reads the VM's counters every 250 ms run at priority `max`.
  The node has no distribution: the lab reaches it by its standard input and output. A node that does not stop its
  flood is killed by the lab's own clock. The cost of the observers is measured in a cell without a flood, and
  printed.

  ## What it cannot see

  A node that had to be killed reports nothing of its last moments: its neighbours count as not having run since their
  last report. A call of a dirty I/O function returns through a normal scheduler, and waits for that one too. A thread
  of a library's own has no slices, and the VM counts no utilisation of it: its CPU is in that of the other threads, which
  `Tame.CPU` reads from outside, as is that of the VM's own threads beside its schedulers.
  """

  alias Tame.Contention.{Cell, Figures, Plan}
  alias Tame.{Duration, OtherLoad, Payload, Peer, Stats, SystemInfo, Turns, Warning}

  @typedoc "A cell's figures; `nil` where it was not measured. Times of waits and delays in µs."
  @type cell :: map()

  @type result :: %{
          tool: String.t(),
          format: pos_integer(),
          system: SystemInfo.t(),
          warnings: [Warning.t()],
          command: String.t(),
          flags: [String.t()],
          rounds: pos_integer(),
          seed: Turns.seed(),
          facts: map(),
          empty: cell(),
          cells: [cell()],
          calm: nil | %{cell: cell(), without_busy_wait: cell()}
        }

  @typedoc """
  What to measure:

    * `:placements` - ids (default: all)
    * `:durations` - in µs, `:multipliers` - (default: those of the tables, see `Tame.Contention.Plan`)
    * `:which` - `:quick`, `:default` or `:full`: what the defaults are, and how long a cell may last
    * `:rounds` - how often each cell is measured (default: 1); `:seed` - of the order (default: a new one)
    * `:flags` - emulator flags of the peer, as words
    * `:command` - the command line, for the record
    * `:progress` - called before each cell with `%{what: text, done: n, total: m}`
    * `:finished` - called after each cell with the result so far
  """
  @type option :: {atom(), term()}

  # Long enough for some hundred wake-ups a scheduler. The collection of 50 MB, one in each cell, is left out here and
  # reported by itself.
  @empty_ms 4000

  # Placements whose work needs a thread beside those of the schedulers, but for one a call.
  @off_schedulers ~w(dirty_cpu yielding_dirty pool driver_async driver_dirty)

  # What the observers may cost, as a share of one core.
  @visible_cost 0.01

  @doc "Measures and prints the tables."
  @spec compare([option()]) :: :ok
  def compare(options \\ []) do
    options |> measure() |> Tame.Contention.Format.text() |> IO.write()
  end

  @doc """
  Measures the cells asked for, one after the other, and returns the result as data.

  Raises `ArgumentError` for what cannot be run at all, see `prepare/1`.
  """
  @spec measure([option()]) :: result()
  def measure(options \\ []) do
    case prepare(options) do
      {:ok, plan} -> run(plan)
      {:error, why} -> raise ArgumentError, why
    end
  end

  @doc """
  Checks everything that can be refused before anything is measured: placements, flags, whether the peer node starts,
  and whether the processes asked for fit in memory. Returns the plan for `run/1`.
  """
  @spec prepare([option()]) :: {:ok, map()} | {:error, String.t()}
  def prepare(options) do
    options =
      Keyword.validate!(options, [
        :placements,
        :durations,
        :multipliers,
        :seed,
        rounds: 1,
        which: :default,
        flags: [],
        command: "Tame.Contention.measure",
        progress: fn _ -> :ok end,
        finished: fn _ -> :ok end
      ])

    which = options[:which]
    multipliers = options[:multipliers] || Plan.multipliers(which)

    with {:ok, placements} <-
           Plan.fetch(options[:placements] || Enum.map(Plan.placements(), & &1.id)),
         {:ok, facts} <- facts(options[:flags]),
         :ok <- Plan.fits(multipliers, facts, Payload.available_bytes()) do
      {:ok,
       %{
         placements: placements,
         durations: options[:durations] || Plan.durations(which),
         multipliers: multipliers,
         facts: facts,
         options: options |> Map.new() |> Map.put(:seed, options[:seed] || Turns.seed())
       }}
    end
  end

  @doc "Runs what `prepare/1` made."
  @spec run(map()) :: result()
  def run(%{options: %{command: command, flags: flags} = options, facts: facts} = plan) do
    system = SystemInfo.collect(command)
    load = OtherLoad.start()
    turns = turns(plan)
    total = length(turns) + 2
    options.progress.(%{what: "no flood", done: 0, total: total})
    empty = empty(plan)

    result = %{
      tool: "tame.contention",
      format: 1,
      system: system ++ peer_facts(facts, flags, empty),
      warnings: [],
      command: command,
      flags: flags,
      rounds: options.rounds,
      seed: options.seed,
      facts: facts,
      empty: empty,
      cells: [],
      calm: nil
    }

    {result, _} =
      turns
      |> Enum.with_index(1)
      |> Enum.reduce({result, %{}}, fn {{cell, index}, done}, {result, measured} ->
        options.progress.(%{what: cell_text(cell), done: done, total: total})
        row = measure_cell(cell, plan)
        measured = Map.update(measured, index, [row], &[row | &1])
        result = %{result | cells: for({_, rounds} <- Enum.sort(measured), do: together(rounds))}
        options.finished.(result)
        {result, measured}
      end)

    result = %{result | calm: calm(result, plan, total - 1)}
    system = SystemInfo.ended(result.system, load)
    %{result | system: system, warnings: SystemInfo.warnings(system) ++ warnings(result)}
  end

  @doc "Whether every cell that was tried ended, or was stopped at its limit."
  @spec ok?(result()) :: boolean()
  def ok?(result), do: not Enum.any?(result.cells, &(&1.status == "failed" and &1.tried?))

  # ---- cells -------------------------------------------------------------------------------------

  # Each with its place in the tables, round by round.
  defp turns(%{options: %{rounds: rounds, seed: seed}} = plan) do
    plan |> cells() |> Enum.with_index() |> Turns.all(rounds, seed)
  end

  # A cell of several rounds. What is no figure is that of the round in the middle, or of one that failed.
  defp together(rounds) do
    failed = Enum.find(rounds, &(&1.status == "failed"))
    by_delay = Enum.sort_by(rounds, & &1.neighbour_max_us)
    Stats.rounds(failed || Enum.at(by_delay, div(length(rounds) - 1, 2)), rounds)
  end

  defp cells(plan) do
    for duration_us <- plan.durations,
        placement <- plan.placements,
        multiplier <- plan.multipliers do
      %{
        placement: placement,
        duration_us: duration_us,
        multiplier: multiplier,
        jobs: multiplier * plan.facts.schedulers
      }
    end
  end

  defp measure_cell(%{placement: placement} = cell, %{options: options, facts: facts}) do
    {module, function} = placement.function

    spec =
      cell.duration_us
      |> Plan.times(options.which)
      |> Map.merge(%{
        job: {module, function, [cell.duration_us]},
        jobs: cell.jobs,
        duration_us: cell.duration_us
      })

    case Plan.refusal(placement, cell.jobs, facts) do
      nil -> spec |> Cell.run(options.flags) |> outcome(spec, cell)
      why -> row(cell, "failed", why, false, Figures.none())
    end
  end

  defp outcome({:error, why}, _spec, cell), do: row(cell, "failed", why, true, Figures.none())

  defp outcome({:ok, raw}, spec, cell) do
    figures = Figures.figures(raw, spec)

    case raw.outcome do
      nil ->
        row(cell, "timeout", "the peer node did not stop its flood and was killed", true, figures)

      %{status: :ok} ->
        row(cell, "ok", nil, true, figures)

      %{status: :timeout} ->
        row(cell, "timeout", "stopped after #{spec.limit_ms} ms", true, figures)

      %{status: {:failed, reason}} ->
        row(cell, "failed", "a job failed: #{inspect(reason)}", true, figures)
    end
  end

  defp row(%{placement: placement} = cell, status, reason, tried?, figures) do
    Map.merge(figures, %{
      placement: placement.id,
      duration_us: cell.duration_us,
      multiplier: cell.multiplier,
      jobs: cell.jobs,
      status: status,
      reason: reason,
      tried?: tried?
    })
  end

  defp cell_text(cell) do
    "#{cell.placement.id}, #{Duration.text(cell.duration_us)} #{cell.multiplier}×"
  end

  # Threads that wait busily are the default, and take cores from those that have work. So the cell off the
  # schedulers whose neighbours fared worst is measured once more, without them.
  defp calm(result, %{options: options} = plan, done) do
    cell =
      for(
        c <- result.cells,
        c.placement in @off_schedulers,
        c.multiplier <= 100,
        c.neighbour_p99_us,
        do: c
      )
      |> Enum.max_by(& &1.neighbour_p99_us, fn -> nil end)

    if cell && not Enum.member?(options.flags, "+sbwt") do
      options.progress.(%{what: "without busy waiting", done: done, total: done + 1})
      {:ok, [placement]} = Plan.fetch([cell.placement])
      plan = put_in(plan.options.flags, options.flags ++ Peer.no_busy_wait())

      spec = cell |> Map.take([:duration_us, :multiplier, :jobs]) |> Map.put(:placement, placement)
      again = together([measure_cell(spec, plan)])

      if again.neighbour_p99_us, do: %{cell: cell, without_busy_wait: again}
    end
  end

  defp empty(%{options: %{flags: flags}}) do
    spec =
      0
      |> Plan.times(:default)
      |> Map.merge(%{job: {:tame_loop, :loop, [0]}, jobs: 0, duration_us: 0})
      |> Map.merge(%{window_ms: @empty_ms, limit_ms: 2 * @empty_ms, gc_second_ms: 10 * @empty_ms})

    case Cell.run(spec, flags) do
      {:ok, raw} -> Figures.figures(raw, spec)
      {:error, _} -> Figures.none()
    end
  end

  # ---- the node ----------------------------------------------------------------------------------

  @doc "What a peer node with these flags is, or why it does not start. Brings the natives up to date first."
  @spec facts([String.t()]) :: {:ok, map()} | {:error, String.t()}
  def facts(flags) do
    with :ok <- :tame_labs_native.build(),
         :ok <- Peer.check(flags),
         {:ok, peer} <- Peer.start(flags) do
      facts = Peer.call(peer, :tame_contention, :facts, [])
      Peer.stop(peer)
      {:ok, facts}
    end
  end

  defp peer_facts(facts, flags, empty) do
    [
      peer_flags: if(flags == [], do: "none", else: Enum.join(flags, " ")),
      peer_schedulers: facts.schedulers,
      peer_dirty_cpu_schedulers: facts.dirty_cpu_schedulers,
      observer_cost_percent: empty.busy_cores && Float.round(100 * empty.busy_cores, 2)
    ]
  end

  # ---- warnings ----------------------------------------------------------------------------------

  defp warnings(result) do
    cost = result.empty.busy_cores
    killed = Enum.filter(result.cells, &(&1.status == "timeout" and &1.longest_slice_us == nil))

    Warning.select([
      {is_number(cost) and cost > @visible_cost, :observers_visible,
       fn ->
         "The observers alone kept #{Float.round(100 * cost, 2)} % of a core busy, which is more than #{round(100 * @visible_cost)} %."
       end},
      {killed != [], :killed,
       fn ->
         "In #{length(killed)} of #{length(result.cells)} cells the node did not stop its flood and was killed; " <>
           "neighbours count as late there until then."
       end}
    ])
  end
end
