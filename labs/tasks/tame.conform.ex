defmodule Mix.Tasks.Tame.Conform do
  use Tame.Task

  @shortdoc "Compares a NIF library in the VM and isolated, on generated calls"

  @moduledoc """
  Compares a NIF library in the VM and isolated, on generated calls.

      $ mix tame.conform jiffy                    # an application, a module, a folder, a .so; also several
      $ mix tame.conform path/to/ebin:my_nif      # a module that is not on the code path
      $ mix tame.conform jiffy --calls 5000 --seed 7
      $ mix tame.conform my_nif --inputs inputs.exs --accept conform.exs

  It finds the exported functions that are NIFs or call one of their module's, makes calls of them
  (`Tame.Audit.Conform.Cases`) and makes each call in three VMs of their own: in two of them the library is in the VM, in the
  third it is isolated (`tame:isolate/1`). What the two do not do alike varies by itself and is not compared. Then come
  sixteen callers at once, owners that are killed while they call or hold what they were given, and a host that is killed.

  ## What it prints

  For each function: `calls`; `answered`, how many of the equal ones returned no error; `equal`; `contained`, calls that end
  the VM and raise where the library is isolated; `varies`; `not seen`, calls after one that ended what was to be seen;
  `differs`. For each function and kind of difference the smallest calls that were found, what they do on both sides, and
  what that means. A kind is #{Enum.map_join(Tame.Audit.Conform.Compare.kinds(), ", ", &"`#{&1}`")}.

  References, pids, ports and funs are compared by their kind and order: they are others in each VM. Exceptions are compared
  with their reason and, where it is the module's own, the function that raised.

  ## Command line options

    * `--calls N` - how many calls of each library are compared, and no function less than 20 times (default:
      #{Tame.Audit.Conform.default_calls()})
    * `--seed N` - from which all calls are drawn (default: a new one, which is printed)
    * `--limit TIME` - for the calls of one library, without the scenarios (default: 120s)
    * `--inputs FILE` - arguments that functions are known to take, see `Tame.Audit.Conform.Samples`; those of functions that
      are not called are named
    * `--accept FILE` - differences that are accepted, with reason and date, as `mix tame.audit --baseline` has them:
      `{"jiffy:decode/1", :value, date: "2026-11-23", reason: "..."}`; a scenario's name stands in the function's place of
      a library's module and `:scenario`. Those that are not found any more are named
    * `--json FILE` - write what was found as JSON too (`-`: standard output)

  Functions are called with anything, so nothing is called whose name is one of
  #{Enum.map_join(Tame.Audit.Functions.left_out(), ", ", &"`#{&1}`")}. They are called in a folder that is thrown away. That is
  no sandbox: a library that removes files by name, or sends to the network, does so here.

  ## Exit status

  `0` when nothing differs but what is accepted. `1` when something differs, a library could not be compared (each has one
  line), there is none to compare, or the command line is wrong.
  """

  alias Tame.Audit.{Baseline, Conform, Target}
  alias Tame.Audit.Conform.{Compare, Format, Samples}
  alias Tame.{Duration, Options, Output, Progress, SystemInfo}

  @switches [
    calls: :pos_integer,
    seed: :non_neg_integer,
    limit: :string,
    inputs: :string,
    accept: :string,
    json: :string
  ]

  @usage "nothing to compare, expected: mix tame.conform MODULE | APPLICATION | FOLDER | FILE.so | path/to/ebin:module"

  @unused "an input for it, which is none of the functions above"

  @impl Mix.Task
  def run(argv) do
    Mix.Task.run("app.config")

    with {:ok, options, words} <- Options.parse_words(argv, @switches),
         {:ok, targets} <- targets(words),
         {:ok, samples} <- Samples.read(options[:inputs]),
         {:ok, accepted} <-
           Baseline.read(options[:accept], "--accept", [:scenario | Compare.kinds()]),
         {:ok, limit_us} <- limit(options[:limit]),
         :ok <- Output.check(options[:json]),
         :ok <- :tame_labs_native.build(),
         system = SystemInfo.collect(Enum.join(["mix tame.conform" | argv], " ")),
         {:ok, result} <- compare(targets, system, samples, accepted, limit_us, options),
         :ok <- Output.write(options[:json], fn -> Format.json(result) end) do
      for failure <- result.failures, do: Mix.shell().error(failure)
      for name <- Conform.unused(result, samples), do: IO.puts("unused  #{name}: #{@unused}")
      for line <- Baseline.stale(accepted, Conform.found(result)), do: IO.puts("stale  #{line}")
      Tame.Task.outcome(result.failures == [] and Conform.unexplained(result, accepted) == [])
    end
  end

  defp targets([]), do: {:error, @usage}
  defp targets(words), do: Tame.Audit.Policy.each(words, &target/1)

  # A folder with beam files, and a module in it.
  defp target(word) do
    with [_, folder, module] <- Regex.run(~r{^(.*/.*):([^:/]+)$}, word),
         true <- File.dir?(folder) || {:error, "#{word}: there is no folder #{folder}"} do
      if File.exists?(Path.join(folder, module <> ".beam")) do
        true = Code.prepend_path(folder)
        {:ok, {:module, String.to_atom(module)}}
      else
        {:error, "#{word}: there is no #{module}.beam in #{folder}"}
      end
    else
      nil -> library(word)
      {:error, _} = error -> error
    end
  end

  # What is compared is a whole library.
  defp library(word) do
    with {:ok, {:function, _}} <- Target.parse(word),
         do: {:error, "#{word} is a function, expected a module, an application, a folder or a .so"}
  end

  defp limit(nil), do: {:ok, 1000 * Conform.default_total_ms()}
  defp limit(text), do: Duration.parse(text, "--limit")

  defp compare(targets, system, samples, accepted, limit_us, options) do
    pairs = for entry <- accepted, do: {entry.text, entry.verdict}

    done = fn
      {:ok, library} ->
        Progress.clear()
        library |> Format.library(pairs) |> IO.write()

      {:error, _} ->
        :ok
    end

    with {:ok, result} <-
           Conform.run(
             targets,
             system,
             [
               samples: samples,
               total_ms: div(limit_us, 1000),
               progress: Progress.printer(),
               done: done
             ] ++
               Keyword.take(options, [:calls, :seed])
           ) do
      Progress.clear()
      result |> Format.summary() |> IO.write()
      {:ok, result}
    end
  end
end
