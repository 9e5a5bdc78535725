defmodule Tame.Collapse do
  @moduledoc """
  The collapse lab: do schedulers sleep here while work waits?

  A peer runs many long native calls that charge nothing, then bursts of cheap work (`tame_collapse`). Its jobs say when they
  were asked for and when they began. Meanwhile this node reads from `/proc` every 2 ms which of the peer's scheduler
  threads sleep. Time for which jobs waited and a scheduler slept is lost. The lab measures with the flags asked for, and
  once more with `+sfwi 100` added, which makes the VM wake its schedulers every 100 ms whatever their load.
  """

  alias Tame.{Duration, Peer, Proc, Result, Spans, SystemInfo, TextTable, Warning}

  @type measured :: %{
          flags: [String.t()],
          status: String.t(),
          reason: nil | String.t(),
          waiting_ms: float(),
          asleep_ms: float(),
          longest_ms: float(),
          stretches: non_neg_integer(),
          cheap_wait_max_us: nil | float()
        }

  @wake_flags ~w(+sfwi 100)
  @load %{rounds: 20, long: 10, cheap: 500, rest_ms: 60}
  @sample_ms 2
  @limit_ms 60_000

  # To wake a thread and let it steal takes some microseconds, and another process may have its core; a
  # scheduler that still sleeps after so long was not woken.
  @collapse_ms 50

  @doc """
  Measures with `flags`, then with `+sfwi 100` added, `rounds` of long calls and bursts each. The error says why a peer
  does not start with `flags`.
  """
  @spec measure([String.t()], pos_integer()) :: {:ok, [measured()]} | {:error, String.t()}
  def measure(flags, rounds \\ @load.rounds) do
    with :ok <- :tame_labs_native.build(), :ok <- Peer.check(flags) do
      {:ok, for(more <- [[], @wake_flags], do: run(flags ++ more, %{@load | rounds: rounds}))}
    end
  end

  @doc "Whether both were measured."
  @spec ok?([measured()]) :: boolean()
  def ok?(rows), do: Enum.all?(rows, &(&1.status == "ok"))

  defp run(flags, load) do
    with {:ok, peer} <- Peer.start(flags) do
      try do
        tag = make_ref()
        monitor = Process.monitor(peer.pid)
        threads = threads(peer.os_pid)
        :ok = Peer.cast(peer, :tame_collapse, :run, [self(), tag, load])
        watch(threads, tag, monitor, now_ms() + @limit_ms, [])
      after
        Peer.stop(peer)
      end
    end
    |> row(flags)
  end

  defp watch(threads, tag, monitor, deadline, samples) do
    asleep = Enum.count(threads, &asleep?/1)
    samples = [{:os.perf_counter(:nanosecond), asleep} | samples]

    receive do
      {:tame_collapse, ^tag, {:done, jobs}} -> {:ok, jobs, Enum.reverse(samples)}
      {:DOWN, ^monitor, :process, _, reason} -> {:error, "the peer node died: #{inspect(reason)}"}
    after
      @sample_ms ->
        if now_ms() > deadline,
          do: {:error, "did not end within #{div(@limit_ms, 1000)} s"},
          else: watch(threads, tag, monitor, deadline, samples)
    end
  end

  defp row({:ok, jobs, samples}, flags) do
    cheap = for {:cheap, asked, began} <- jobs, do: (began - asked) / 1000

    jobs
    |> Enum.map(fn {_, asked, began} -> {asked, began} end)
    |> lost(samples)
    |> Map.merge(%{
      flags: flags,
      status: "ok",
      reason: nil,
      cheap_wait_max_us: Enum.max(cheap, fn -> nil end)
    })
  end

  defp row({:error, why}, flags) do
    lost([], [])
    |> Map.merge(%{flags: flags, status: "failed", reason: why, cheap_wait_max_us: nil})
  end

  @doc """
  From jobs, as when each was asked for and when it began, and samples, as when and how many schedulers slept: for how
  long jobs waited, for how long schedulers slept meanwhile, and the stretches of that. Times in ns. Pure.

      iex> ms = 1_000_000
      iex> samples = [{0, 2}, {10 * ms, 1}, {20 * ms, 1}, {30 * ms, 0}, {40 * ms, 2}]
      iex> Tame.Collapse.lost([{5 * ms, 35 * ms}], samples)
      %{waiting_ms: 30.0, asleep_ms: 15.0, longest_ms: 15.0, stretches: 0}
  """
  @spec lost([{integer(), integer()}], [{integer(), non_neg_integer()}]) :: map()
  def lost(jobs, samples) do
    waiting = Spans.union(jobs)

    # A sample stands until the next one; a scheduler counts as asleep between two that say so.
    asleep =
      for [{from, a}, {to, b}] <- Enum.chunk_every(samples, 2, 1, :discard), a > 0 and b > 0 do
        {from, to}
      end

    both =
      asleep
      |> overlaps(waiting)
      |> Spans.union()
      |> Enum.map(fn {from, to} -> (to - from) / 1_000_000 end)

    %{
      waiting_ms:
        waiting |> Enum.map(fn {from, to} -> to - from end) |> Enum.sum() |> Kernel./(1_000_000),
      asleep_ms: Enum.sum(both) / 1,
      longest_ms: Enum.max(both, fn -> 0.0 end),
      stretches: Enum.count(both, &(&1 >= @collapse_ms))
    }
  end

  # Both in order.
  defp overlaps([{a, b} | as] = left, [{c, d} | cs] = right) do
    rest = if b < d, do: overlaps(as, right), else: overlaps(left, cs)
    if max(a, c) < min(b, d), do: [{max(a, c), min(b, d)} | rest], else: rest
  end

  defp overlaps(_, _), do: []

  @doc "What was measured, as text."
  @spec text([measured()], SystemInfo.t()) :: iodata()
  def text(rows, system) do
    columns = [
      "flags",
      "jobs waited ms",
      "and a scheduler slept ms",
      "longest ms",
      "≥ #{@collapse_ms} ms",
      "cheap job waited at most"
    ]

    table =
      for %{status: "ok"} = row <- rows do
        [
          flags_text(row.flags),
          ms(row.waiting_ms),
          ms(row.asleep_ms),
          ms(row.longest_ms),
          Integer.to_string(row.stretches),
          Duration.short(row.cheap_wait_max_us)
        ]
      end

    [
      "Scheduler collapse on OTP #{system[:otp]}, ERTS #{system[:erts]}\n\n",
      if(table == [], do: [], else: TextTable.format(columns, table)),
      for(
        %{status: "failed"} = row <- rows,
        do: "#{flags_text(row.flags)}  failed: #{row.reason}\n"
      ),
      ?\n,
      for(%{status: "ok"} = row <- rows, do: [sentence(row), ?\n]),
      system |> SystemInfo.warnings() |> Warning.text()
    ]
  end

  @doc "What was measured, as JSON."
  @spec json([measured()], SystemInfo.t()) :: iodata()
  def json(rows, system) do
    head = %{
      tool: "tame.collapse",
      format: 1,
      system: system,
      warnings: SystemInfo.warnings(system)
    }

    Result.json(head, collapse: Enum.map(rows, &Map.to_list/1))
  end

  defp sentence(%{stretches: 0} = row) do
    "With #{flags_text(row.flags)}: no collapse. Never did a scheduler sleep for #{@collapse_ms} ms while jobs waited " <>
      "(#{ms(row.longest_ms)} ms at most)."
  end

  defp sentence(row) do
    "With #{flags_text(row.flags)}: collapse. #{row.stretches} times a scheduler slept for #{@collapse_ms} ms or more while jobs " <>
      "waited, #{ms(row.longest_ms)} ms at most; #{ms(row.asleep_ms)} of #{ms(row.waiting_ms)} ms were lost so."
  end

  defp flags_text([]), do: "default flags"
  defp flags_text(flags), do: Enum.join(flags, " ")

  defp ms(value), do: :erlang.float_to_binary(value / 1, decimals: 1)

  # ---- the peer's threads --------------------------------------------------------------------------

  defp threads(os_pid), do: os_pid |> Proc.schedulers() |> Map.values()

  # S is a thread that waits to be woken.
  defp asleep?(thread), do: match?(%{state: "S"}, Proc.stat(thread))

  defp now_ms, do: System.monotonic_time(:millisecond)
end
