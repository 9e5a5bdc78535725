defmodule Mix.Tasks.Tame.Doctor do
  use Tame.Task

  @shortdoc "Says whether tame works here, and what mends what is missing"

  @moduledoc """
  Says whether tame works here, and what mends what is missing.

      $ mix tame.doctor
      $ mix tame.doctor --json -

  Looks whether tame and its labs are built and for which OTP, whether OTP's C headers and a compiler are there,
  starts the application tame with this project's configuration, and prints which modules are isolated and since when,
  the flags of this VM and its busy-wait settings. Below each line that is not `ok` stands what mends it; a `note` says what tame works
  without.

  The flags are those of this VM: start it as you start your system, with `ELIXIR_ERL_OPTIONS`.

  ## Command line options

    * `--json FILE` - write the result as JSON too (`-`: standard output)

  ## Exit status

  `0` when nothing is missing, `1` when something is, or the command line is wrong.
  """

  alias Tame.{Doctor, Options, Output}

  @switches [json: :string]

  @impl Mix.Task
  def run(argv) do
    Mix.Task.run("app.config")

    with {:ok, options} <- Options.parse(argv, @switches),
         :ok <- Output.check(options[:json]),
         facts = Doctor.Facts.collect(Enum.join(["mix tame.doctor" | argv], " ")),
         result = Doctor.examine(facts),
         _ = result |> Doctor.Format.text() |> IO.write(),
         :ok <- Output.write(options[:json], fn -> Doctor.Format.json(result) end),
         do: Tame.Task.outcome(Doctor.ok?(result))
  end
end
