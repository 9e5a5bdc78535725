defmodule Mix.Tasks.Tame.Report do
  use Tame.Task

  @default_output "report/index.html"

  @shortdoc "Runs the labs and writes one report page with pictures"

  @moduledoc """
  Runs the labs and writes one report page with pictures.

      $ mix tame.report
      $ mix tame.report --output report/laptop.html --iterations 10000

  Prints the tables of each lab, as `mix tame.contention`, `mix tame.reductions` and `mix tame.latency` do, and writes
  a page that opens from disk, without a network. The contention lab runs only its corner cells (`--quick`), the
  reductions lab takes two inputs of 64 MiB, and the audit lists every NIF on the code path and calls three of tame's
  own.

  ## Command line options

    * `--output FILE` - the page (default: #{@default_output}, whose folder is made)
    * `--bytes N` - the payload of the latency lab, in bytes (default: 65536)
    * `--iterations N` - its calls of each method (default: 100000)

  ## Exit status

  `0` when every cell, variant and method that this machine can run ended well, `1` when one failed midway
  (the page is written and says so), the command line is wrong or the page cannot be written.
  """

  alias Tame.{Audit, Contention, Latency, Options, Output, Payload, Progress, Reductions, Report}

  @switches [output: :string, bytes: :non_neg_integer, iterations: :pos_integer]

  # A quarter of what mix tame.reductions takes by default, so that a report stays quick.
  @reductions_bytes 64 * 1024 * 1024

  @impl Mix.Task
  def run(argv) do
    Mix.Task.run("app.config")
    command = Enum.join(["mix tame.report" | argv], " ")

    # All that can be refused is refused before the labs run.
    with {:ok, options} <- Options.parse(argv, @switches),
         {:ok, path} <- output(options[:output]),
         {:ok, term} <- Payload.bytes(options[:bytes] || 65_536),
         :ok <- Reductions.Input.fits(@reductions_bytes),
         {:ok, assets} <- Report.assets(),
         :ok <- Output.check(path),
         {:ok, plan} <- contention_plan(command),
         {:ok, audit} <- audit(command),
         contention = contention(plan),
         reductions = reductions(command),
         latency = latency(term, options[:iterations] || 100_000, command),
         page = page([contention, reductions, latency, audit], assets),
         :ok <- Output.write(path, page) do
      Mix.shell().info("\nThe report is in #{path}")

      ok? = Contention.ok?(contention) and Reductions.ok?(reductions) and Latency.ok?(latency)
      if not ok?, do: exit({:shutdown, 1})
    else
      {:error, message} -> Mix.raise(message)
    end
  end

  # Its folder is ours to make; that of another path is not.
  defp output(nil) do
    with :ok <- Output.make_folder(Path.dirname(@default_output)), do: {:ok, @default_output}
  end

  defp output(path), do: {:ok, path}

  defp contention_plan(command) do
    Contention.prepare(which: :quick, command: command, progress: Progress.printer())
  end

  defp contention(plan) do
    result = Contention.run(plan)
    Progress.clear()
    [Contention.Format.text(result, IO.ANSI.enabled?()), ?\n] |> IO.write()
    result
  end

  defp reductions(command) do
    result = Reductions.measure(@reductions_bytes, command: command, progress: Progress.printer())

    Progress.clear()
    [Reductions.Format.text(result), ?\n] |> IO.write()
    result
  end

  # One that blocks, one that does not, one that is dirty.
  @audited ~w(exor_inline exor_yielding exor_dirty)a
  @audited_bytes 64 * 1024 * 1024

  defp audit(command) do
    called =
      for name <- @audited do
        %{
          target: {:function, {:tame_exor, name, 2}},
          input: {"binary", [:binary]},
          up_to: @audited_bytes
        }
      end

    with :ok <- :tame_labs_native.build(),
         {:ok, result} <-
           Audit.run(
             [%{target: :all} | called],
             Tame.SystemInfo.collect(command),
             Progress.printer()
           ) do
      Progress.clear()
      [Audit.Format.called(result), ?\n] |> IO.write()
      {:ok, result}
    end
  end

  defp latency(term, iterations, command) do
    result = Latency.measure(term, iterations, command: command, progress: Progress.printer())
    Progress.clear()
    result |> Latency.Format.text() |> IO.write()
    result
  end

  defp page([contention, reductions, latency, audit], assets) do
    sections = [
      Audit.Section.from_result(audit),
      Contention.Section.from_result(contention),
      Reductions.Section.from_result(reductions),
      Latency.Section.from_result(latency)
    ]

    Report.render(sections, Tame.SystemInfo.lines(latency.system),
      assets: assets,
      lead: "Measured on #{Calendar.strftime(DateTime.utc_now(), "%Y-%m-%d at %H:%M")} UTC."
    )
  end
end
