defmodule Tame.Contention.Cell do
  @moduledoc """
  Runs one cell: a fresh peer, a flood in it, and what its observers said, as plain data.

  The peer stops its flood by itself at the cell's limit. A peer that cannot, because native code holds all its
  schedulers, is killed by this VM's clock; the cell then has what the peer had sent until then.
  """

  alias Tame.Contention.Figures
  alias Tame.{CPU, Peer}

  @typedoc "What is to be run: the type `cell` of `tame_contention`."
  @type spec :: map()

  @typedoc """
  What was seen. `ended_ns` is when the flood ended or the peer was killed; times are the peer's monotonic
  ones. `outcome` is nil of a flood that was killed, `slices` too.
  """
  @type raw :: %{
          facts: map(),
          started_ns: nil | integer(),
          ended_ns: integer(),
          outcome: nil | map(),
          slices: nil | [map()],
          neighbours: [{term(), integer(), integer()}],
          askers: [{atom(), :asked | :got, integer()}],
          long_schedules: non_neg_integer(),
          samples: [map()],
          cpu: [Tame.CPU.sample()],
          memory_bytes: non_neg_integer()
        }

  # To start processes, load libraries and fill a heap of 50 MB.
  @ready_ms 20_000

  # How long after its limit a flood may take to say that it has ended.
  @grace_ms 3_000

  @doc "Runs a cell with the given emulator flags."
  @spec run(spec(), [String.t()]) :: {:ok, raw()} | {:error, String.t()}
  def run(spec, flags) do
    with {:ok, peer} <- Peer.start(flags) do
      try do
        tag = make_ref()
        monitor = Process.monitor(peer.pid)
        cpu = CPU.start(peer.os_pid)
        :ok = Peer.cast(peer, :tame_contention, :run, [self(), tag, spec])
        seen = watch(%{peer: peer, tag: tag, monitor: monitor, spec: spec})
        samples = CPU.stop(cpu)
        with {:ok, raw} <- seen, do: {:ok, %{raw | cpu: samples}}
      after
        Peer.stop(peer)
      end
    end
  end

  defp watch(%{tag: tag, spec: spec} = lab) do
    with {:ok, facts} <- hello(lab) do
      raw = %{Figures.no_raw() | facts: facts, started_ns: nil, ended_ns: nil}
      deadline = now_ms() + spec.lead_ms + spec.limit_ms + spec.tail_ms + @grace_ms
      collect(raw, Map.put(lab, :deadline, deadline), tag)
    end
  end

  # Portions may come before it, of the time in which observers start; they are not of interest.
  defp hello(%{tag: tag, monitor: monitor}) do
    receive do
      {:tame_contention, ^tag, {:hello, facts}} -> {:ok, facts}
      {:DOWN, ^monitor, :process, _, reason} -> {:error, gone(reason)}
    after
      @ready_ms -> {:error, "the peer node was not ready within #{div(@ready_ms, 1000)} s"}
    end
  end

  defp collect(raw, %{peer: peer, monitor: monitor} = lab, tag) do
    receive do
      {:tame_contention, ^tag, {:portion, portion}} ->
        raw |> add(portion) |> collect(lab, tag)

      {:tame_contention, ^tag, {:flood, started_ns}} ->
        collect(%{raw | started_ns: started_ns}, lab, tag)

      {:tame_contention, ^tag, {:ended, outcome}} ->
        raw = %{raw | outcome: outcome, started_ns: outcome.started_ns}

        collect(
          %{raw | ended_ns: outcome.ended_ns, memory_bytes: Peer.memory_bytes(peer)},
          lab,
          tag
        )

      {:tame_contention, ^tag, {:done, slices}} ->
        {:ok, in_order(%{raw | slices: slices})}

      {:DOWN, ^monitor, :process, _, reason} ->
        {:error, gone(reason)}
    after
      max(0, lab.deadline - now_ms()) ->
        memory_bytes = Peer.memory_bytes(peer)
        ended_ns = raw.ended_ns || here_as_there_ns(raw.facts)
        {:ok, in_order(%{raw | ended_ns: ended_ns, memory_bytes: memory_bytes})}
    end
  end

  defp add(raw, portion) do
    %{
      raw
      | neighbours: portion.neighbours ++ raw.neighbours,
        askers: portion.askers ++ raw.askers,
        long_schedules: raw.long_schedules + portion.long_schedules,
        samples: [portion.sample | raw.samples]
    }
  end

  defp in_order(raw) do
    %{
      raw
      | neighbours: Enum.reverse(raw.neighbours),
        askers: Enum.reverse(raw.askers),
        samples: Enum.reverse(raw.samples)
    }
  end

  # Our time on the peer's scale: both VMs read the machine's clock, each from a zero of its own.
  defp here_as_there_ns(facts) do
    :os.perf_counter(:nanosecond) - facts.machine_ns + facts.monotonic_ns
  end

  # A VM that was killed, for example by the system when memory ran out, gives no reason.
  defp gone(:normal), do: "the peer node died, killed from outside or out of memory"
  defp gone(reason), do: "the peer node died: #{inspect(reason)}"

  defp now_ms, do: System.monotonic_time(:millisecond)
end
