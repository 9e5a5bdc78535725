defmodule Tame.JobScenarios do
  @moduledoc """
  What a test does with jobs inside a throw-away emulator: killing callers, replacing and unloading the library under
  running jobs, halting; what a call leaves behind. The job is `Tame.JobProbe`; `path` is the file of its counters.
  """

  import Tame.JobCallers

  alias Tame.{JobProbe, OsThreads}

  @endless_us endless_us()

  @doc """
  Kills the caller of an endless job (`inline`, which has but one step: of one of 0.3 s). Returns
  how many ms the job outlived it, and the counters after the next job.
  """
  def kill(placement, path) do
    us = if placement == :inline, do: 300_000, else: @endless_us
    caller = start(placement, us)
    wait_until(fn -> JobProbe.counters(path).step > 3 end)
    killed_at = now_ms()
    stop(caller)
    wait_until(fn -> JobProbe.counters(path).cleanup == 1 end)
    outlived_ms = now_ms() - killed_at
    steps = JobProbe.counters(path).step
    # In one step and one slice, so that its own are known.
    JobProbe.dirty_cpu(0)
    {outlived_ms, JobProbe.counters(path).step - steps - 1, JobProbe.counters(path)}
  end

  @doc "Kills callers at any moment of a short job."
  def kill_anywhere(placement, path) do
    for delay_us <- 0..600//3 do
      caller = start(placement, 300)
      spin_until(System.monotonic_time(:microsecond) + delay_us)
      stop(caller)
    end

    wait_until(fn -> ended?(path) end)
    JobProbe.counters(path)
  end

  @doc """
  Loads the module anew and purges the old, again and again, with jobs in flight that were started
  with a frame of the module on their stack (`wrapped`) or without (`bare`); at last unloads it.
  Returns how the callers ended, and how many threads there are more than before the first load.
  """
  def upgrade(placement, kind, path) do
    threads = OsThreads.count()
    neighbours = neighbours(2, &busy/0)

    ends =
      for round <- 1..2 do
        {:module, JobProbe} = :code.load_file(JobProbe)
        # Never started by a caller of a module that is being replaced: the name is called anew.
        before = JobProbe.counters(path).init
        callers = for _ <- 1..6, do: start(function(placement, kind), 20_000)
        wait_until(fn -> JobProbe.counters(path).init >= before + 2 end)
        spin_until(System.monotonic_time(:microsecond) + round * 3_000)

        if rem(round, 2) == 1, do: :code.load_file(JobProbe), else: :code.delete(JobProbe)
        :code.purge(JobProbe)
        if rem(round, 2) == 1, do: :code.delete(JobProbe)
        :code.purge(JobProbe)
        for caller <- callers, do: await(caller)
      end

    Enum.each(neighbours, &Process.exit(&1, :kill))
    # A caller that came back for its result may have had the module loaded once more.
    :code.purge(JobProbe)
    :code.delete(JobProbe)
    :code.purge(JobProbe)
    wait_until(fn -> ended?(path) end)
    wait_until(fn -> OsThreads.count() <= threads end)
    {ends |> List.flatten() |> Enum.frequencies(), JobProbe.counters(path)}
  end

  @doc """
  Unloads the library while a call without a frame of the module, long done, still pays for its time,
  between the turns of busy neighbours.
  """
  def unload_while_paying(path) do
    Process.flag(:priority, :high)

    ends =
      for round <- 1..4 do
        {:module, JobProbe} = :code.load_file(JobProbe)
        # Each has turns of 1 ms, so that paying takes several times as long as what is paid for.
        neighbours = neighbours(8, &spin/0)
        caller = start(:inline_nif, 20_000)
        wait_until(fn -> JobProbe.counters(path).result == round end)
        :code.delete(JobProbe)
        :code.purge(JobProbe)
        Enum.each(neighbours, &Process.exit(&1, :kill))
        await(caller)
      end

    {Enum.frequencies(ends), JobProbe.counters(path)}
  end

  @doc "Calls the job with a `result` that raises; returns what the caller saw."
  def raise_from_result(placement, us) do
    caller = start(placement, us, "raises")
    await(caller)
  end

  @doc "What a call raises whose init failed without saying why, or with an exception."
  def refused(placement) do
    for word <- ["failed", "raised", "outside", "no argument", "negative", "iodata"],
        do: catch_error(fn -> apply(JobProbe, placement, [1, word]) end)
  end

  def raised(placement, args), do: catch_error(fn -> apply(JobProbe, placement, args) end)

  @doc "Halts the emulator under running and waiting jobs of this placement."
  def halt(placement, path) do
    for _ <- 1..8, do: start(placement, 2_000)
    wait_until(fn -> JobProbe.counters(path).step > 3 end)
    for _ <- 1..200, do: start(placement, 50)
    :erlang.halt(0)
  end

  @doc "What a call leaves in its caller: messages, dictionary, monitors, links."
  def leavings(placement) do
    await(
      spawn_monitor(fn ->
        before = own()
        send(self(), :mine)
        for us <- [0, 50, 2000], do: apply(JobProbe, placement, [us])
        :badarg = catch_error(fn -> apply(JobProbe, placement, [-1]) end)
        receive(do: (:mine -> :ok))
        :erlang.garbage_collect()
        exit({:value, {before, own()}})
      end)
    )
  end

  defp own do
    Process.info(self(), [:messages, :dictionary, :monitors, :links])
  end

  @doc """
  Bytes that a round of that many calls with a wrong argument in either place adds: the median of five, since the emulator
  loads a module or makes a table now and then, and a leak is there in each.
  """
  def bad_calls(placement, count) do
    wrong_calls(placement, div(count, 2))

    growths =
      for _ <- 1..5 do
        before = memory()
        wrong_calls(placement, count)
        memory() - before
      end

    growths |> Enum.sort() |> Enum.at(2)
  end

  defp wrong_calls(placement, count) do
    nif = :"#{placement}_nif"

    for _ <- 1..div(count, 2) do
      {:"$tame", :badarg, {1, _}} = apply(JobProbe, nif, [-1, "s"])
      {:"$tame", :badarg, {2, _}} = apply(JobProbe, nif, [1, :no_binary])
    end
  end

  defp memory do
    for pid <- Process.list(), do: :erlang.garbage_collect(pid)
    :erlang.memory(:system) + :erlang.memory(:binary)
  catch
    # Under +Mea min (make test-sanitized) nobody counts; then the counters have to do.
    :error, :notsup -> 0
  end

  @doc "Reductions of an inline call of that length while the emulator is stopped for a second by somebody else."
  def stopped(us, tries \\ 10) do
    os_pid = :os.getpid()
    stop = ~c"(sleep 0.1; kill -STOP #{os_pid}; sleep 1; kill -CONT #{os_pid}) > /dev/null 2>&1"
    {_, shell} = spawn_monitor(fn -> :os.cmd(stop) end)
    Process.sleep(30)
    {:reductions, before} = Process.info(self(), :reductions)
    {passed, _} = :timer.tc(fn -> JobProbe.inline(us) end)
    {:reductions, later} = Process.info(self(), :reductions)
    receive(do: ({:DOWN, ^shell, _, _, _} -> :ok))

    # A shell that begins late stops a VM whose job has ended.
    if passed > 1_000_000 or tries == 1,
      do: {later - before, passed},
      else: stopped(us, tries - 1)
  end

  defp function(placement, :wrapped), do: placement
  defp function(placement, :bare), do: :"#{placement}_nif"
  defp now_ms, do: System.monotonic_time(:millisecond)
end
