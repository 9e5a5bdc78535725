defmodule Mix.Tasks.Tame.Contention do
  use Mix.Task

  @shortdoc "Floods a VM with native work and measures what that does to everybody else"

  @moduledoc """
  Floods a VM with native work and measures what that does to everybody else.

      $ mix tame.contention --quick
      $ mix tame.contention --placements inline,yielding --durations 1ms,10ms --multipliers 1,100
      $ mix tame.contention --quick --erl "+S 4:4" --json contention.json
      $ mix tame.contention --collapse

  Each cell is a flood in a VM of its own: one placement, jobs of one duration, so many at once for each
  scheduler. Prints a table for each duration, in which a cell is the longest time for which a normal process got
  no CPU, then the figures of all cells, what the observers cost, and what that advises. See `Tame.Contention` for how
  it measures and what it cannot see. Two cores, `--quick`:

      jobs of 100 ms  1×                   100×
      inline          114ms~               +1.0s! …
      thousand_cuts   125ms~               +1.4s! …
      dirty_cpu       101ms~ dirty 102ms~  134ms~ dirty 905ms~ …
      yielding        4.1ms                44ms …
      yielding_dirty  95ms                 132ms~ dirty 497ms~ …
      thread          100ms~               +1.9s! …
      pool            141ms~               194ms~ …
      auto            6.7ms                55ms …
      erlang          13ms                 71ms …

  `~` is 100 ms and more (yellow in a terminal with colours), `!` a second and more (red), `…` a flood that was
  stopped at its cell's limit. Behind `dirty` stands how long a trivial dirty CPU NIF waited, where that is 100 ms or more.

  ## Command line options

    * `--quick` - corner cells only, under a minute: 1 ms and 100 ms, 1× and 100×
    * `--full` - jobs of 100 s too; well over an hour
    * `--placements ID,ID` - these only (default: all, see below)
    * `--durations TIME,TIME` - jobs of these lengths, as `500us`, `10ms`, `1s` (default: 1ms,10ms,100ms,1s,10s)
    * `--multipliers N,N` - so many jobs for each scheduler online (default: 1,10,100,1000,10000)
    * `--erl FLAGS` - emulator flags of the VM that is flooded, such as `"+S 4:4"`
    * `--collapse` - instead of cells: do schedulers sleep while work waits? Long uncharged calls, then bursts of
      cheap work, with the given flags and with `+sfwi 100` besides; see `Tame.Contention.Collapse`
    * `--json FILE` - write the result as JSON too, anew after each cell

  Placements: #{Enum.map_join(Tame.Contention.Plan.placements(), "; ", &"`#{&1.id}`, #{&1.about}")}.

  A cell lasts three seconds at most, one with jobs of a second or more two seconds longer than one of them; the default cells
  of up to 1 s take some nine minutes in all.

  ## Exit status

  `0` when every cell ended or was stopped at its limit; `1` when one failed (those before it are in the JSON, and it
  is named) or the command line is wrong, the VM does not start with the flags or the jobs do not fit in memory.
  More than 1000 threads for each core are not tried, which is said in the cell and is no failure.
  """

  alias Tame.{Contention, Options, Output, Progress, SystemInfo}
  alias Tame.Contention.Plan

  @switches [
    quick: :flag,
    full: :flag,
    collapse: :flag,
    placements: :list,
    durations: :list,
    multipliers: :list,
    erl: :string,
    json: :string
  ]

  @impl Mix.Task
  def run(argv) do
    Mix.Task.run("app.config")
    command = Enum.join(["mix tame.contention" | argv], " ")

    with {:ok, options} <- Options.parse(argv, @switches),
         {:ok, which} <- which(options),
         {:ok, flags} <- flags(options[:erl]),
         :ok <- check(options[:json]),
         :ok <-
           if(options[:collapse],
             do: collapse(options, flags, command),
             else: flood(options, which, flags, command)
           ) do
      :ok
    else
      {:error, message} -> Mix.raise(message)
    end
  end

  # All that can be refused is refused before the first cell runs.
  defp flood(options, which, flags, command) do
    with {:ok, durations} <- optional(options[:durations], &Plan.parse_durations/1),
         {:ok, multipliers} <- optional(options[:multipliers], &Plan.parse_multipliers/1),
         {:ok, plan} <-
           Contention.prepare(
             placements: options[:placements],
             durations: durations,
             multipliers: multipliers,
             which: which,
             flags: flags,
             command: command,
             progress: Progress.printer(),
             finished: &keep(options[:json], Contention.Format.json(&1))
           ) do
      result = Contention.run(plan)
      Progress.clear()
      result |> Contention.Format.text(IO.ANSI.enabled?()) |> IO.write()
      keep(options[:json], Contention.Format.json(result))

      if not Contention.ok?(result), do: exit({:shutdown, 1})
      :ok
    end
  end

  defp collapse(options, flags, command) do
    with :ok <- alone(options), {:ok, _facts} <- Contention.facts(flags) do
      rows = Contention.Collapse.measure(flags)
      system = SystemInfo.collect(command)
      rows |> Contention.Collapse.text(system) |> IO.write()
      keep(options[:json], Contention.Collapse.json(rows, system))

      if Enum.any?(rows, &(&1.status == "failed")), do: exit({:shutdown, 1})
      :ok
    end
  end

  # What chooses cells means nothing here.
  defp alone(options) do
    case Keyword.keys(options) -- [:collapse, :erl, :json] do
      [] -> :ok
      [other | _] -> {:error, "--#{other}: goes with cells, not with --collapse"}
    end
  end

  defp which(options) do
    case {options[:quick], options[:full]} do
      {true, true} -> {:error, "--quick --full: expected one of the two"}
      {true, _} -> {:ok, :quick}
      {_, true} -> {:ok, :full}
      _ -> {:ok, :default}
    end
  end

  defp optional(nil, _parse), do: {:ok, nil}
  defp optional(words, parse), do: parse.(words)

  defp flags(nil), do: {:ok, []}

  defp flags(text) do
    {:ok, OptionParser.split(text)}
  rescue
    error -> {:error, "--erl #{inspect(text)}: #{Exception.message(error)}"}
  end

  defp check(nil), do: :ok
  defp check(path), do: Output.check(path)

  # After each cell, so that what is done is kept whatever happens next.
  defp keep(nil, _json), do: :ok

  defp keep(path, json) do
    with {:error, message} <- Output.write(path, json), do: Mix.raise(message)
  end
end
