defmodule Mix.Tasks.Tame.Load do
  use Tame.Task

  @shortdoc "Measures what a server answers while its handlers call native code, by placement"

  @moduledoc """
  Measures what a server answers while its handlers call native code, by placement.

      $ mix tame.load
      $ mix tame.load --quick --json load.json
      $ mix tame.load --placements inline,yielding --job 10ms --find-limit 10ms
      $ mix tame.load --server MyServer --protocol h1 --port 8090

  Starts the server in a VM of its own and drives it from other OS processes. Prints the machine and tables: what a request costs
  in a closed loop; by placement and length of a job, how late `/hello` is answered while `/job` is asked for at a fixed rate; and with
  `--find-limit` the rate that each placement holds. See `Tame.Load` for how it measures and what it cannot see.

  cowboy comes from the project's deps, from `TAME_COWBOY`, or from Debian's RabbitMQ; `h2load` from Debian's nghttp2-client.

  ## Command line options

    * `--quick` - one length of a job, four placements, one server; under 90 s
    * `--only PART,PART` - some of #{Enum.map_join(Tame.Load.parts(), ", ", &"`#{&1}`")} (default: `capacity`, `placements`)
    * `--server NAME` - #{Enum.map_join(Tame.Load.servers(), ", ", &"`#{&1}`")}, or a module of the project with the behaviour
      `Tame.Load.Server` (default: `cowboy`)
    * `--protocol P` - `h1` or `h2` (default: the last that the server speaks)
    * `--port N` - of 127.0.0.1 (default: one that is free)
    * `--placements NAME,NAME` - some of #{Enum.map_join(Tame.Load.Plan.placements(), ", ", &"`#{&1.id}`")} (default: all)
    * `--job DURATION,DURATION` - the lengths of jobs; `0` is a request without a job (default: 0,1ms,10ms,100ms)
    * `--load PERCENT` - jobs that are asked for, in per cent of the time of all cores (default: 200)
    * `--hello-rate N` - requests a second for `/hello` (default: 500)
    * `--for DURATION` - how long jobs are asked for in each cell (default: 5s)
    * `--find-limit DURATION` - doubles the rate of jobs until hello's p99 is above this, then asks for twice what was held
    * `--rounds N` - how often each cell is measured; tables have medians and the spread (default: 1)
    * `--seed N` - the order of the cells (default: a new one, which is printed)
    * `--flags "FLAGS"` - emulator flags of the server's VM
    * `--json FILE` - write the result as JSON too

  ## Exit status

  `0` when all was measured and all counts agree, `1` when a server died or answered no hello, a cell failed or counts do not agree
  (the tables name it), or the command line is wrong.
  """

  alias Tame.{Duration, Load, Options, Output, Progress}

  @switches [
    quick: :flag,
    only: :list,
    server: :string,
    protocol: :string,
    port: :non_neg_integer,
    placements: :list,
    job: :list,
    load: :pos_integer,
    hello_rate: :pos_integer,
    for: :string,
    find_limit: :string,
    rounds: :pos_integer,
    seed: :non_neg_integer,
    flags: :words,
    json: :string
  ]

  @most_percent 10_000
  @longest_for_us 600_000_000

  @impl Mix.Task
  def run(argv) do
    Mix.Task.run("app.config")

    with {:ok, options} <- Options.parse(argv, @switches),
         {:ok, asked} <- asked(options, Enum.join(["mix tame.load" | argv], " ")),
         {:ok, plan} <- Load.prepare(asked),
         :ok <- Output.check(options[:json]),
         {:ok, result} <- measured(plan),
         :ok <- Output.write(options[:json], fn -> Load.Format.json(result) end),
         do: Tame.Task.outcome(Load.ok?(result))
  end

  defp measured(plan) do
    run = Load.run(plan)
    Progress.clear()

    with {:ok, result} <- run do
      result |> Load.Format.text() |> IO.write()
      {:ok, result}
    end
  end

  defp asked(options, command) do
    with {:ok, jobs} <- jobs(options[:job]),
         {:ok, protocol} <- protocol(options[:protocol]),
         {:ok, port} <- port(options[:port] || 0),
         {:ok, percent} <- percent(options[:load] || 200),
         {:ok, for_us} <- duration(options[:for], "--for", 1000, @longest_for_us),
         {:ok, bound_us} <- duration(options[:find_limit], "--find-limit", 1, @longest_for_us) do
      {:ok,
       [
         which: if(options[:quick], do: :quick, else: :default),
         protocol: protocol,
         port: port,
         jobs: jobs,
         load_percent: percent,
         for_ms: for_us && div(for_us, 1000),
         find_limit_us: bound_us,
         command: command,
         progress: Progress.printer()
       ] ++
         Keyword.take(options, [:only, :server, :placements, :hello_rate, :rounds, :seed, :flags])}
    end
  end

  defp jobs(nil), do: {:ok, nil}

  defp jobs(words) do
    Enum.reduce_while(words, {:ok, []}, fn word, {:ok, jobs} ->
      case if(word in ~w(0 0us 0ms 0s), do: {:ok, 0}, else: Duration.parse(word, "--job")) do
        {:ok, us} -> {:cont, {:ok, jobs ++ [us]}}
        {:error, why} -> {:halt, {:error, why}}
      end
    end)
  end

  defp protocol(nil), do: {:ok, nil}
  defp protocol("h1"), do: {:ok, :h1}
  defp protocol("h2"), do: {:ok, :h2}
  defp protocol(text), do: {:error, "--protocol #{text}: expected h1 or h2"}

  defp port(port) when port <= 65_535, do: {:ok, port}
  defp port(port), do: {:error, "--port #{port}: expected a number up to 65535"}

  defp percent(percent) when percent <= @most_percent, do: {:ok, percent}

  defp percent(percent),
    do: {:error, "--load #{percent}: expected at most #{@most_percent} per cent"}

  defp duration(nil, _name, _least_us, _most_us), do: {:ok, nil}

  defp duration(text, name, least_us, most_us) do
    with {:ok, us} <- Duration.parse(text, name) do
      if us >= least_us and us <= most_us,
        do: {:ok, us},
        else:
          {:error,
           "#{name} #{text}: expected #{Duration.text(least_us)} to #{Duration.text(most_us)}"}
    end
  end
end
