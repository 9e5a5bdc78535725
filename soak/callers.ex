defmodule Tame.Soak.Callers do
  @moduledoc """
  Processes that call the isolated libraries without a pause, and compare.

  What calls come to is counted in a table by {library, kind}. A warden knows since when each caller is in
  its call, and replaces those that have died or are stuck.
  """

  alias Tame.IsolationCalls

  @stuck_ms 30_000
  @look_ms 200
  @table __MODULE__

  def start(libraries, count) do
    :ets.new(@table, [:named_table, :public, write_concurrency: true])
    :persistent_term.put(__MODULE__, libraries |> Enum.map(&row/1) |> List.to_tuple())
    since = :atomics.new(count, [])
    spawn(fn -> warden(Map.new(1..count, &born(&1, since)), since) end)
  end

  defp row(library), do: Map.update!(library, :calls, &List.to_tuple/1)

  @doc "No further calls. Waits for those that are under way."
  def stop(warden) do
    monitor = Process.monitor(warden)
    send(warden, :stop)

    receive do
      {:DOWN, ^monitor, _, _, _} -> :ok
    end
  end

  @doc "%{{library, kind} => count}"
  def counts,
    do:
      for(
        {{_, kind} = key, count} <- :ets.tab2list(@table),
        is_atom(kind),
        into: %{},
        do: {key, count}
      )

  @doc "What was wrong, the first of each: {library, what, text}."
  def wrong,
    do: for({{:wrong, library, what}, text} <- :ets.tab2list(@table), do: {library, what, text})

  # ---- the warden ------------------------------------------------------------------------------------

  defp born(number, since) do
    {_, monitor} = spawn_monitor(fn -> caller(number, since) end)
    {monitor, number}
  end

  defp warden(callers, since) do
    receive do
      {:DOWN, monitor, _, _, reason} when is_map_key(callers, monitor) ->
        {number, others} = Map.pop!(callers, monitor)
        if reason != :again, do: wrong(:caller, :died, reason)
        :atomics.put(since, number, 0)
        warden(Map.merge(others, Map.new([born(number, since)])), since)

      :stop ->
        :persistent_term.put({__MODULE__, :stop}, true)
        end_all(callers, since)
    after
      @look_ms ->
        _ = stuck(callers, since)
        warden(callers, since)
    end
  end

  defp end_all(callers, _) when callers == %{}, do: :ok

  defp end_all(callers, since) do
    receive do
      {:DOWN, monitor, _, _, _} -> end_all(Map.delete(callers, monitor), since)
    after
      @look_ms ->
        _ = stuck(callers, since)
        end_all(callers, since)
    end
  end

  # Those in one call for too long are replaced, else one would be counted again and again.
  defp stuck(callers, since) do
    for {_, number} <- callers,
        at = :atomics.get(since, number),
        at > 0,
        now_ms() - at > @stuck_ms do
      :atomics.put(since, number, 0)
      pid = Process.whereis(name(number))
      stack = pid && Process.info(pid, [:current_stacktrace, :message_queue_len])
      wrong(:caller, :stuck, stack)
      pid && Process.exit(pid, :kill)
    end
  end

  # ---- one caller ------------------------------------------------------------------------------------

  defp name(number), do: :"soak_caller_#{number}"

  defp caller(number, since) do
    Process.register(self(), name(number))
    :rand.seed(:exsss)
    calls(number, since, :persistent_term.get(__MODULE__))
  end

  defp calls(number, since, libraries) do
    library = elem(libraries, :rand.uniform(tuple_size(libraries)) - 1)
    {call, expected} = elem(library.calls, :rand.uniform(tuple_size(library.calls)) - 1)
    :atomics.put(since, number, now_ms())
    outcome = IsolationCalls.outcome(call)
    :atomics.put(since, number, 0)
    kind = kind(outcome, expected, library)
    :ets.update_counter(@table, {library.module, kind}, 1, {{library.module, kind}, 0})
    if kind == :wrong, do: wrong(library.module, what(outcome), {expected, outcome})

    cond do
      :persistent_term.get({__MODULE__, :stop}, false) -> :ok
      # Messages of a stream that was broken off may still come: to nobody.
      kind != :right -> exit(:again)
      true -> calls(number, since, libraries)
    end
  end

  defp kind(same, same, _), do: :right
  defp kind({:error, {:tame, what}, _}, _, _) when is_tuple(what), do: elem(what, 0)
  defp kind({:error, {:tame, what}, _}, _, _), do: what
  # A resource of a host that is dead.
  defp kind({:error, :badarg, _}, _, %{resources: true}), do: :badarg
  defp kind({:error, {ArgumentError, _}, _}, _, %{resources: true}), do: :badarg
  defp kind({:error, {:badarg, _, _}, _}, _, %{resources: true}), do: :badarg
  # What fxml_stream says was cut off by such a one.
  defp kind(_, _, _), do: :wrong

  defp what({:ok, _}), do: :value
  defp what({kind, reason, _}) when is_tuple(reason), do: {kind, elem(reason, 0)}
  defp what({kind, reason, _}), do: {kind, reason}

  defp wrong(library, what, text) do
    :ets.insert_new(
      @table,
      {{:wrong, library, what}, inspect(text, limit: 12, printable_limit: 200)}
    )

    if library == :caller, do: :ets.update_counter(@table, {library, what}, 1, {{library, what}, 0})
  end

  defp now_ms, do: System.monotonic_time(:millisecond)
end
