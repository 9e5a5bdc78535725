defmodule Tame.Reductions.Bursts do
  @moduledoc """
  Burst after burst of the same job, with a rest after each: what a neighbour saw of it, and which threads were at work.

  Each variant has a VM of its own. A burst is as many jobs at once as there are schedulers, twice, each in a process of
  its own. The neighbour is on scheduler 1 and wants to wake every millisecond; the threads are looked at from here
  (`Tame.CPU`). Answers are checked by the lab's turns, not here.

  Where `exor_inline` is among the variants, it has bursts in a host as well, isolated: work in one go that is in another
  OS process.
  """

  alias Tame.{CPU, Peer, Spans, Stats}
  alias Tame.Reductions.{Bursts, Input, Variants}

  @typedoc "What was seen of one variant, in ms from the start of the first burst on; empty where it failed."
  @type row :: %{
          id: String.t(),
          status: String.t(),
          reason: nil | String.t(),
          jobs: pos_integer(),
          bytes: pos_integer(),
          burst_ms: nil | float(),
          held_ms: nil | float(),
          bursts: [%{from_ms: float(), to_ms: float()}],
          held: [%{from_ms: float(), to_ms: float()}],
          cpu: [map()]
        }

  @typedoc "What the VM says: when each burst began and ended, and when its neighbour wanted to wake and woke."
  @type seen :: %{
          clocks: map(),
          bursts: [Spans.span()],
          wakes: [Spans.span()],
          failed: nil | String.t()
        }

  # Of each of the two inputs at most: some milliseconds of work, so that a burst is a few samples long.
  @most_bytes 32 * 1024 * 1024

  # Long enough for the threads to fall asleep, and to be seen asleep.
  @rest_ms 100

  @isolated %{id: "exor_inline, isolated", mfa: {:tame_exor, :exor_inline}, isolate: :tame_exor}

  @neighbour_ms 1
  @scheduler 1
  @within_ms 120_000

  @doc """
  Runs `count` bursts of each variant on inputs of `bytes` bytes each, or 32 MiB where those are more, and calls
  `progress` with the id of each before.
  """
  @spec measure([Variants.variant()], pos_integer(), non_neg_integer(), (String.t() -> any())) ::
          [row()]
  def measure(_variants, _bytes, 0, _progress), do: []

  def measure(variants, bytes, count, progress) do
    bytes = min(bytes, @most_bytes)
    isolated = for %{id: "exor_inline"} <- variants, do: @isolated

    for variant <- variants ++ isolated do
      progress.(variant.id)
      variant |> watched(bytes, count) |> row(%{blank(variant.id) | bytes: bytes})
    end
  end

  defp watched(variant, bytes, count) do
    with {:ok, peer} <- Peer.start(Peer.own_flags() ++ Peer.code_path()) do
      seen =
        with {:ok, hosts} <- called(peer, :hosts, [variant[:isolate]]),
             do: seen(peer, hosts, [variant.mfa, bytes, count])

      Peer.stop(peer)
      seen
    end
  end

  defp seen(peer, hosts, args) do
    cpu = CPU.start(peer.os_pid, hosts)
    seen = called(peer, :run, args)
    samples = CPU.stop(cpu)
    with {:ok, seen} <- seen, do: {:ok, seen, samples}
  end

  defp called(peer, function, args) do
    {:ok, Peer.call(peer, Bursts, function, args, @within_ms)}
  catch
    :exit, {:timeout, _} -> {:error, "did not end within #{div(@within_ms, 1000)} s"}
    :exit, _ -> {:error, "ended its VM"}
  end

  defp row({:ok, %{failed: nil} = seen, samples}, blank) do
    [{zero, _} | _] = seen.bursts
    machine_zero = zero + seen.clocks.machine_ns - seen.clocks.monotonic_ns

    held =
      for {planned, woke} <- seen.wakes,
          woke - planned > @neighbour_ms * 1_000_000,
          do: {planned, woke}

    held = held |> Spans.union() |> spans(zero)
    bursts = spans(seen.bursts, zero)

    Map.merge(blank, %{
      status: "ok",
      burst_ms: bursts |> Enum.map(&(&1.to_ms - &1.from_ms)) |> Stats.median(),
      held_ms: held |> Enum.map(&(&1.to_ms - &1.from_ms)) |> Enum.max(fn -> 0.0 end),
      bursts: bursts,
      held: held,
      cpu: CPU.shares(samples, cores(), machine_zero) |> Enum.filter(&(&1.at_ms > -@rest_ms))
    })
  end

  defp row({:ok, %{failed: why}, _samples}, blank), do: %{blank | reason: why}
  defp row({:error, why}, blank), do: %{blank | reason: why}

  defp blank(id) do
    %{
      id: id,
      status: "failed",
      reason: nil,
      jobs: jobs(),
      bytes: @most_bytes,
      burst_ms: nil,
      held_ms: nil,
      bursts: [],
      held: [],
      cpu: []
    }
  end

  defp spans(spans, zero),
    do: for({from, to} <- spans, do: %{from_ms: ms(from - zero), to_ms: ms(to - zero)})

  defp ms(ns), do: Float.round(ns / 1_000_000, 2)

  # The VMs have this one's flags, so as many schedulers.
  defp jobs, do: 2 * System.schedulers_online()

  defp cores do
    case :erlang.system_info(:logical_processors_available) do
      :unknown -> System.schedulers_online()
      cores -> cores
    end
  end

  # ---- in the VM of a variant ----------------------------------------------------------------------

  @doc "Isolates the module, if there is one, in the VM in which it is called; the OS processes of its hosts."
  @spec hosts(nil | module()) :: [pos_integer()]
  def hosts(nil), do: []

  def hosts(module) do
    {:ok, _} = Application.ensure_all_started(:tame)
    :ok = :tame.isolate(module)
    for %{hosts: hosts} <- Map.values(:tame.info()), host <- hosts, do: host.os_pid
  end

  @doc "The bursts, in the VM in which it is called."
  @spec run({module(), atom()}, pos_integer(), pos_integer()) :: seen()
  def run(function, bytes, count) do
    input = Input.new(bytes)
    # Its library is loaded, and its rate measured, before anybody looks.
    first = burst(function, input, 1)

    {:ok, neighbour} =
      :tame_neighbour.start(%{scheduler: @scheduler, period_ms: @neighbour_ms, tell: self()})

    Process.sleep(@rest_ms)

    bursts =
      for _ <- 1..count do
        burst = burst(function, input, jobs())
        Process.sleep(@rest_ms)
        burst
      end

    _ = :tame_neighbour.stop(neighbour)

    %{
      clocks: CPU.clocks(),
      bursts: for({span, _} <- bursts, do: span),
      wakes: wakes([]),
      failed: Enum.find_value([first | bursts], fn {_, why} -> why end)
    }
  end

  defp burst({module, function}, %Input{a: a, b: b}, jobs) do
    from = now_ns()

    workers =
      for _ <- 1..jobs do
        spawn_monitor(fn ->
          try do
            _ = apply(module, function, [a, b])
          catch
            # The lab shows the sentence, so the process ends without a crash report of its own.
            kind, reason -> exit({:shutdown, Exception.format_banner(kind, reason)})
          end
        end)
      end

    failed =
      for {pid, monitor} <- workers do
        receive do
          {:DOWN, ^monitor, :process, ^pid, :normal} -> nil
          {:DOWN, ^monitor, :process, ^pid, {:shutdown, why}} -> why
          {:DOWN, ^monitor, :process, ^pid, reason} -> inspect(reason)
        end
      end

    {{from, now_ns()}, Enum.find(failed, & &1)}
  end

  defp wakes(seen) do
    receive do
      {:tame_neighbour, _, wakes} -> wakes(wakes ++ seen)
    after
      0 -> seen
    end
  end

  defp now_ns, do: :erlang.monotonic_time(:nanosecond)
end
