defmodule Tame.JobQueueScenarios do
  @moduledoc """
  Who waits for a job inside a throw-away emulator: in line before the pool, at a gate, in its mailbox. The job is
  `Tame.JobProbe`; `path` is the file of its counters.
  """

  import Tame.JobCallers

  alias Tame.JobProbe

  @endless_us endless_us()

  @doc "Fills the pool, lets others wait for it, kills those. Returns how many have been cleaned up."
  def kill_waiting(path) do
    running = hold_pool(path)
    waiting = for _ <- 1..10, do: start(:pool, @endless_us)
    wait_until(fn -> Enum.all?(waiting, &waits?/1) end)
    Enum.each(waiting, &stop/1)

    waited = catch_timeout(fn -> wait_until(fn -> JobProbe.counters(path).cleanup == 10 end) end)

    cleaned = JobProbe.counters(path).cleanup
    release(running, path)
    wait_until(fn -> ended?(path) end)
    {waited, cleaned, JobProbe.counters(path)}
  end

  @doc """
  One worker (the emulator has one scheduler), 20 calls in order; the order in which they ended. A step that has no core for
  100 ms lets another go on without a permit (tame/permits.h), as may happen on a busy machine: tries again where they
  ended in another order.
  """
  def order(path, tries \\ 20) do
    before = JobProbe.counters(path).result
    running = hold_pool(path)
    callers = for _ <- 1..20, do: start_and_wait(:pool)
    release(running, path)
    ends = for caller <- callers, {:value, number} <- [await(caller)], do: number - before

    if ends != Enum.sort(ends) and tries > 1, do: order(path, tries - 1), else: ends
  end

  @doc "Calls `few`, for which 3 may wait, 10 times while the pool is full. Returns the 10 ends."
  def refuse(path) do
    running = hold_pool(path)
    callers = for _ <- 1..10, do: start_and_wait(:few)
    release(running, path)
    for caller <- callers, do: await(caller)
  end

  @doc """
  Calls `gated`; 2 may run and 3 wait: two that do not end, then six, of which the second
  dies while it waits, then one more. Returns how all but the second ended, in the order of the calls.
  """
  def gate(path) do
    running =
      for number <- 1..2 do
        caller = start(:gated, @endless_us)
        wait_until(fn -> JobProbe.counters(path).init == number end)
        caller
      end

    [first, second | rest] = for _ <- 1..6, do: start_and_wait(:gated)
    stop(second)
    late = start_and_wait(:gated)
    Enum.each(running, &stop/1)
    ends = for caller <- [first | rest] ++ [late], do: await(caller)
    wait_until(fn -> ended?(path) end)
    {ends, JobProbe.counters(path)}
  end

  @doc "Many callers of `gated`, killed at any moment. Then both places must be free: returns how many got one."
  def gate_storm(path) do
    for _ <- 1..200 do
      callers = for _ <- 1..5, do: start(:gated, 200)
      spin_until(System.monotonic_time(:microsecond) + :rand.uniform(600))
      Enum.each(callers, &stop/1)
    end

    wait_until(fn -> ended?(path) end)
    admitted(:gated, path)
  end

  @doc "Endless runs in each worker of the pool, then short calls: how many of 20 come to their end."
  def short_behind_long(path) do
    workers = :erlang.system_info(:schedulers_online)
    running = for _ <- 1..workers, do: start(:pool, @endless_us)
    wait_until(fn -> JobProbe.counters(path).step > 10 * workers end)
    short = for _ <- 1..20, do: start(:pool, 200)
    ends = for caller <- short, do: await(caller)
    Enum.each(running, &stop/1)
    Enum.count(ends, &match?({:value, _}, &1))
  end

  @doc "Errors that came late, kept with their stacks: how many calls get a place at the gate of two beside them."
  def kept_errors(path) do
    kept =
      for _ <- 1..3 do
        try do
          JobProbe.gated_pool(300, "raises")
        rescue
          error -> {error, __STACKTRACE__}
        end
      end

    {admitted(:gated_pool, path),
     for({_, [{module, function, args, _} | _]} <- kept, do: {module, function, args})}
  end

  @doc "Threads of the pool after calls one after the other, and after many at once."
  def workers(path) do
    for _ <- 1..20, do: JobProbe.pool(100)
    after_each_other = worker_count()
    callers = for _ <- 1..50, do: start(:pool, 2_000)
    for caller <- callers, do: await(caller)
    wait_until(fn -> ended?(path) end)
    {after_each_other, worker_count()}
  end

  defp worker_count do
    for task <- File.ls!("/proc/self/task"),
        {:ok, "tame_worker" <> _} <- [File.read("/proc/self/task/#{task}/comm")],
        reduce: 0,
        do: (count -> count + 1)
  end

  @doc "Medians in us of a pool call with that number of messages in the mailbox, and with none."
  def mailbox(count) do
    empty = median_us(fn -> JobProbe.pool(1) end)
    for n <- 1..count, do: send(self(), n)
    {median_us(fn -> JobProbe.pool(1) end), empty}
  end

  defp median_us(fun) do
    times = for _ <- 1..41, do: elem(:timer.tc(fun), 0)
    Enum.at(Enum.sort(times), 20)
  end

  @doc "How long it takes in us to kill that number of callers that wait at the gate: the first first, the last first."
  def kill_orders(count, path) do
    for order <- [:first, :last] do
      before = JobProbe.counters(path)
      running = for _ <- 1..2, do: start(:queued, @endless_us)
      wait_until(fn -> JobProbe.counters(path).init == before.init + 2 end)
      callers = for _ <- 1..count, do: start(:queued, 1)
      wait_until(fn -> Enum.all?(callers, &waits?/1) end, 60_000)
      callers = if order == :last, do: Enum.reverse(callers), else: callers

      {us, _} =
        :timer.tc(fn ->
          for {pid, _} <- callers, do: Process.exit(pid, :kill)

          for {pid, monitor} <- callers,
              do: receive(do: ({:DOWN, ^monitor, :process, ^pid, _} -> :ok))
        end)

      Enum.each(running, &stop/1)
      wait_until(fn -> ended?(path) end)
      us
    end
  end
end
