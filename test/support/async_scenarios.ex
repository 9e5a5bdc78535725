defmodule Tame.AsyncScenarios do
  @moduledoc """
  Asynchronous calls that end in every order of cancel, finish, deadline and death of the caller, in
  a throw-away emulator whose processes can be counted.
  """

  # Finish, fail, work in the pool for any time from nothing to more than the test looks at.
  @funs [
    {__MODULE__, :nothing, 0},
    {__MODULE__, :failure, 0},
    {:tame_spin, :spin_yielding, 1},
    {:tame_spin, :spin_pool, 1}
  ]

  def nothing, do: :nothing
  def failure, do: exit(:failure)

  @doc """
  That number of calls, 20 callers at a time. Returns the processes that are left over, the messages that were not
  `{ref, {:ok, _} | {:error, _}}` of a call in flight, and what of the callers still monitors or is monitored.
  """
  def interleave(count, seed) do
    # The library is loaded, and the pool there, before anything is counted.
    :ok = :tame_spin.spin_pool(1)
    before = length(Process.list())
    :rand.seed(:exsss, {seed, 0, 0})

    strange =
      for _ <- 1..div(count, 20) do
        seeds = for _ <- 1..20, do: :rand.uniform(1_000_000_000)
        callers = for s <- seeds, do: spawn_monitor(fn -> exit({:strange, caller(s)}) end)
        killed = for {pid, _} <- callers, :rand.uniform(4) == 1, do: pid
        for pid <- killed, do: spawn(fn -> late(:rand.uniform(300)) && Process.exit(pid, :kill) end)
        for caller <- callers, do: ended(caller)
      end

    {settled(before), strange |> List.flatten() |> Enum.uniq()}
  end

  # One caller with two calls at once. Returns what was not as it should be.
  defp caller(seed) do
    :rand.seed(:exsss, {seed, 1, 1})
    calls = for _ <- 1..2, do: start(:rand.uniform(5))
    late(:rand.uniform(300))
    for ref <- calls, do: :rand.uniform(3) > 1 && :tame.cancel(ref)

    strange =
      receive do
        {ref, {kind, _}} when kind in [:ok, :error] -> if ref in calls, do: [], else: [ref]
        other -> [other]
      after
        0 -> []
      end

    for ref <- calls, do: :ok = :tame.cancel(ref)
    {:messages, left} = Process.info(self(), :messages)
    {:monitors, monitors} = Process.info(self(), :monitors)
    strange ++ left ++ monitors
  end

  defp start(5),
    do: start(:tame_spin, :spin_yielding, [1_000_000], %{deadline_ms: :rand.uniform(2) - 1})

  defp start(which) do
    {module, function, arity} = Enum.at(@funs, which - 1)
    start(module, function, List.duplicate(:rand.uniform(400), arity), %{})
  end

  defp start(module, function, args, options) do
    {:ok, ref} = :tame.async(Function.capture(module, function, length(args)), args, options)
    ref
  end

  defp ended({pid, monitor}) do
    receive do
      {:DOWN, ^monitor, :process, ^pid, {:strange, strange}} -> strange
      {:DOWN, ^monitor, :process, ^pid, :killed} -> []
      {:DOWN, ^monitor, :process, ^pid, reason} -> [reason]
    end
  end

  # Workers and guards that were told to end may take a moment. 0 when none is left.
  defp settled(before) do
    more = fn -> length(Process.list()) - before end
    Tame.Await.until(fn -> more.() <= 0 end, 20_000)
    max(more.(), 0)
  end

  defp late(us), do: late_until(System.monotonic_time(:microsecond) + us)

  defp late_until(at_us) do
    System.monotonic_time(:microsecond) >= at_us or late_until(at_us)
  end
end
