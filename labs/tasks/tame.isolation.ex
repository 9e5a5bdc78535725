defmodule Mix.Tasks.Tame.Isolation do
  use Tame.Task

  @shortdoc "Measures what an isolated NIF library costs, and what its crash is like"

  @moduledoc """
  Measures what an isolated NIF library costs, and what its crash is like.

      $ mix tame.isolation
      $ mix tame.isolation --quick --json isolation.json
      $ mix tame.isolation --sizes 16,65536 --iterations 100000

  Prints the machine and three tables: calls by size, isolated, by a dirty NIF and by a port; crashes of a host, with the
  time to the exception and to the next answer; the memory of the VM and of the host over many calls. See
  `Tame.Isolation` for how it measures and what it cannot see.

  ## Command line options

    * `--quick` - 1000 calls of each way and size, 3 crashes, 50000 calls for memory; under 15 s on a quiet machine
    * `--sizes N,N` - the payloads, binaries of N bytes (default: #{Enum.join(Tame.Isolation.default_sizes(), ",")})
    * `--iterations N` - calls of each way and size (default: 10000)
    * `--crashes N` - crashes, a second apart (default: 10)
    * `--calls N` - calls between which memory is looked at (default: 2000000)
    * `--seed N` - the order of the ways in each round (default: a new one, which is printed)
    * `--json FILE` - write the result as JSON too

  ## Exit status

  `0` when all was measured, `1` when something failed (the tables name it) or the command line is wrong.
  """

  alias Tame.{Isolation, Options, Output, Payload, Progress}

  @switches [
    quick: :flag,
    sizes: :list,
    iterations: :pos_integer,
    crashes: :pos_integer,
    calls: :pos_integer,
    seed: :non_neg_integer,
    json: :string
  ]

  @impl Mix.Task
  def run(argv) do
    Mix.Task.run("app.config")

    with {:ok, options} <- Options.parse(argv, @switches),
         {:ok, sizes} <- sizes(options[:sizes]),
         :ok <- Output.check(options[:json]),
         result = measure(options, sizes, Enum.join(["mix tame.isolation" | argv], " ")),
         :ok <- Output.write(options[:json], fn -> Isolation.Format.json(result) end),
         do: Tame.Task.outcome(Isolation.ok?(result))
  end

  defp measure(options, sizes, command) do
    result =
      options
      |> Keyword.take([:iterations, :crashes, :calls, :seed])
      |> Keyword.merge(
        which: if(options[:quick], do: :quick, else: :default),
        sizes: sizes,
        command: command,
        progress: Progress.printer()
      )
      |> Isolation.measure()

    Progress.clear()
    result |> Isolation.Format.text() |> IO.write()
    result
  end

  defp sizes(nil), do: {:ok, Isolation.default_sizes()}

  defp sizes(words) do
    Enum.reduce_while(words, {:ok, []}, fn word, {:ok, sizes} ->
      with {size, ""} when size >= 0 <- Integer.parse(word),
           {:ok, _} <- Payload.bytes(size) do
        {:cont, {:ok, Enum.uniq(sizes ++ [size])}}
      else
        {:error, why} -> {:halt, {:error, String.replace(why, "--bytes", "--sizes")}}
        _ -> {:halt, {:error, "--sizes #{word}: expected whole numbers of 0 or more, in bytes"}}
      end
    end)
  end
end
