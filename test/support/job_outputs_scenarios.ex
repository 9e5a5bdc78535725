defmodule Tame.JobOutputsScenarios do
  @moduledoc "What a test does with `Tame.JobOutputs` inside a throw-away emulator, whose binaries can be counted."

  alias Tame.{Await, JobOutputs, JobSlicesScenarios}

  @mib 1024 * 1024
  @tries 50

  @doc "Which of these sizes does not come out as it should; `made` is how much more is made than that, or nothing."
  def wrong(placement, sizes, more \\ nil) do
    for size <- sizes,
        made = if(more, do: size + more, else: 0),
        JobOutputs.grow(placement, size, made) != JobOutputs.expected(size),
        do: size
  end

  @doc """
  The longest slice of a call, and how long it took, in us: of seven, the one whose longest was the smallest part. Memory
  that nobody had before takes longer, and so does a slice that another process of the machine interrupts.
  """
  def slices(placement, bytes, made) do
    calls =
      for _ <- 1..7,
          do: JobSlicesScenarios.slices(fn -> JobOutputs.grow(placement, bytes, made) end)

    Enum.min_by(calls, fn {longest, total} -> longest / total end)
  end

  @doc "How many bytes the VM holds for a result of `bytes`, of an output that was made with room for `made`."
  def held(placement, bytes, made) do
    grown = JobOutputs.grow(placement, bytes, made)
    ^bytes = byte_size(grown)
    :binary.referenced_byte_size(grown)
  end

  @doc "Parts, gathered in steps or at once."
  def parts(function, bytes, cut) do
    expected = JobOutputs.expected(bytes)
    JobOutputs |> apply(function, [3, bytes, cut]) |> Enum.map(&(&1 == expected))
  end

  @doc """
  Calls that `ending` ends, until it has ended one whose steps were done and that had no result yet. Returns whether that
  came to be, whether all were cleaned up, and how many MiB of binaries are left over.
  """
  def ended(placement, ending) do
    # The library is loaded, and its threads are there.
    _ = JobOutputs.grow(placement, 10_000)
    before = mib()
    {_, _, cleaned} = JobOutputs.counts()
    met = tried(placement, ending, {200, 8_000}, 1)

    {met != nil, Await.until(fn -> elem(JobOutputs.counts(), 2) == cleaned + (met || @tries) end),
     if(Await.until(fn -> mib() < before + 16 end), do: 0, else: mib() - before)}
  end

  # The number of the try that met one. Its steps end `early_us` before its deadline: earlier from one that was struck in
  # its steps on, and later from one that had a result, because how long both take depends on the machine; where the steps
  # alone take too long, the deadline is later.
  defp tried(_, _, _, try) when try > @tries, do: nil

  defp tried(placement, ending, {deadline_ms, early_us} = times, try) do
    {stepped, resulted, _} = JobOutputs.counts()
    end_one(ending, placement, stepped, times)

    case JobOutputs.counts() do
      {^stepped, _, _} when early_us > 500 * deadline_ms ->
        tried(placement, ending, {2 * deadline_ms, early_us}, try + 1)

      {^stepped, _, _} ->
        tried(placement, ending, {deadline_ms, 2 * early_us}, try + 1)

      {_, ^resulted, _} ->
        try

      _ ->
        tried(placement, ending, {deadline_ms, max(div(2 * early_us, 3), 500)}, try + 1)
    end
  end

  defp end_one(:kill, placement, stepped, _) do
    {pid, monitor} = spawn_monitor(JobOutputs, :grow, [placement, 64 * @mib])
    await_steps(stepped)
    Process.exit(pid, :kill)
    receive(do: ({:DOWN, ^monitor, :process, ^pid, _} -> :ok))
  end

  defp end_one(:cancel, placement, stepped, _) do
    {:ok, ref} = :tame.async(&JobOutputs.grow/2, [placement, 64 * @mib])
    await_steps(stepped)
    :ok = :tame.cancel(ref)
  end

  defp end_one(:deadline, placement, _, {deadline_ms, early_us}) do
    steps_us = 1000 * deadline_ms - early_us
    Tame.deadline(deadline_ms, fn -> JobOutputs.grow(placement, 64 * @mib, 0, steps_us) end)
  catch
    :error, {:tame, :deadline} -> :ok
  end

  defp await_steps(stepped) do
    {now, _, _} = JobOutputs.counts()
    if now == stepped, do: await_steps(stepped)
  end

  defp mib do
    :erlang.garbage_collect()
    div(:erlang.memory(:binary), @mib)
  rescue
    # With its memory from malloc (+Mea min, for sanitizers) the VM does not count it.
    ErlangError -> 0
  end

  def outside do
    JobOutputs.outside()
  catch
    :error, reason -> reason
  end
end
