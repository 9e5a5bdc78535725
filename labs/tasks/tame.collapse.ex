defmodule Mix.Tasks.Tame.Collapse do
  use Tame.Task

  @shortdoc "Looks for schedulers that sleep while work waits"

  @moduledoc """
  Looks for schedulers that sleep while work waits.

      $ mix tame.collapse
      $ mix tame.collapse --erl "+S 4:4" --json collapse.json

  Runs long native calls that charge nothing, then bursts of cheap work, in a VM of its own: once with the given flags,
  once with `+sfwi 100` added. Prints for how long jobs waited while a scheduler slept. See `Tame.Collapse` for how it
  measures. It reads `/proc`, so it sees sleeping threads on Linux only.

  ## Command line options

    * `--erl FLAGS` - emulator flags of that VM, such as `"+S 4:4"`
    * `--json FILE` - write the result as JSON too (`-`: standard output)

  ## Exit status

  `0` when both were measured, collapse or not; `1` when one failed, the command line is wrong or the VM does not start
  with the flags.
  """

  alias Tame.{Collapse, Options, OtherLoad, Output, SystemInfo}

  @switches [erl: :words, json: :string]

  @impl Mix.Task
  def run(argv) do
    Mix.Task.run("app.config")

    with {:ok, options} <- Options.parse(argv, @switches),
         :ok <- Output.check(options[:json]),
         system = SystemInfo.collect(Enum.join(["mix tame.collapse" | argv], " ")),
         load = OtherLoad.start(),
         {:ok, rows} <- Collapse.measure(options[:erl] || []),
         system = SystemInfo.ended(system, load),
         _ = rows |> Collapse.text(system) |> IO.write(),
         :ok <- Output.write(options[:json], fn -> Collapse.json(rows, system) end),
         do: Tame.Task.outcome(Collapse.ok?(rows))
  end
end
