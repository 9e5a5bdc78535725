defmodule Mix.Tasks.Tame.Latency do
  use Tame.Task

  @shortdoc "Measures what each way of calling native code costs here"

  @moduledoc """
  Measures what each way of calling native code costs here.

      $ mix tame.latency
      $ mix tame.latency --bytes 16 --only nif_normal,nif_dirty_cpu,port
      $ mix tame.latency --term '%{list: [1, 2.0, "three"]}' --json latency.json

  Prints the machine, a table of the methods with the fastest first, and the orders of magnitude between node, port,
  port driver and NIF. See `Tame.Latency` for how it measures and what it cannot see.

  ## Command line options

    * `--bytes N` - the payload: a binary of N bytes (default: 65536)
    * `--term EXPR` - the payload: the value of an Elixir expression, instead of `--bytes`
    * `--iterations N` - calls of each method (default: 100000)
    * `--rounds N` - turns into which they are split; one more turn warms up, uncounted (default: 10)
    * `--seed N` - of the order of methods in each round, which the output names (default: a new one)
    * `--only ID,ID` - measure these methods only (default: all, see below)
    * `--json FILE` - write the result as JSON too (`-`: standard output)
    * `--hgrm FOLDER` - write a percentile distribution for each method as `FOLDER/ID.hgrm`, in HdrHistogram's classic
      text form and in µs, as its public plotter reads it. The folder is made where it is missing

  Methods: #{Enum.map_join(Tame.Latency.Methods.builtin(), ", ", &"`#{&1.describe().id}`")}, and
  those that the project adds by `config :tame_labs, latency_methods: [...]`. These are measured where `--only` names them:
  #{Enum.map_join(Tame.Latency.Methods.native_io(), ", ", &"`#{&1.describe().id}`")}.

  ## Exit status

  `0` when every method that this machine can run ended well, `1` when one failed midway or the command line is wrong.
  A method that cannot start here is `skipped`, with the reason; this is no failure, unless all are.
  """

  alias Tame.{Latency, Options, Output, Payload, Progress}

  @switches [
    bytes: :non_neg_integer,
    term: :string,
    iterations: :pos_integer,
    rounds: :pos_integer,
    seed: :non_neg_integer,
    only: :list,
    json: :string,
    hgrm: :string
  ]

  @impl Mix.Task
  def run(argv) do
    Mix.Task.run("app.config")

    with {:ok, options} <- Options.parse(argv, @switches),
         {:ok, methods} <- methods(options[:only]),
         {:ok, term} <- payload(options[:bytes], options[:term]),
         :ok <-
           Output.apart([options[:json], options[:hgrm] | hgrm_files(options[:hgrm], methods)]),
         :ok <- Output.check(options[:json]),
         :ok <- Output.check_folder(options[:hgrm]),
         result = measure(term, methods, options, Enum.join(["mix tame.latency" | argv], " ")),
         :ok <- Output.write(options[:json], fn -> Latency.Format.json(result) end),
         :ok <- write_hgrm(options[:hgrm], result),
         do: Tame.Task.outcome(Latency.ok?(result), result.methods, &(&1.status != "skipped"))
  end

  defp measure(term, methods, options, command) do
    result =
      Latency.measure(term, options[:iterations] || 100_000,
        methods: methods,
        rounds: options[:rounds] || Latency.default_rounds(),
        seed: options[:seed],
        command: command,
        progress: Progress.printer()
      )

    Progress.clear()
    result |> Latency.Format.text() |> IO.write()
    result
  end

  defp methods(nil), do: {:ok, Latency.Methods.all()}
  defp methods(ids), do: Latency.Methods.fetch(ids)

  defp payload(nil, nil), do: Payload.bytes(65_536)
  defp payload(bytes, nil), do: Payload.bytes(bytes)
  defp payload(nil, text), do: Payload.expression(text)
  defp payload(_, _), do: {:error, "--bytes and --term are two payloads, expected one of them"}

  defp hgrm_files(nil, _methods), do: []
  defp hgrm_files(folder, methods), do: for(m <- methods, do: hgrm_file(folder, m.describe().id))

  defp hgrm_file(folder, id), do: Path.join(folder, "#{id}.hgrm")

  defp write_hgrm(nil, _result), do: :ok

  defp write_hgrm(folder, result) do
    with :ok <- Output.make_folder(folder) do
      Enum.reduce_while(Latency.Format.hgrm(result), :ok, fn {id, text}, :ok ->
        case Output.write(hgrm_file(folder, id), text) do
          :ok -> {:cont, :ok}
          error -> {:halt, error}
        end
      end)
    end
  end
end
