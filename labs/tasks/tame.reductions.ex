defmodule Mix.Tasks.Tame.Reductions do
  use Tame.Task

  @shortdoc "Measures what native work does to its scheduler and its neighbour there"

  @moduledoc """
  Measures what native work does to its scheduler and its neighbour there, by every way of running it.

      $ mix tame.reductions
      $ mix tame.reductions --bytes 2000000000
      $ mix tame.reductions --only exor_yielding,exor_classic --json reductions.json

  The work is the exclusive or of two large binaries. Prints the machine and a table of the variants:
  how long they took on fresh pages and with pages at hand, their slices, the reductions they were charged, and how late a neighbour on
  the same scheduler woke. See `Tame.Reductions` for how it measures and what it cannot see.

  ## Command line options

    * `--bytes N` - the size of each of the two inputs (default: 268435456, which is 256 MiB); it must
      fit in free memory five times over
    * `--bursts N` - bursts of jobs of each variant as well, with a rest after each: how long a neighbour waited, and which
      threads were at work, 20 ms by 20 ms, in the JSON (default: 0)
    * `--rounds N` - turns of each variant (default: 5)
    * `--seed N` - of the order in each round, which the output names (default: a new one)
    * `--only ID,ID` - measure these variants only (default: all, see below)
    * `--json FILE` - write the result as JSON too (`-`: standard output)

  Variants: #{Enum.map_join(Tame.Reductions.Variants.builtin(), ", ", &"`#{&1.id}`")}, and those that the
  project adds by `config :tame_labs, reductions_variants: [...]`.

  ## Exit status

  `0` when every variant that is there ended well, `1` when one failed or returned something wrong, or the command
  line is wrong. A variant that is not there is `skipped`, with the reason; this is no failure, unless all are.
  """

  alias Tame.{Options, Output, Progress, Reductions}

  @switches [
    bytes: :pos_integer,
    bursts: :non_neg_integer,
    rounds: :pos_integer,
    seed: :non_neg_integer,
    only: :list,
    json: :string
  ]

  @impl Mix.Task
  def run(argv) do
    Mix.Task.run("app.config")

    with {:ok, options} <- Options.parse(argv, @switches),
         {:ok, variants} <- variants(options[:only]),
         bytes = options[:bytes] || Reductions.default_bytes(),
         :ok <- fits(bytes),
         :ok <- Output.check(options[:json]),
         result = measure(bytes, variants, options, Enum.join(["mix tame.reductions" | argv], " ")),
         :ok <- Output.write(options[:json], fn -> Reductions.Format.json(result) end),
         do: Tame.Task.outcome(Reductions.ok?(result), result.variants, &(&1.status != "skipped"))
  end

  defp measure(bytes, variants, options, command) do
    result =
      Reductions.measure(bytes,
        variants: variants,
        rounds: options[:rounds] || Reductions.default_rounds(),
        bursts: options[:bursts] || 0,
        seed: options[:seed],
        command: command,
        progress: Progress.printer()
      )

    Progress.clear()
    result |> Reductions.Format.text() |> IO.write()
    result
  end

  defp variants(nil), do: {:ok, Reductions.Variants.all()}
  defp variants(ids), do: Reductions.Variants.fetch(ids)

  defp fits(bytes) do
    with {:error, why} <- Reductions.Input.fits(bytes), do: {:error, "--bytes #{bytes}: #{why}"}
  end
end
