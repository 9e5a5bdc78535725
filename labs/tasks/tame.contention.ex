defmodule Mix.Tasks.Tame.Contention do
  use Tame.Task

  @shortdoc "Floods a VM with native work and measures what that does to everybody else"

  @moduledoc """
  Floods a VM with native work and measures what that does to everybody else.

      $ mix tame.contention --quick
      $ mix tame.contention --placements inline,yielding --durations 1ms,10ms --multipliers 1,100
      $ mix tame.contention --quick --erl "+S 4:4" --json contention.json

  Each cell is a flood in a VM of its own: jobs of one placement and one duration, and a number of them at once for
  each scheduler. Prints a table for each duration, in which a cell is the longest time for which a process of normal
  priority got no CPU, then the figures of all cells, the cost of the observers, and advice. See `Tame.Contention` for
  how it measures and what it cannot see. With `--quick` on two cores:

      jobs of 100 ms  1×      100×
      inline          132ms~  +1.1s! …
      thousand_cuts   130ms~  +1.1s! …
      dirty_cpu       0.9ms   1.6ms dirty 986ms~ …
      yielding        4.2ms   5.8ms …
      yielding_dirty  1.6ms   21ms dirty 513ms~ …
      thread          17ms    +1.2s! …
      pool            0.9ms   24ms …
      auto            2.1ms   4.2ms …
      erlang          4.6ms   4.3ms …

  `~` marks 100 ms and more (yellow in a terminal with colours), `!` a second and more (red), `…` a flood that was
  stopped at its cell's limit. The time after `dirty` is how long a trivial dirty CPU NIF waited; it is shown from 100 ms on.

  ## Command line options

    * `--quick` - corner cells only, under a minute: 1 ms and 100 ms, 1× and 100×
    * `--full` - jobs of 100 s too; takes well over an hour
    * `--placements ID,ID` - these only (default: all, see below)
    * `--durations TIME,TIME` - jobs of these lengths, as `500us`, `10ms`, `1s` (default: 1ms,10ms,100ms,1s,10s)
    * `--multipliers N,N` - jobs at once for each scheduler online (default: 1,10,100,1000,10000)
    * `--rounds N` - how often each cell is measured (default: 1); from 2 on the noise is stated
    * `--seed N` - of the order of the cells, which the output names (default: a new one)
    * `--erl FLAGS` - emulator flags of the VM that is flooded, such as `"+S 4:4"`
    * `--json FILE` - write the result as JSON too (`-`: standard output); a file anew after each cell

  Placements: #{Enum.map_join(Tame.Contention.Plan.placements(), "; ", &"`#{&1.id}`, #{&1.about}")}.

  A cell lasts at most three seconds; one with jobs of a second or more lasts two seconds longer than one job. The default
  cells of up to 1 s take about nine minutes in all.

  ## Exit status

  `0` when every cell ended or was stopped at its limit. `1` when a cell failed (it is named, and the cells before it are in
  the JSON), the command line is wrong, the VM does not start with the flags, or the jobs do not fit in memory.
  The lab does not try more than 1000 threads for each core; the cell says so, and this is no failure, unless no
  cell was tried.
  """

  alias Tame.{Contention, Options, Output, Progress}
  alias Tame.Contention.Plan

  @switches [
    quick: :flag,
    full: :flag,
    placements: :list,
    durations: :list,
    multipliers: :list,
    rounds: :pos_integer,
    seed: :non_neg_integer,
    erl: :words,
    json: :string
  ]

  @impl Mix.Task
  def run(argv) do
    Mix.Task.run("app.config")

    # All that can be refused is refused before the first cell runs.
    with {:ok, options} <- Options.parse(argv, @switches),
         {:ok, which} <- which(options),
         :ok <- Output.check(options[:json]),
         {:ok, durations} <- optional(options[:durations], &Plan.parse_durations/1),
         {:ok, multipliers} <- optional(options[:multipliers], &Plan.parse_multipliers/1),
         {:ok, plan} <-
           Contention.prepare(
             placements: options[:placements],
             durations: durations,
             multipliers: multipliers,
             which: which,
             rounds: options[:rounds] || 1,
             seed: options[:seed],
             flags: options[:erl] || [],
             command: Enum.join(["mix tame.contention" | argv], " "),
             progress: Progress.printer(),
             finished: &write_early(options[:json], &1)
           ),
         result = measure(plan),
         :ok <- Output.write(options[:json], json(result)),
         do: Tame.Task.outcome(Contention.ok?(result), result.cells, & &1.tried?)
  end

  defp measure(plan) do
    result = Contention.run(plan)
    Progress.clear()
    result |> Contention.Format.text(IO.ANSI.enabled?()) |> IO.write()
    result
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

  # After each cell, so that what is done is kept whatever happens next.
  defp write_early(path, result) do
    with {:error, message} <- Output.write_early(path, json(result)), do: Mix.raise(message)
  end

  defp json(result), do: fn -> Contention.Format.json(result) end
end
