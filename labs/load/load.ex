defmodule Tame.Load do
  @moduledoc """
  The load lab: what does a server that calls native code answer, by placement, under load?

      iex> Tame.Load.measure(which: :quick, placements: ["inline", "yielding"])

  A server runs in a VM of its own, started for each cell; clients are other OS processes. `measure/1` returns data, from which
  the tables, the JSON and the report are made.

    * *capacity* - a closed loop: `h2load` asks for `/hello` as fast as the server answers. What a request costs in CPU, by kind of
      thread, is what can be compared; requests a second depend on the client too, which uses the same cores
    * *placements* - an open loop: one client asks for `/job`, a job of a known length (`tame_spin`), at a rate that takes that many
      per cent of all cores, whether or not the server keeps up; a second one asks for `/hello` all the time. Its p99 is what
      users of everything else notice
    * *limits* - the rate of jobs is doubled until hello's p99 leaves a bound, more than 1 % of hello is refused or fails, or jobs
      are not answered as fast as they are asked for. Then comes twice the highest rate that was held: what is refused, what is given up, and when hello is normal again

  ## How it measures

  The open loop is a program of the lab's own, `tame_load`: every request has a planned start, and its time is counted from there.
  So a server that stands still is seen in each request that was planned meanwhile (no coordinated omission). It has a bounded
  number of connections and of requests on each; what waits for one of them is late by that. What is not answered
  3 s after the last one was planned is given up: it counts as failed, and in latencies with the time that it had waited.

  Utilisation of the schedulers is read inside the VM each 100 ms; a reading that comes late means that a scheduler was held. Which
  threads used the cores is read outside, from the kernel, each 20 ms (`Tame.CPU`). All share one clock.

  ## What it cannot see

  Server and clients share the machine: the clients' share is shown, and so is how late the client itself was. Connections are
  made before the run, on the loopback interface, without TLS. One round says nothing of the next: ask for `--rounds`.
  """

  alias Tame.Load.{Cell, Client, Closed, Cowboy, Figures, Format, H2load, Limit, Plan, Requests}
  alias Tame.Load.{Rounds, Verdict}
  alias Tame.{Duration, OtherLoad, SystemInfo, Turns, Warning}

  @typedoc "Lists, maps, texts and numbers, as JSON has them."
  @type result :: map()

  @typedoc """
  What to measure:

    * `:which` - `:quick` or `:default`: what the other defaults are
    * `:only` - some of `"capacity"`, `"placements"`, `"limits"` (default: the first two, and `:find_limit_us` adds the third)
    * `:server` - `"cowboy"`, `"cowboy_stream"`, `"bare"`, or a module with the behaviour `Tame.Load.Server`; `:protocol` - `:h1` or
      `:h2` (default: the last that the server speaks); `:port` (default: any)
    * `:placements` - ids; `:jobs` - in µs; `:load_percent` - of the time of all cores (default: 200)
    * `:hello_rate` - a second (default: 500); `:for_ms` - how long jobs are asked for
    * `:find_limit_us` - the bound of hello's p99
    * `:rounds`, `:seed`, `:flags`, `:command`, `:progress` - as in `Tame.Contention`
  """
  @type option :: {atom(), term()}

  @servers %{
    "cowboy" => :tame_load_cowboy,
    "cowboy_stream" => :tame_load_cowboy_stream,
    "bare" => :tame_load_bare
  }
  @cowboys [:tame_load_cowboy, :tame_load_cowboy_stream]

  @parts ~w(capacity placements limits)

  # More than any server of an Erlang VM answers on a few cores, for a moment that fits in memory.
  @ceiling_rate 100_000
  @ceiling_ms 500

  # A client that was later than this had no core for itself.
  @late_us 5_000

  @doc "The parts of the lab."
  @spec parts() :: [String.t()]
  def parts, do: @parts

  @doc "The names of the lab's own servers."
  @spec servers() :: [String.t()]
  def servers, do: Map.keys(@servers)

  @doc "Measures what is asked for. Raises `ArgumentError` for what cannot be run at all, see `prepare/1`."
  @spec measure([option()]) :: result()
  def measure(options \\ []) do
    with {:ok, plan} <- prepare(options), {:ok, result} <- run(plan) do
      result
    else
      {:error, why} -> raise ArgumentError, why
    end
  end

  @doc "Checks all that can be refused before anything is measured. Returns the plan for `run/1`."
  @spec prepare([option()]) :: {:ok, map()} | {:error, String.t()}
  def prepare(options) do
    options =
      Keyword.validate!(options,
        only: nil,
        protocol: nil,
        placements: nil,
        jobs: nil,
        for_ms: nil,
        find_limit_us: nil,
        seed: nil,
        which: :default,
        server: "cowboy",
        port: 0,
        load_percent: 200,
        hello_rate: 500,
        rounds: 1,
        flags: [],
        command: "Tame.Load.measure",
        progress: fn _ -> :ok end
      )
      |> Map.new()

    which = options.which

    parts =
      options.only ||
        ["capacity", "placements"] ++ if(options.find_limit_us, do: ["limits"], else: [])

    with :ok <- known_parts(parts),
         {:ok, server} <- server(options.server),
         :ok <- cowboy(server),
         {:ok, protocol} <- protocol(server, options),
         {:ok, placements} <- Plan.fetch(options.placements || Plan.ids(which)),
         {:ok, h2load} <- if("capacity" in parts, do: H2load.version(), else: {:ok, nil}),
         :ok <- hello_rate(options.hello_rate),
         :ok <- :tame_labs_native.build(),
         :ok <- flags(options.flags) do
      {:ok,
       Map.merge(options, %{
         parts: parts,
         module: server,
         protocol: protocol,
         placements: placements,
         jobs: options.jobs || Plan.jobs(which),
         for_ms: options.for_ms || Plan.for_ms(which),
         h2load: h2load,
         bound_us: options.find_limit_us || Plan.bound_us(),
         seed: options.seed || Turns.seed()
       })}
    end
  end

  # Without any the first server shows it.
  defp flags([]), do: :ok
  defp flags(flags), do: Tame.Peer.check(flags)

  defp known_parts(parts) do
    case parts -- @parts do
      [] -> :ok
      [part | _] -> {:error, "--only #{part}: expected some of #{Enum.join(@parts, ", ")}"}
    end
  end

  defp server(name) when is_map_key(@servers, name), do: {:ok, @servers[name]}

  defp server(name) do
    module = Module.concat([name])
    erlang = if name =~ ~r/^[a-z]\w*$/, do: String.to_atom(name), else: module

    case Enum.find([module, erlang], &Code.ensure_loaded?/1) do
      nil ->
        {:error,
         "--server #{name}: expected #{Enum.join(servers(), ", ")} or a module of this project, which there is none of that name"}

      module ->
        if function_exported?(module, :start, 2) and function_exported?(module, :protocols, 0),
          do: {:ok, module},
          else:
            {:error,
             "--server #{name}: expected a module with the behaviour Tame.Load.Server: protocols/0, start/2"}
    end
  end

  defp cowboy(module) when module in @cowboys, do: with({:ok, _} <- Cowboy.find(), do: :ok)
  defp cowboy(_module), do: :ok

  defp protocol(module, %{protocol: nil}), do: {:ok, List.last(module.protocols())}

  defp protocol(module, %{protocol: protocol, server: name}) do
    if protocol in module.protocols(),
      do: {:ok, protocol},
      else:
        {:error,
         "--protocol #{protocol}: the server #{name} speaks #{Enum.join(module.protocols(), ", ")}"}
  end

  defp hello_rate(rate) do
    if rate <= Plan.most_rate(),
      do: :ok,
      else: {:error, "--hello-rate #{rate}: expected at most #{Plan.most_rate()} a second"}
  end

  # ---- the run -----------------------------------------------------------------------------------

  @doc "Runs what `prepare/1` made. A server that cannot be driven at all is an error; one that dies is a row."
  @spec run(map()) :: {:ok, result()} | {:error, String.t()}
  def run(plan) do
    system = SystemInfo.collect(plan.command)
    load = OtherLoad.start()
    plan.progress.(%{what: "the client's own ceiling", done: 0, total: 1})

    with {:ok, facts} <- facts(plan), {:ok, ceiling} <- ceiling() do
      plan = Map.put(plan, :facts, facts)
      capacity = if "capacity" in plan.parts, do: capacity(plan), else: []
      cells = if "placements" in plan.parts, do: cells(plan), else: []
      limits = if "limits" in plan.parts, do: Limit.all(plan, &cell/5), else: []
      system = SystemInfo.ended(system ++ [peer_flags: flags_text(plan.flags)], load)

      result = %{
        tool: "tame.load",
        format: 1,
        system: system,
        warnings: [],
        command: plan.command,
        server: plan.server,
        protocol: to_string(plan.protocol),
        open_client: "tame_load",
        closed_client: plan.h2load,
        cores: facts.cores,
        load_percent: plan.load_percent,
        hello_rate: plan.hello_rate,
        bound_us: plan.bound_us,
        for_ms: plan.for_ms,
        rounds: plan.rounds,
        seed: plan.seed,
        ceiling: ceiling,
        capacity: capacity,
        cells: cells,
        limits: limits
      }

      {:ok, %{result | warnings: SystemInfo.warnings(system) ++ warnings(result)}}
    end
  end

  @doc "Whether every server lived, every cell was measured, and all counts agree."
  @spec ok?(result()) :: boolean()
  def ok?(result) do
    Enum.all?(result.cells, &(&1.status == "ok" and &1.counts_agree?)) and
      Enum.all?(result.capacity, &(&1.status == "ok")) and
      Enum.all?(result.limits, &(&1.status == "ok"))
  end

  defp flags_text([]), do: "none"
  defp flags_text(flags), do: Enum.join(flags, " ")

  # Also whether the server can be driven at all: what it says is better said once than in each row.
  defp facts(plan) do
    plan
    |> base()
    |> Map.put(:work, :nothing)
    |> Cell.with_server(plan.flags, &{:ok, &1.facts})
  end

  defp base(plan), do: %{server: plan.module, protocol: plan.protocol, port: plan.port}

  # What the open loop's client can do at most here, and what a request costs it.
  defp ceiling do
    spec = %{server: :tame_load_bare, protocol: :h1, port: 0, work: :nothing}

    Cell.with_server(spec, [], fn server ->
      client =
        Client.start(%{
          port: server.facts.port,
          protocol: :h1,
          path: "/hello",
          rate: @ceiling_rate,
          count: div(@ceiling_rate * @ceiling_ms, 1000),
          connections: 64,
          streams: 1,
          start_ns: 0,
          wait_ms: 0
        })

      with {:ok, seen} <- Client.await(client, System.monotonic_time(:millisecond) + 20_000) do
        answered = Requests.counts(seen.requests).answered

        {:ok,
         %{
           answered_per_s: 1000 * answered / @ceiling_ms,
           client_us_per_request: seen.cpu_ns / 1000 / max(1, answered)
         }}
      end
    end)
  end

  # ---- capacity ----------------------------------------------------------------------------------

  defp capacity(plan) do
    servers =
      if plan.which == :default and plan.module in @cowboys,
        do:
          for(
            {name, module} <- Enum.sort(@servers),
            module in @cowboys,
            p <- [:h1, :h2],
            do: {name, module, p}
          ),
        else: [{plan.server, plan.module, plan.protocol}]

    Closed.rows(servers, plan)
  end

  # ---- placements --------------------------------------------------------------------------------

  defp cells(plan) do
    turns =
      plan.placements
      |> Plan.cells(plan.jobs)
      |> Enum.with_index()
      |> Turns.all(plan.rounds, plan.seed)

    turns
    |> Enum.with_index()
    |> Enum.map(fn {{{placement, us}, place}, done} ->
      plan.progress.(%{what: cell_text(placement, us), done: done, total: length(turns)})

      {place,
       cell(
         plan,
         placement,
         us,
         Plan.job_rate(us, plan.load_percent, plan.facts.cores),
         plan.for_ms
       )}
    end)
    |> Rounds.together(& &1.hello_p99_us)
  end

  defp cell_text(placement, 0), do: placement.id
  defp cell_text(placement, us), do: "#{placement.id}, #{Duration.text(us)}"

  @doc false
  # One cell: this many jobs a second, for so long.
  def cell(plan, placement, us, rate, for_ms) do
    spec =
      plan
      |> base()
      |> Map.merge(Plan.times(for_ms))
      |> Map.merge(%{
        work: Plan.work(placement, us),
        hello: Map.put(Plan.connections(:hello, plan.protocol), :rate, plan.hello_rate),
        jobs: Map.put(Plan.connections(:jobs, plan.protocol), :rate, rate)
      })

    row = %{placement: placement.id, job_us: us, job_rate: rate}

    case Cell.run(spec, plan.flags) do
      {:ok, raw} ->
        figures = Figures.figures(raw, spec, plan.bound_us)
        row |> Map.merge(status(raw, figures)) |> Map.merge(figures)

      {:error, why} ->
        row |> Map.merge(%{status: "failed", reason: why}) |> Map.merge(Figures.none())
    end
  end

  defp status(%{died: %{after_ms: ms, how: how}}, _figures),
    do: %{status: "died", reason: "died after #{Duration.measured(1000 * ms)}, #{how}"}

  defp status(_lived, %{hello_answered: 0, hello_planned: planned}),
    do: %{status: "failed", reason: Requests.none_answered(planned)}

  defp status(_lived, _figures), do: %{status: "ok", reason: nil}

  # ---- warnings ----------------------------------------------------------------------------------

  defp warnings(result) do
    late = for %{client_late_p99_us: us} <- result.cells, us != nil, us > @late_us, do: us
    disagree = Enum.reject(result.cells, & &1.counts_agree?)
    lost = Enum.filter(result.cells, &Verdict.lost?/1)

    Warning.select([
      {late != [], :client_late,
       fn ->
         "In #{length(late)} of #{length(result.cells)} cells the client itself was late, by up to #{Duration.measured(Enum.max(late))} at p99, " <>
           "because it shares the cores with the server: so much of the latencies may be its own."
       end},
      {lost != [], :hello_lost,
       fn ->
         "Hello was refused or failed, and its times are of what was answered: " <>
           Enum.map_join(lost, "; ", &(Format.name(&1) <> Verdict.lost_text(&1))) <> "."
       end},
      {disagree != [], :counts_disagree,
       fn ->
         "What the server counted and what the clients saw does not agree: " <>
           Enum.map_join(disagree, ", ", &"#{&1.placement} #{Duration.text(max(1, &1.job_us))}") <>
           "."
       end}
    ])
  end
end
