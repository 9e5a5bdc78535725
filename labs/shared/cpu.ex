defmodule Tame.CPU do
  @moduledoc """
  Which threads of a VM use the cores, looked at from outside, from another VM: normal schedulers, dirty ones, all other
  threads of its OS process, and the hosts of isolated libraries.

  The VM's own counters know schedulers only, and a VM whose schedulers are held does not say them. The kernel counts for
  every thread. What is read every 20 ms is the time of each scheduler's thread (`/proc/PID/task/TID/schedstat`) and that
  of the whole process (`:tame_cpu`); the difference is that of the other threads: a library's pool, threads of a call
  that have ended meanwhile, the VM's poll thread. A scheduler that waits busily uses its core, and is seen to.

  A thread that runs is counted at the kernel's next tick, which is up to 4 ms late: so much of a bar may belong to the
  one before it. Where the kernel does not count so, as elsewhere than on Linux, nothing is seen, and that is said as an
  empty list.
  """

  alias Tame.Proc

  @sample_ms 20

  # More than a small picture has pixels for.
  @drawn 400

  @typedoc "A process that samples."
  @type recording :: {pid(), reference()}

  @typedoc "What has been used up to a moment of the machine's clock (`:os.perf_counter/1`), in ns."
  @type sample :: %{
          at_ns: integer(),
          normal: non_neg_integer(),
          dirty: non_neg_integer(),
          process: non_neg_integer(),
          hosts: non_neg_integer()
        }

  @typedoc "Between two samples: how many cores each kind used."
  @type stretch :: %{
          from_ns: integer(),
          to_ns: integer(),
          normal: float(),
          dirty: float(),
          other: float(),
          hosts: float()
        }

  @doc "Every kind of thread, in the order of pictures."
  @spec kinds() :: [:normal | :dirty | :other | :hosts]
  def kinds, do: [:normal, :dirty, :other, :hosts]

  @doc "The time between two samples, in ms."
  @spec sample_ms() :: pos_integer()
  def sample_ms, do: @sample_ms

  @doc """
  Begins to sample the VM with that OS process, and its hosts, if it has some. Its schedulers' threads must be there
  already, as they are once it answers. The recording ends with `stop/1` or with the process that called this.
  """
  @spec start(String.t(), [pos_integer()]) :: recording()
  def start(os_pid, hosts \\ []) do
    owner = self()
    {pid, monitor} = spawn_monitor(fn -> init(owner, os_pid, hosts) end)

    receive do
      {__MODULE__, ^pid, :started} -> {pid, monitor}
      {:DOWN, ^monitor, :process, ^pid, reason} -> exit({:cpu_down, reason})
    end
  end

  @doc "Ends a recording and returns its samples. Call it in the process that called `start/2`."
  @spec stop(recording()) :: [sample()]
  def stop({pid, monitor}) do
    send(pid, {__MODULE__, :stop})

    receive do
      {__MODULE__, ^pid, samples} ->
        Process.demonitor(monitor, [:flush])
        samples

      {:DOWN, ^monitor, :process, ^pid, reason} ->
        exit({:cpu_down, reason})
    end
  end

  @doc """
  How many cores each kind used between each two samples; of a long recording every second sample, or third and so on, is
  left out, so that it can be drawn.

      iex> ms = 1_000_000
      iex> samples = [
      ...>   %{at_ns: 0, normal: 0, dirty: 0, process: 0, hosts: 0},
      ...>   %{at_ns: 20 * ms, normal: 5 * ms, dirty: 0, process: 40 * ms, hosts: 0}
      ...> ]
      iex> Tame.CPU.stretches(samples)
      [%{from_ns: 0, to_ns: 20_000_000, normal: 0.25, dirty: 0.0, other: 1.75, hosts: 0.0}]
  """
  @spec stretches([sample()]) :: [stretch()]
  def stretches(samples) do
    samples = samples |> others() |> thin()

    for [before, later] <- Enum.chunk_every(samples, 2, 1, :discard),
        passed = later.at_ns - before.at_ns,
        passed > 0 do
      for kind <- kinds(), into: %{from_ns: before.at_ns, to_ns: later.at_ns} do
        {kind, (later[kind] - before[kind]) / passed}
      end
    end
  end

  @doc """
  As `stretches/1`, as shares of all cores and in ms from a moment of the machine's clock on: what pictures and JSON have.

      iex> ms = 1_000_000
      iex> samples = [
      ...>   %{at_ns: 0, normal: 0, dirty: 0, process: 0, hosts: 0},
      ...>   %{at_ns: 20 * ms, normal: 5 * ms, dirty: 0, process: 40 * ms, hosts: 0}
      ...> ]
      iex> Tame.CPU.shares(samples, 2, 10 * ms)
      [%{since_ms: -10.0, at_ms: 10.0, normal: 0.125, dirty: 0.0, other: 0.875, hosts: 0.0}]
  """
  @spec shares([sample()], pos_integer(), integer()) :: [map()]
  def shares(samples, cores, zero_ns) do
    for stretch <- stretches(samples) do
      for kind <- kinds(),
          into: %{since_ms: ms(stretch.from_ns - zero_ns), at_ms: ms(stretch.to_ns - zero_ns)},
          do: {kind, Float.round(stretch[kind] / cores, 3)}
    end
  end

  defp ms(ns), do: Float.round(ns / 1_000_000, 1)

  # From the end, so that the last one stays.
  defp thin(samples) do
    every = max(1, ceil(length(samples) / @drawn))
    samples |> Enum.reverse() |> Enum.take_every(every) |> Enum.reverse()
  end

  # The process is exact and its threads come late, so the difference goes up and down: the highest so far is right.
  defp others(samples) do
    {samples, _} =
      Enum.map_reduce(samples, 0, fn sample, most ->
        other = max(most, sample.process - sample.normal - sample.dirty)
        {Map.put(sample, :other, other), other}
      end)

    samples
  end

  @doc "What a clock and the machine's clock say at one moment, by which the times of two VMs are brought together."
  @spec clocks() :: %{monotonic_ns: integer(), machine_ns: integer()}
  def clocks do
    %{
      monotonic_ns: :erlang.monotonic_time(:nanosecond),
      machine_ns: :os.perf_counter(:nanosecond)
    }
  end

  # ---- the process that samples ------------------------------------------------------------------

  defp init(owner, os_pid, hosts) do
    monitor = Process.monitor(owner)

    threads =
      for {kind, _, folder} when kind != :other <- Proc.threads(os_pid),
          do: {kind, Proc.open_time(folder)}

    watched = %{threads: threads, process: String.to_integer(os_pid), hosts: hosts}
    first = read(watched, [])
    send(owner, {__MODULE__, self(), :started})
    sample(watched, first, now_ms() + @sample_ms, owner, monitor)
  end

  defp sample(watched, samples, planned, owner, monitor) do
    receive do
      {__MODULE__, :stop} ->
        send(owner, {__MODULE__, self(), Enum.reverse(read(watched, samples))})

      {:DOWN, ^monitor, :process, ^owner, _} ->
        :ok
    after
      max(0, planned - now_ms()) ->
        samples = read(watched, samples)
        missed = max(0, div(now_ms() - planned, @sample_ms))
        sample(watched, samples, planned + (missed + 1) * @sample_ms, owner, monitor)
    end
  end

  # A process that has ended leaves the samples as they are.
  defp read(watched, samples) do
    at_ns = :os.perf_counter(:nanosecond)
    process = :tame_cpu.process_ns(watched.process)
    times = for {kind, time} <- watched.threads, do: {kind, Proc.time_ns(time)}

    if process == :unknown or times == [] or Enum.any?(times, &(elem(&1, 1) == nil)) do
      samples
    else
      hosts = for pid <- watched.hosts, ns = :tame_cpu.process_ns(pid), is_integer(ns), do: ns
      of = fn kind -> Enum.sum(for {^kind, ns} <- times, do: ns) end
      sample = %{at_ns: at_ns, process: process, hosts: Enum.sum(hosts)}
      [Map.merge(sample, %{normal: of.(:normal), dirty: of.(:dirty)}) | samples]
    end
  end

  defp now_ms, do: System.monotonic_time(:millisecond)
end
