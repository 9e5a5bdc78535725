defmodule Mix.Tasks.Tame.Calibrate do
  use Tame.Task

  @shortdoc "Measures what placements cost here, and how fast jobs are"

  @moduledoc """
  Measures what placements cost on this machine, and how fast the jobs on `tame.h` are.

      $ mix tame.calibrate
      $ mix tame.calibrate --json calibration.json

  Calls tame's own jobs, and those that the project lists by

      config :tame_labs, calibrate: [{MyModule, :my_function, [argument]}]

  for 120 ms in each of ten rounds, and prints the machine and two tables. The first table has the cost of one hop, and the cost of
  moving a call to a dirty CPU scheduler, to the pool or to a thread of its own and back, each with its break-even
  point: work that takes longer is cheaper there than yielding, if only its own time counts. The second table has each
  job's rate as its library last measured it, and how much of the work fits into a slice of #{:tame_job_rates.slice_us()} µs, into the 1 ms that
  an inline call may take, and into the 100 ms beyond which `auto` leaves the normal schedulers. `auto` decides by
  these rates at run time; a program needs none of these numbers.

  In a running system `tame:calibration()` returns the rates, without the labs.

  ## Command line options

    * `--json FILE` - write the result as JSON too (`-`: standard output)

  ## Exit status

  `0`; `1` when the command line is wrong or a listed call raises.
  """

  alias Tame.{Calibrate, Options, Output}

  @switches [json: :string]

  @impl Mix.Task
  def run(argv) do
    Mix.Task.run("app.config")

    with {:ok, options} <- Options.parse(argv, @switches),
         :ok <- Output.check(options[:json]),
         :ok <- :tame_labs_native.build(),
         {:ok, _} <- Application.ensure_all_started(:tame),
         {:ok, result} <- Calibrate.measure(Calibrate.targets(), command(argv)),
         :ok <- Output.write(options[:json], fn -> Calibrate.json(result) end),
         do: result |> Calibrate.text() |> IO.write()
  end

  defp command(argv), do: Enum.join(["mix tame.calibrate" | argv], " ")
end
