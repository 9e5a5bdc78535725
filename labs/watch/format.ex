defmodule Tame.Watch.Format do
  @moduledoc """
  A watch as text for a terminal, second by second and as a summary, and as JSON. All pure.
  """

  import Tame.Stats, only: [mean: 1, median: 1]

  alias Tame.{FunctionName, Number, Result, TextTable, Utilisation}
  alias Tame.Watch.{Blame, Second}

  @kinds %{normal: "normal", dirty_cpu: "dirty CPU", dirty_io: "dirty I/O"}
  @holder_kinds %{cpu: "dirty CPU", io: "dirty I/O", unknown: "dirty"}

  # ---- a second -------------------------------------------------------------------------------------

  @doc "One second as a screen."
  @spec screen(Tame.Watch.Facts.t(), Second.t(), [Tame.Watch.Calls.call()]) :: iodata()
  def screen(facts, second, calls) do
    [
      title(facts),
      "second #{div(second.at_ms, 1000)}, #{Number.grouped(second.processes)} processes, ",
      "cost #{percent(second.cost_percent)} of a core there\n\n",
      schedulers(second.utilisation, second.dirty),
      "\n",
      neighbour(second.neighbour),
      held(second.held),
      monitor(second.monitor),
      holders(second),
      long(second.long_schedules, second.long_left_out),
      calls(calls)
    ]
  end

  defp title(facts) do
    "#{facts.node}  OTP #{facts.otp}, #{facts.schedulers_online} schedulers, " <>
      "#{facts.dirty_cpu_schedulers_online} dirty CPU, #{facts.dirty_io_schedulers} dirty I/O\n"
  end

  defp schedulers(utilisation, dirty) do
    rows =
      for kind <- Utilisation.kinds() do
        [@kinds[kind], whole(utilisation[kind]) | threads(dirty[short(kind)], kind)]
      end

    TextTable.format(["schedulers", "utilised %", "threads at work", "waiting"], rows)
  end

  defp short(:dirty_cpu), do: :cpu
  defp short(:dirty_io), do: :io
  defp short(:normal), do: :normal

  defp threads(_, :normal), do: ["-", "-"]
  defp threads(nil, _), do: ["-", "-"]
  defp threads(%{busy: busy, waiting: waiting}, _), do: ["#{busy}", "#{waiting}"]

  defp neighbour(%{wakes: 0} = neighbour),
    do: "neighbours: none woke; the longest delay so far is #{ms(neighbour.max_us)} ms\n"

  defp neighbour(neighbour) do
    "neighbours woke #{ms(neighbour.p50_us)} ms late (p50), #{ms(neighbour.p99_us)} ms (p99), " <>
      "#{ms(neighbour.max_us)} ms at most\n"
  end

  defp held(nil), do: []

  defp held(held) do
    "#{held.process} has not answered for #{held.for_ms} ms: it is in native code on a normal scheduler\n"
  end

  defp monitor(nil), do: []

  defp monitor(who),
    do: "long slices are not seen: #{who} has the system monitor, and keeps it\n"

  defp holders(%{holders: []} = second), do: looked_at(second, "\n")

  defp holders(second) do
    rows =
      for holder <- Enum.sort_by(second.holders, &{-&1.for_ms, &1.process}) do
        [holder.process, holder.function, @holder_kinds[holder.kind], "#{holder.for_ms}"]
      end

    [
      "\n",
      TextTable.format(["in a dirty NIF", "function", "threads", "seen for ms"], rows),
      looked_at(second, "")
    ]
  end

  defp looked_at(%{looked_at: seen, processes: all}, before)
       when is_integer(seen) and seen < div(all, 2),
       do: [before, "(#{seen} of #{all} processes looked at in the last round)\n"]

  defp looked_at(_second, _before), do: []

  defp long([], 0), do: []

  defp long(rows, left_out) do
    table =
      for row <- rows do
        [blamed(row), Blame.caller(row), "#{row.count}", "#{row.longest_ms}", row.process]
      end

    [
      "\n",
      TextTable.format(
        ["slices over 10 ms in", "called by", "count", "longest ms", "process"],
        table
      ),
      if(left_out > 0, do: "(and #{left_out} more)\n", else: [])
    ]
  end

  defp blamed(%{nifs: []}), do: "no NIF known"
  defp blamed(%{nifs: [nif]}), do: nif
  defp blamed(%{nifs: nifs}), do: "one of " <> Enum.join(nifs, ", ")

  defp calls([]), do: []

  defp calls(calls) do
    elapsed = Enum.map(calls, & &1.elapsed_us)

    [
      "\ncalls traced: #{length(calls)}, #{Number.short(median(elapsed))} µs (median), ",
      "#{Number.short(Enum.max(elapsed))} µs at most\n",
      for kind <- [:normal, :dirty], shares = Enum.map(calls, & &1[kind]), any?(shares) do
        "  #{kind} slices: #{shares |> Enum.map(& &1.count) |> Enum.sum()}, " <>
          "the longest #{shares |> Enum.map(& &1.longest_us) |> Enum.max() |> Number.short()} µs\n"
      end
    ]
  end

  defp any?(shares), do: Enum.any?(shares, &(&1.count > 0))

  # ---- in sum ---------------------------------------------------------------------------------------

  @doc "The summary of the whole watch: the longest times, and the means of shares."
  @spec summary(Tame.Watch.result()) :: iodata()
  def summary(%{seconds: []} = result), do: [title(result.facts), ending(result)]

  def summary(result) do
    sum = sum(result)

    [
      title(result.facts),
      "#{length(result.seconds)} seconds, cost #{percent(sum.cost_percent)} of a core there (mean)\n\n",
      schedulers(sum.utilisation, sum.dirty),
      "\n",
      neighbour_sum(sum.neighbour),
      monitor(sum.monitor),
      held(sum.held),
      holders_sum(sum.holders),
      long(sum.long_schedules, sum.long_left_out),
      calls(result.calls),
      ending(result)
    ]
  end

  defp ending(%{silent_ms: 0, ended: nil}), do: []
  defp ending(%{ended: nil, silent_ms: ms}), do: "the node did not answer for #{ms} ms\n"
  defp ending(%{ended: why}), do: "ended early: #{why}\n"

  defp neighbour_sum(%{p99_us: nil}), do: "no neighbour woke\n"

  defp neighbour_sum(neighbour) do
    "neighbours woke #{ms(neighbour.p99_us)} ms late in the worst second's p99, #{ms(neighbour.max_us)} ms at most\n"
  end

  defp holders_sum([]), do: []

  defp holders_sum(holders) do
    rows =
      for h <- holders, do: [h.function, @holder_kinds[h.kind], "#{h.processes}", "#{h.for_ms}"]

    ["\n", TextTable.format(["in a dirty NIF", "threads", "processes", "longest ms"], rows)]
  end

  @doc "All seconds as one: means of shares, the most that waited, the longest times."
  @spec sum(Tame.Watch.result()) :: map()
  def sum(%{seconds: seconds}) do
    %{
      cost_percent: mean(Enum.map(seconds, & &1.cost_percent)),
      utilisation:
        Map.new(Utilisation.kinds(), fn kind ->
          {kind, mean(Enum.map(seconds, & &1.utilisation[kind]))}
        end),
      dirty: Map.new([:cpu, :io], fn kind -> {kind, most(Enum.map(seconds, & &1.dirty[kind]))} end),
      neighbour: %{
        p99_us: max_known(Enum.map(seconds, & &1.neighbour.p99_us)),
        max_us: seconds |> Enum.map(& &1.neighbour.max_us) |> Enum.max()
      },
      monitor: Enum.find_value(seconds, & &1.monitor),
      held:
        seconds
        |> Enum.map(& &1.held)
        |> Enum.reject(&is_nil/1)
        |> Enum.max_by(& &1.for_ms, fn -> nil end),
      holders: seconds |> Enum.flat_map(& &1.holders) |> holders_by_function(),
      long_schedules: seconds |> Enum.flat_map(& &1.long_schedules) |> Second.group(),
      long_left_out: seconds |> Enum.map(& &1.long_left_out) |> Enum.sum()
    }
  end

  defp holders_by_function(holders) do
    holders
    |> Enum.group_by(& &1.function)
    |> Enum.map(fn {function, rows} ->
      %{
        function: function,
        kind: kind(rows |> Enum.map(& &1.kind) |> Enum.uniq()),
        processes: rows |> Enum.map(& &1.process) |> Enum.uniq() |> length(),
        for_ms: rows |> Enum.map(& &1.for_ms) |> Enum.max()
      }
    end)
    |> Enum.sort_by(&{-&1.for_ms, &1.function})
  end

  # One kind in some seconds and unknown in others is that kind.
  defp kind(kinds) do
    case List.delete(kinds, :unknown) do
      [kind] -> kind
      _ -> :unknown
    end
  end

  defp most(values) do
    case Enum.reject(values, &is_nil/1) do
      [] ->
        nil

      known ->
        %{
          busy: known |> Enum.map(& &1.busy) |> Enum.max(),
          waiting: known |> Enum.map(& &1.waiting) |> Enum.max()
        }
    end
  end

  defp max_known(values), do: values |> Enum.reject(&is_nil/1) |> Enum.max(fn -> nil end)

  # ---- texts ----------------------------------------------------------------------------------------

  defp whole(nil), do: "-"
  defp whole(percent), do: "#{round(percent)}"

  defp percent(percent), do: :erlang.float_to_binary(percent / 1, decimals: 2) <> " %"

  defp ms(us), do: Number.short(us / 1000)

  # ---- JSON -----------------------------------------------------------------------------------------

  @doc "The watch as JSON: `tool`, `format`, `system` of the watching VM, `node`, `seconds`, `calls`."
  @spec json(Tame.Watch.result(), keyword(), nil | mfa()) :: iodata()
  def json(result, system, slices) do
    Result.json(%{tool: "tame.watch", format: 1, system: system},
      node: Map.delete(result.facts, :began_ns),
      seconds: result.seconds,
      calls: %{
        function: slices && FunctionName.text(slices),
        state: result.calls_state,
        calls: result.calls
      },
      silent_ms: result.silent_ms,
      ended: result.ended
    )
  end
end
