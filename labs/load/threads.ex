defmodule Tame.Load.Threads do
  @moduledoc """
  The CPU time of a VM by kind of thread, as the kernel counts it (`/proc/PID/task/TID/schedstat`): what a request costs is
  the difference between two readings.

  Of the schedulers, of the threads that wait for sockets, and of the one for background work each thread is read; all else is
  the time of the whole process less those, so that threads that have ended count too.
  """

  alias Tame.Proc

  @type kind :: :regular | :dirty | :poll | :aux | :other
  @type reading :: %{at_ns: integer(), ns: %{kind() => non_neg_integer()}}

  @doc "Every kind, in the order of tables."
  @spec kinds() :: [kind()]
  def kinds, do: [:regular, :dirty, :poll, :aux, :other]

  @doc """
  Reads all threads of an OS process; nil when it is gone, or where the kernel does not count so. Of a program that is no VM all
  threads are `:other`.
  """
  @spec read(String.t()) :: nil | reading()
  def read(os_pid) do
    threads =
      for {scheduler, _, folder} <- Proc.threads(os_pid),
          kind = kind(scheduler, folder),
          kind != :other,
          do: {kind, folder}

    times =
      for {kind, folder} <- threads, time = Proc.open_time(folder) do
        ns = Proc.time_ns(time)
        close(time)
        {kind, ns || 0}
      end

    case :tame_cpu.process_ns(String.to_integer(os_pid)) do
      ns when is_integer(ns) and (times != [] or threads == []) ->
        known = for kind <- kinds(), into: %{}, do: {kind, Enum.sum(for {^kind, n} <- times, do: n)}
        other = max(0, ns - Enum.sum(Map.values(known)))
        %{at_ns: :os.perf_counter(:nanosecond), ns: %{known | other: other}}

      _ ->
        nil
    end
  end

  @doc """
  CPU time of each kind between two readings, in µs for each of the requests; nil where there is none.

      iex> zero = %{at_ns: 0, ns: %{regular: 0, dirty: 0, poll: 0, aux: 0, other: 0}}
      iex> later = %{at_ns: 1, ns: %{regular: 40_000, dirty: 0, poll: 1000, aux: 0, other: 0}}
      iex> Tame.Load.Threads.us_per_request(zero, later, 2)
      %{regular: 20.0, dirty: 0.0, poll: 0.5, aux: 0.0, other: 0.0}
  """
  @spec us_per_request(nil | reading(), nil | reading(), non_neg_integer()) ::
          nil | %{kind() => float()}
  def us_per_request(before, later, requests)
      when before == nil or later == nil or requests == 0,
      do: nil

  def us_per_request(before, later, requests) do
    for kind <- kinds(),
        into: %{},
        do: {kind, max(0, later.ns[kind] - before.ns[kind]) / 1000 / requests}
  end

  defp kind(:normal, _folder), do: :regular
  defp kind(:dirty, _folder), do: :dirty

  defp kind(:other, folder) do
    case File.read(Path.join(folder, "comm")) do
      {:ok, name} -> named(String.trim(name))
      {:error, _} -> nil
    end
  end

  @doc """
  What a thread that is no scheduler's is, by its name up to OTP 25 and after.

      iex> Enum.map(~w(1_poller erts_poll_2 aux erts_aux_1 beam.smp), &Tame.Load.Threads.named/1)
      [:poll, :poll, :aux, :aux, :other]
  """
  @spec named(String.t()) :: kind()
  def named(name) do
    cond do
      name =~ ~r/^(\d+_poller|erts_poll_\d+)/ -> :poll
      name =~ ~r/^(\d+_)?(erts_)?aux(_\d+)?/ -> :aux
      true -> :other
    end
  end

  defp close({:schedstat, file}), do: :file.close(file)
  defp close(_), do: :ok
end
