defmodule Mix.Tasks.Tame.Watch do
  use Mix.Task

  @shortdoc "Watches a running node: who holds its schedulers, and who waits for them"

  @moduledoc """
  Watches a running node: who holds its schedulers, and who waits for them.

      $ mix tame.watch --node app@host
      $ mix tame.watch --node app@host --cookie secret --for 60s --json watch.json
      $ mix tame.watch --node app@host --slices my_nif:decode/1 --calls 50

  @@SAMPLE@@

  ## Command line options

    * `--node NAME` - the node, as `name@host`; by its host's dots it has a long name or a short one
    * `--cookie COOKIE` - its cookie (default: this user's)
    * `--for TIME` - how long to watch, as `60s`, at most `1000s` (default: 600s); Ctrl-C twice ends it sooner
    * `--slices FUNCTION` - trace calls of that function and read their slices
    * `--calls N` - so many calls, at most 10000 (default: 100)
    * `--json FILE` - write every second and every traced call as JSON at the end

  ## Exit status

  `0` when the node was watched for as long as asked; `1` when it was lost before, with what was seen until then, or when the command
  line is wrong, the node is not there, refuses, or is watched already.
  """

  alias Tame.{Options, Output, SystemInfo, Watch}
  alias Tame.Audit.Target
  alias Tame.Contention.Plan
  alias Tame.Watch.{Connection, Format}

  @switches [
    node: :string,
    cookie: :string,
    for: :string,
    slices: :string,
    calls: :pos_integer,
    json: :string
  ]

  @default_for "600s"
  @default_calls 100
  # Every call is some events, which are kept until they are told.
  @most_calls 10_000

  @impl Mix.Task
  def run(argv) do
    Mix.Task.run("app.config")

    with {:ok, options} <- Options.parse(argv, @switches),
         {:ok, node} <- node_of(options[:node]),
         {:ok, for_ms} <- duration(options[:for] || @default_for),
         {:ok, slices} <- slices(options[:slices], options[:calls]),
         :ok <- writable(options[:json]),
         system = SystemInfo.collect(command(argv)),
         {:ok, result} <-
           Watch.run(%{
             node: node,
             cookie: options[:cookie],
             for_ms: for_ms,
             slices: slices,
             each: screen(IO.ANSI.enabled?())
           }) do
      finish(result, system, slices, options[:json])
    else
      {:error, message} -> Mix.raise(message)
    end
  end

  # ---- the command line -----------------------------------------------------------------------------

  defp node_of(nil), do: {:error, "no node to watch, expected: mix tame.watch --node name@host"}
  defp node_of(text), do: Connection.parse(text)

  defp duration(text) do
    case Plan.parse_durations([text]) do
      {:ok, [us]} when us >= 1_000_000 -> {:ok, div(us, 1000)}
      {:ok, _} -> {:error, "--for #{text}: expected 1s or more"}
      {:error, why} -> {:error, "--for: #{why}"}
    end
  end

  defp slices(nil, nil), do: {:ok, nil}
  defp slices(nil, _calls), do: {:error, "--calls goes with --slices"}

  defp slices(_text, calls) when is_integer(calls) and calls > @most_calls,
    do: {:error, "--calls #{calls}: expected at most #{@most_calls}"}

  defp slices(text, calls) do
    case Target.parse(text) do
      {:ok, {:function, function}} -> {:ok, {function, calls || @default_calls}}
      _ -> {:error, "--slices #{text}: expected a function as module:function/arity"}
    end
  end

  # A cookie is nobody else's to read.
  defp command(argv) do
    {argv, _} =
      Enum.map_reduce(argv, nil, fn
        _, "--cookie" -> {"...", nil}
        "--cookie=" <> _, _ -> {"--cookie=...", nil}
        word, _ -> {word, word}
      end)

    Enum.join(["mix tame.watch" | argv], " ")
  end

  defp writable(nil), do: :ok
  defp writable(path), do: Output.check(path)

  # ---- telling --------------------------------------------------------------------------------------

  # Where the output is no terminal, the sum at the end is enough.
  defp screen(false), do: fn _, _, _ -> :ok end

  defp screen(true) do
    fn facts, second, calls ->
      IO.write([IO.ANSI.home(), IO.ANSI.clear(), Format.screen(facts, second, calls)])
    end
  end

  defp finish(result, system, slices, json) do
    if IO.ANSI.enabled?(), do: IO.write([IO.ANSI.home(), IO.ANSI.clear()])
    result |> Format.summary() |> IO.write()
    function = slices && elem(slices, 0)

    if json do
      with {:error, message} <- Output.write(json, Format.json(result, system, function)),
           do: Mix.raise(message)
    end

    if result.ended do
      Mix.shell().error("#{result.facts.node}: #{result.ended}")
      exit({:shutdown, 1})
    end

    :ok
  end
end
