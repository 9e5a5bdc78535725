defmodule Mix.Tasks.Tame.Watch do
  use Tame.Task

  @shortdoc "Watches a running node: who holds its schedulers, and who waits for them"

  @moduledoc """
  Watches a running node: who holds its schedulers, and who waits for them.

      $ mix tame.watch --node app@host
      $ mix tame.watch --node app@host --cookie secret --for 60s --json watch.json
      $ mix tame.watch --node app@host --slices my_nif:decode/1 --calls 50
      $ mix tame.watch --node app@host --lines

  Sends three small Erlang modules to the node, and a fourth with `--slices`. The node needs OTP 25 or newer, and
  neither tame nor Elixir. A node that has one of these modules already is refused. They remove themselves when the
  watch ends, is interrupted or killed, or loses the connection. At the end the task prints the summary, and where the
  output is no terminal nothing else:

      app@127.0.0.1  OTP 25, 2 schedulers, 2 dirty CPU, 10 dirty I/O
      6 seconds, cost 0.26 % of a core there (mean)

      schedulers  utilised %  threads at work  waiting
      normal              15                -        -
      dirty CPU          100                2        1
      dirty I/O            0                0        0

      neighbours woke 123 ms late in the worst second's p99, 128 ms at most

      in a dirty NIF              threads    processes  longest ms
      tame_spin:spin_dirty_nif/1  dirty CPU          3         842

      slices over 10 ms in      called by    count  longest ms  process
      tame_thousand_cuts:cut/1  app:parse/0     19          83  <0.93.0>

      calls traced: 50, 2136 µs (median), 10184 µs at most
        normal slices: 1045, the longest 8034 µs

  ## The screen

  In a terminal the watch has a full screen: the schedulers, who is in native code now, who called NIFs that took long,
  and the hosts of isolated modules where the node runs tame.

    * `q`, Ctrl-C - end the watch, with the summary
    * `p`, space - keep what is shown; the watch goes on, and `p` again shows all of it
    * `s` - sort the callers: by their longest slice, by how many there were, by name
    * up and down (`k`, `j`) - select a process; enter asks it for its function, messages and memory; escape goes back

  The screen is `tame_tty`'s (`libraries/tty`), a package of its own. A project that has only the labs gets a new text
  every second instead, as do `--lines` and `--json`, and a terminal that another program in the VM reads. The
  terminal is as before when the watch has ended, however it ends.

  ## What the figures are

  `threads at work` and `waiting` are of the dirty schedulers; the summary has the highest of all seconds. `in a dirty
  NIF` lists processes that were seen there at least twice in a row, and for how long without a break. A process that
  has called the same NIF again meanwhile looks like one that is still in its first call. Processes are asked only
  while dirty schedulers are busy or a normal one is held, as many as 0.5 % of a core allow; the screen says so when
  that is less than half of them. Neighbours wake every 100 ms on each scheduler; a missed wake-up counts with its own
  delay.

  The VM reports slices of 10 ms and more, but not the NIF that they were spent in. The process of a NIF that hops
  names the NIF. The process of a plain NIF names only the function that called it, so the watch looks up which NIFs
  that function calls: if there is one, it was that one; if there are several, it was one of them. A NIF in which a
  process goes on on a dirty thread is not blamed for the slice before. A slice may hold many short calls. Up to OTP 27 a node has one system monitor. If somebody else uses it, the watch leaves it to them
  and does not see long slices.

  With `--slices` the callers of one function are traced while they are in it, on OTP 27 and newer in a trace session
  of its own. Without `--slices` nothing is traced.

  ## What it costs

  `cost` is the time of the watch's own work on the node. Each wake-up (about 25 a second with two schedulers) also
  makes an idle scheduler look for work before it sleeps again: by the operating system's count, an idle node used 0.6
  % of a core more while watched, and 0.2 % without busy waiting (`+sbwt none`); see `bench/watch.exs`. Tracing costs
  a microsecond for each event.

  ## What it cannot see

  Slices below 10 ms; which call of a NIF a slice was spent in; anything while all schedulers are held: then the node
  answers late, and the output says so. On a node with one scheduler, a blocking NIF blocks the watcher too.

  ## Command line options

    * `--node NAME` - the node, as `name@host`; a dot in the host part selects long names
    * `--cookie COOKIE` - its cookie (default: this user's)
    * `--for TIME` - how long to watch, such as `60s`, at most `1000s` (default: 600s); Ctrl-C ends it sooner, without a
      summary where there is no full screen
    * `--slices FUNCTION` - trace calls of that function and read their slices
    * `--calls N` - how many calls to trace, at most 10000 (default: 100)
    * `--lines` - no full screen
    * `--json FILE` - write all seconds and all traced calls as JSON (`-`: standard output) at the end

  ## Exit status

  `0` when the node was watched for as long as asked. `1` when the connection was lost before (what was seen until
  then is printed), or when the command line is wrong, the node is not there, refuses, or is watched already.
  """

  alias Tame.{Duration, FunctionName, Options, Output, SystemInfo, Watch}
  alias Tame.Watch.{Connection, Format, Screen}

  @switches [
    node: :string,
    cookie: :string,
    for: :string,
    slices: :string,
    calls: :pos_integer,
    lines: :flag,
    json: :string
  ]

  @default_for "600s"
  @default_calls 100
  # A call has several events, which the node keeps until it is asked for them.
  @most_calls 10_000

  @impl Mix.Task
  def run(argv) do
    Mix.Task.run("app.config")

    with {:ok, options} <- Options.parse(argv, @switches),
         {:ok, node} <- node_of(options[:node]),
         {:ok, for_ms} <- duration(options[:for] || @default_for),
         {:ok, slices} <- slices(options[:slices], options[:calls]),
         :ok <- Output.check(options[:json]),
         system = SystemInfo.collect(command(argv)),
         watch = %{node: node, cookie: options[:cookie], for_ms: for_ms, slices: slices},
         {:ok, result} <- shown(watch, options),
         do: finish(result, system, slices, options[:json])
  end

  # ---- the command line -----------------------------------------------------------------------------

  defp node_of(nil), do: {:error, "no node to watch, expected: mix tame.watch --node name@host"}
  defp node_of(text), do: Connection.parse(text)

  defp duration(text) do
    case Duration.parse(text, "--for") do
      {:ok, us} when us >= 1_000_000 -> {:ok, div(us, 1000)}
      {:ok, _} -> {:error, "--for #{text}: expected 1s or more"}
      {:error, why} -> {:error, why}
    end
  end

  defp slices(nil, nil), do: {:ok, nil}
  defp slices(nil, _calls), do: {:error, "--calls goes with --slices"}

  defp slices(_text, calls) when is_integer(calls) and calls > @most_calls,
    do: {:error, "--calls #{calls}: expected at most #{@most_calls}"}

  defp slices(text, calls) do
    case FunctionName.parse(text) do
      {:ok, function} -> {:ok, {function, calls || @default_calls}}
      {:error, why} -> {:error, "--slices #{why}"}
    end
  end

  # A cookie is a secret.
  defp command(argv) do
    {argv, _} =
      Enum.map_reduce(argv, nil, fn
        _, "--cookie" -> {"...", nil}
        "--cookie=" <> _, _ -> {"--cookie=...", nil}
        word, _ -> {word, word}
      end)

    Enum.join(["mix tame.watch" | argv], " ")
  end

  # ---- telling --------------------------------------------------------------------------------------

  defp shown(watch, options) do
    cond do
      # Where the output is no terminal, the sum at the end is enough.
      not IO.ANSI.enabled?() -> Watch.run(Map.put(watch, :each, fn _, _, _ -> :ok end))
      options[:lines] || options[:json] || not Screen.here?() -> lines(watch)
      true -> full_screen(watch)
    end
  end

  defp full_screen(watch) do
    case Screen.start(watch.node) do
      {:ok, screen} ->
        try do
          Watch.run(Map.put(watch, :each, &Screen.second(screen, &1, &2, &3)))
        after
          Screen.stop(screen)
        end

      {:error, why} ->
        Mix.shell().info("no full screen: #{why}")
        lines(watch)
    end
  end

  defp lines(watch) do
    each = fn facts, second, calls ->
      IO.write([IO.ANSI.home(), IO.ANSI.clear(), Format.screen(facts, second, calls)])
    end

    with {:ok, result} <- Watch.run(Map.put(watch, :each, each)) do
      IO.write([IO.ANSI.home(), IO.ANSI.clear()])
      {:ok, result}
    end
  end

  defp finish(result, system, slices, json) do
    result |> Format.summary() |> IO.write()
    function = slices && elem(slices, 0)

    with :ok <- Output.write(json, fn -> Format.json(result, system, function) end) do
      if result.ended, do: Mix.shell().error("#{result.facts.node}: #{result.ended}")
      Tame.Task.outcome(result.ended == nil)
    end
  end
end
