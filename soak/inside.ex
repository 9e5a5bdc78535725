defmodule Tame.Soak.Inside do
  @moduledoc "The VM in which everything goes wrong: isolates, calls, makes trouble, looks, and reports."

  alias Tame.Soak.{Callers, Gauges, Libraries, Trouble}
  alias Tame.Test.HostileHost

  @callers 60
  @look_ms 1000
  @line_s 10
  # The figures with which the last ones are compared are taken after this part of the time, at most 3 minutes.
  @settled 1 / 3
  @quiet_ms 20_000
  # Kinds that no call may come to, and no caller.
  @wrong [:wrong, :died, :stuck]

  def run(options) do
    quiet_logger()
    {:ok, _} = Application.ensure_all_started(:tame)
    first = Gauges.all()
    suspects = options.mapped -- Libraries.mapped_files()
    for library <- options.libraries, do: isolate(library, options)
    began = now_ms()
    warden = Callers.start(options.libraries, @callers)
    trouble = Trouble.start()

    state = %{
      began: began,
      ends: began + options.seconds * 1000,
      settled: began + min(180_000, round(options.seconds * 1000 * @settled)),
      line: began,
      earlier: nil,
      suspects: suspects,
      modules:
        for(%{module: module, options: %{bind: :recompile}} <- options.libraries, do: module),
      in_vm: MapSet.new(),
      info_ms: 0,
      trouble: trouble,
      hostile: options.hostile
    }

    state = watch(state)
    report(state, first, warden, options)
  end

  defp isolate(%{module: module, library: library, options: options}, %{hostile: hostile}) do
    options =
      if module == Libraries.hostile(),
        do: Map.merge(options, Map.put(HostileHost.options(), :host, hostile)),
        else: options

    case :tame.isolate(module, options) do
      :ok -> Tame.IsolationCalls.load(library)
      {:error, {reason, text}} -> raise "#{module} is not isolated: #{reason}: #{text}"
    end
  end

  # ---- while it lasts --------------------------------------------------------------------------------

  defp watch(state) do
    now = now_ms()
    state = state |> look() |> settle(now) |> line(now)

    if now < state.ends do
      Process.sleep(@look_ms)
      watch(state)
    else
      state
    end
  end

  # What was isolated is never in this VM: neither its file nor, where no shim stands for it, any NIF.
  defp look(state) do
    mapped = for file <- Libraries.mapped_files(), file in state.suspects, do: {:mapped, file}

    bound =
      for module <- :erlang.system_info(:taints), module in state.modules, do: {:bound, module}

    {us, _} = :timer.tc(fn -> bounded(&:tame.info/0, 10_000) end)
    in_vm = Enum.into(mapped ++ bound, state.in_vm)

    for what <- MapSet.difference(in_vm, state.in_vm),
        do: IO.puts("        in the VM: #{inspect(what)}")

    %{
      state
      | in_vm: in_vm,
        info_ms: max(state.info_ms, div(us, 1000))
    }
  end

  defp settle(%{earlier: nil, settled: settled} = state, now) when now >= settled do
    %{state | earlier: Gauges.all()}
  end

  defp settle(state, _), do: state

  defp line(%{line: line} = state, now) when now < line, do: state

  defp line(state, now) do
    counts = Callers.counts()
    right = sum(counts, &(&1 == :right))
    wrong = sum(counts, &(&1 in @wrong))
    other = sum(counts, &(&1 not in [:right | @wrong]))
    gauges = Gauges.all()
    words = for {name, value} <- Enum.sort(gauges), do: " #{name} #{value}"
    done = for {name, value} <- done(state), do: " #{name} #{value}"

    IO.puts([
      String.pad_leading("#{div(now - state.began, 1000)} s:", 7),
      " right #{right} errors #{other} wrong #{wrong} in_vm #{MapSet.size(state.in_vm)}",
      done,
      words
    ])

    %{state | line: state.line + @line_s * 1000}
  end

  defp done(state) do
    Trouble.counts(state.trouble) ++ [hostile: HostileHost.starts(state.hostile)]
  end

  defp sum(counts, which), do: Enum.sum(for({{_, kind}, count} <- counts, which.(kind), do: count))

  # ---- the end ---------------------------------------------------------------------------------------

  defp report(state, first, warden, options) do
    state = look(state)
    under_load = Gauges.all()
    done = done(state)
    Trouble.stop(state.trouble)
    stopped = bounded(fn -> Callers.stop(warden) end, 60_000)
    for pid <- Process.list(), do: :erlang.garbage_collect(pid)
    idle = Tame.Await.until(fn -> Gauges.all().slots == 0 end, @quiet_ms)
    answers = all_at_once(options.libraries, &answers?/1)

    restored =
      for %{module: module} <- options.libraries,
          do: {module, bounded(fn -> :tame.restore(module) end, 60_000)}

    left = fn -> Gauges.left(first, Gauges.all()) end
    _ = Tame.Await.until(fn -> left.() == [] end, @quiet_ms)

    wrong = Callers.wrong()
    beyond = Gauges.beyond(state.earlier, under_load)

    failures =
      [
        for({library, what, text} <- wrong, do: "wrong: #{library} #{inspect(what)}: #{text}"),
        for(what <- state.in_vm, do: "in the VM: #{inspect(what)}"),
        for(
          {gauge, from, to, most} <- beyond,
          do: "leak: #{gauge} #{from} -> #{to}, at most #{most}"
        ),
        for(
          {gauge, from, to, most} <- left.(),
          do: "left: #{gauge} #{from} -> #{to}, at most #{most}"
        ),
        if(stopped == :stuck, do: ["callers do not end"], else: []),
        if(idle, do: [], else: ["slots are in use although nobody calls: #{Gauges.all().slots}"]),
        for(
          {module, answer} <- answers,
          answer != :right,
          do: "#{module} does not answer: #{inspect(answer, limit: 8)}"
        ),
        for(
          {module, answer} <- restored,
          answer != :ok,
          do: "restore of #{module}: #{inspect(answer, limit: 8)}"
        ),
        if(state.info_ms > 5000, do: ["tame:info/0 took #{state.info_ms} ms"], else: [])
      ]
      |> List.flatten()

    lines = [
      table(),
      gauges(state.earlier, under_load),
      "\n",
      inspect(done),
      "\n",
      Enum.map(failures, &[&1, "\n"])
    ]

    {if(failures == [], do: :ok, else: :failed), IO.iodata_to_binary(lines)}
  end

  defp all_at_once(libraries, fun) do
    tasks = for library <- libraries, do: {library.module, Task.async(fn -> fun.(library) end)}
    for {module, task} <- tasks, do: {module, Task.await(task, :infinity)}
  end

  # When all is over, each library answers, at the latest after a while.
  defp answers?(%{calls: calls}) do
    {call, expected} = hd(calls)
    right = fn -> bounded(fn -> Tame.IsolationCalls.outcome(call) end, 15_000) end
    if Tame.Await.until(fn -> right.() === expected end, @quiet_ms), do: :right, else: right.()
  end

  defp table do
    counts = Callers.counts()
    kinds = counts |> Map.keys() |> Enum.map(&elem(&1, 1)) |> Enum.uniq() |> Enum.sort()
    modules = counts |> Map.keys() |> Enum.map(&elem(&1, 0)) |> Enum.uniq() |> Enum.sort()
    row = fn cells -> [Enum.map(cells, &String.pad_leading(to_string(&1), 13)), "\n"] end

    [
      row.(["library" | kinds]),
      for(
        module <- modules,
        do: row.([module | for(kind <- kinds, do: Map.get(counts, {module, kind}, 0))])
      )
    ]
  end

  defp gauges(earlier, later) do
    for {gauge, factor, more} <- Gauges.bounds() do
      "#{String.pad_leading("#{gauge}", 13)} #{earlier[gauge]} -> #{later[gauge]} (at most x #{factor} + #{more})\n"
    end
  end

  # What fun returns, or how it ended; :stuck.
  defp bounded(fun, ms) do
    {pid, monitor} = spawn_monitor(fn -> exit({:value, fun.()}) end)

    receive do
      {:DOWN, ^monitor, _, _, {:value, value}} -> value
      {:DOWN, ^monitor, _, _, reason} -> {:ended, reason}
    after
      ms ->
        Process.exit(pid, :kill)
        :stuck
    end
  end

  # Each crash is a report: here they come by the thousand.
  defp quiet_logger, do: for(id <- :logger.get_handler_ids(), do: :logger.remove_handler(id))

  defp now_ms, do: System.monotonic_time(:millisecond)
end
