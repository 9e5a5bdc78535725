defmodule Tame.Soak.Jobs do
  @moduledoc """
  The VM in which jobs have a hard time: callers of `Tame.JobModel` in every placement die, cancel, drop their streams and
  meet deadlines, while the library is replaced, deleted and purged. It looks, and reports.
  """

  alias Tame.{Await, JobModelSequences, JobModelStorm, JobProbe}
  alias Tame.Soak.Gauges

  @callers 40
  @line_ms 10_000
  @quiet_ms 20_000
  # The figures with which the last ones are compared are taken after this part of the time, at most 3 minutes.
  @settled 1 / 3

  # What happens to the library, and how often, in ms.
  @events [upgrade: 700, purge: 1500, delete: 1100]
  @shown [:processes, :threads, :descriptors, :ports, :memory_mb, :rss_mb, :atoms]

  def run(seconds) do
    for id <- :logger.get_handler_ids(), do: :logger.remove_handler(id)
    {:ok, _} = Application.ensure_all_started(:tame)
    :ets.new(__MODULE__, [:named_table, :public, write_concurrency: true])
    new_things()
    before = JobModelStorm.surely(:totals)
    began = now_ms()
    callers = for _ <- 1..@callers, do: spawn_monitor(&caller/0)
    weather = for {event, ms} <- @events, do: spawn_monitor(fn -> weather(event, ms) end)
    state = %{began: began, ends: began + seconds * 1000, line: began, settled: nil}

    state =
      watch(
        %{state | line: began + @line_ms},
        began + min(180_000, round(seconds * 1000 * @settled))
      )

    under_load = Gauges.all()
    :ets.insert(__MODULE__, {:stop, true})
    stuck = for {pid, monitor} <- weather ++ callers, not ended?(monitor), do: pid
    report(state.settled, under_load, before, stuck)
  end

  # ---- callers ---------------------------------------------------------------------------------------

  defp caller do
    call = random_call()
    came = call |> JobModelStorm.start(things()) |> JobModelStorm.ended()
    right? = JobModelStorm.right?(call, came, Keyword.keys(@events))
    kind = if right?, do: kind(came), else: :wrong
    count({elem(call, 1), kind})

    unless right?,
      do: :ets.insert_new(__MODULE__, {{:wrong, kind_of(came)}, inspect({call, came}, limit: 20)})

    unless stop?(), do: caller()
  end

  defp random_call do
    us = fn -> Enum.random([0, 100, 1000, 3000, 20_000]) |> max(1) |> :rand.uniform() end

    fate =
      case :rand.uniform(14) do
        n when n <= 4 -> :none
        n when n <= 8 -> {:kill, us.()}
        n when n <= 10 -> {:cancel, us.()}
        n when n <= 12 -> {:deadline, :rand.uniform(10) - 1}
        13 -> {:halt, :rand.uniform(5) - 1}
        14 -> {:drop, :rand.uniform(4)}
      end

    work = Enum.random([:fail, :refuse | List.duplicate(us.(), 6)])
    thing = Enum.random([:none, :none, :one, :two])
    {Enum.random([:gated, :free, :parts]), Enum.random(JobProbe.placements()), thing, work, 0, fate}
  end

  defp kind({{:value, :cancelled}, _, _}), do: :cancelled
  defp kind({{:value, _}, _, _}), do: :right
  defp kind({{:died, _}, _, _}), do: :killed
  defp kind({{:error, {:tame, what}}, _, _}), do: what
  defp kind({{:error, {:failed, _}}, _, _}), do: :failed
  defp kind({{:error, :badarg}, _, _}), do: :refused
  defp kind({{:error, _}, _, _}), do: :upgraded

  defp kind_of({{what, reason}, _, _}) when is_atom(reason), do: {what, reason}
  defp kind_of({{what, _}, _, _}), do: what

  defp count(key), do: :ets.update_counter(__MODULE__, key, 1, {key, 0})
  defp stop?, do: :ets.member(__MODULE__, :stop)
  defp things, do: :ets.lookup_element(__MODULE__, :things, 2)

  defp new_things do
    things = %{
      one: JobModelStorm.surely(:new_thing),
      two: JobModelStorm.surely(:new_thing),
      none: :none
    }

    :ets.insert(__MODULE__, {:things, things})
  end

  # ---- the library is replaced -------------------------------------------------------------------------

  defp weather(event, ms) do
    Process.sleep(:rand.uniform(2 * ms))
    # One at a time: each purges.
    :global.trans({__MODULE__, self()}, fn -> JobModelStorm.event(event) end)
    count({:events, event})
    unless stop?(), do: weather(event, ms)
  end

  # ---- while it lasts ----------------------------------------------------------------------------------

  defp watch(state, settles) do
    now = now_ms()

    state =
      if state.settled == nil and now >= settles, do: %{state | settled: Gauges.all()}, else: state

    state = if now >= state.line, do: line(state, now), else: state
    if now >= state.ends, do: state, else: Process.sleep(500) && watch(state, settles)
  end

  defp line(state, now) do
    gauges = Gauges.all()
    kinds = for {kind, count} <- kinds(), do: " #{kind} #{count}"
    shown = for name <- @shown, do: " #{name} #{gauges[name]}"
    IO.puts([String.pad_leading("#{div(now - state.began, 1000)} s:", 7), kinds, shown])
    %{state | line: state.line + @line_ms}
  end

  defp kinds do
    for({{placement, kind}, count} <- table(), placement != :events, do: {kind, count})
    |> Enum.reduce(%{}, fn {kind, count}, all -> Map.update(all, kind, count, &(&1 + count)) end)
    |> Enum.sort()
  end

  defp table,
    do: for({{_, _}, count} = row <- :ets.tab2list(__MODULE__), is_integer(count), do: row)

  defp ended?(monitor) do
    receive do
      {:DOWN, ^monitor, :process, _, :normal} -> true
    after
      90_000 -> false
    end
  end

  # ---- the end -------------------------------------------------------------------------------------------

  defp report(settled, under_load, before, stuck) do
    for pid <- Process.list(), do: :erlang.garbage_collect(pid)
    even? = Await.until(fn -> match?({same, same, _, _}, totals(before)) end, @quiet_ms)
    {inits, cleanups, over, shared} = totals(before)
    rows = table()

    failures =
      [
        for(
          {{:wrong, what}, text} <- :ets.tab2list(__MODULE__),
          is_binary(text),
          do: "wrong: #{inspect(what)}: #{text}"
        ),
        for(pid <- stuck, do: "does not end: #{inspect(Process.info(pid, :current_stacktrace))}"),
        if(even?, do: [], else: ["#{inits} inits and #{cleanups} cleanups"]),
        if(over > 0, do: ["a gate let in more than it may #{over} times"], else: []),
        if(shared > 0, do: ["a context was two calls' #{shared} times"], else: []),
        for(
          placement <- JobProbe.placements(),
          not Enum.any?(rows, &match?({{^placement, :right}, _}, &1)),
          do: "no call in #{placement} was right"
        ),
        for(
          {gauge, from, to, most} <- Gauges.beyond(settled, under_load),
          do: "leak: #{gauge} #{from} -> #{to}, at most #{most}"
        ),
        for(
          placement <- JobProbe.placements() -- [:inline],
          wrong = JobModelSequences.run({{placement, placement}, []}),
          wrong != true,
          do: "not free in the end: #{placement}: #{inspect(wrong)}"
        )
      ]
      |> List.flatten()

    lines = [
      for({{:events, event}, count} <- Enum.sort(rows), do: "#{event} #{count} times\n"),
      for(
        placement <- JobProbe.placements(),
        do: [
          String.pad_leading("#{placement}", 14),
          for({{^placement, kind}, count} <- Enum.sort(rows), do: " #{kind} #{count}"),
          "\n"
        ]
      ),
      for(
        {gauge, factor, more} <- Gauges.bounds(),
        do:
          "#{String.pad_leading("#{gauge}", 14)} #{settled[gauge]} -> #{under_load[gauge]} (at most x #{factor} + #{more})\n"
      ),
      "inits #{inits}, cleanups #{cleanups}\n",
      Enum.map(failures, &[&1, "\n"])
    ]

    {if(failures == [], do: :ok, else: :failed), IO.iodata_to_binary(lines)}
  end

  defp totals({inits0, cleanups0, over0, shared0}) do
    {inits, cleanups, over, shared} = JobModelStorm.surely(:totals)
    {inits - inits0, cleanups - cleanups0, over - over0, shared - shared0}
  end

  defp now_ms, do: System.monotonic_time(:millisecond)
end
