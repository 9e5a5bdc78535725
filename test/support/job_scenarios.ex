defmodule Tame.JobScenarios do
  @moduledoc """
  What a test does with jobs inside a throw-away emulator: killing callers, replacing and unloading
  the library under running jobs. The job is `Tame.JobProbe`; `path` is the file of its counters.
  """

  alias Tame.JobProbe

  # Longer than any test takes: a job of that length ends because it was stopped.
  @endless_us 600_000_000

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

  @doc "Fills the pool, lets others wait for it, kills those. Returns how many have been cleaned up."
  def kill_waiting(path) do
    running = hold_pool(path)
    waiting = for _ <- 1..10, do: start(:pool, @endless_us)
    wait_until(fn -> Enum.all?(waiting, &waits?/1) end)
    Enum.each(waiting, &stop/1)

    waited =
      catch_timeout(fn -> wait_until(fn -> JobProbe.counters(path).cleanup == 10 end, 2000) end)

    cleaned = JobProbe.counters(path).cleanup
    release(running, path)
    wait_until(fn -> ended?(path) end)
    {waited, cleaned, JobProbe.counters(path)}
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
    threads = thread_count()
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
    wait_until(fn -> thread_count() <= threads end)
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
    before = JobProbe.counters(path).init
    running = for _ <- 1..2, do: start(:gated, @endless_us)
    catch_timeout(fn -> wait_until(fn -> JobProbe.counters(path).init == before + 2 end, 5000) end)
    admitted = JobProbe.counters(path).init - before
    Enum.each(running, &stop/1)
    admitted
  end

  @doc """
  A caller that has all steps done and has not asked for the result: what another process gets that asks in
  its place, and what is cleaned up after its death, although others hold what it would have asked with.
  """
  def die_before_fetch(path) do
    {caller, run} = done(:pool_nif)
    stolen = catch_error(fn -> go_on(run) end)
    before = JobProbe.counters(path)
    stop(caller)
    wait_until(fn -> ended?(path) end)
    {stolen, before, JobProbe.counters(path), tuple_size(run)}
  end

  @doc "Places of `gated_pool` (2) after their callers died with all steps done: how many calls then get one."
  def gate_before_fetch(path) do
    held = for _ <- 1..2, do: done(:gated_pool_nif)
    for {caller, _} <- held, do: stop(caller)
    before = JobProbe.counters(path).init
    running = for _ <- 1..2, do: start(:gated_pool, @endless_us)
    catch_timeout(fn -> wait_until(fn -> JobProbe.counters(path).init == before + 2 end, 5000) end)
    admitted = JobProbe.counters(path).init - before
    Enum.each(running, &stop/1)
    {admitted, length(held)}
  end

  @doc "A result is fetched once: with wrong arguments, rightly, and a second time."
  def fetch_twice(path) do
    {{pid, _} = caller, run} = done(:pool_nif)

    answers =
      for args <- [[300], [300, "long enough s"], [300, "long enough s"]], do: ask(pid, run, args)

    stop(caller)
    {answers, JobProbe.counters(path)}
  end

  @doc """
  Loads the module anew, purging the old, while one call has all steps done and one has its turn at the gate;
  then both go on. Returns what they get.
  """
  def upgrade_before_fetch(path) do
    {{done, _} = first, done_run} = done(:pool_nif)
    running = for _ <- 1..2, do: start(:gated_nif, @endless_us)
    wait_until(fn -> JobProbe.counters(path).init == 3 end)
    {{turn, _} = second, turn_run} = waiting(:gated_nif)
    Enum.each(running, &stop/1)
    :ok = ask(turn, :wait_for_message, [])
    {:module, JobProbe} = :code.load_file(JobProbe)
    :code.purge(JobProbe)

    answers =
      for {pid, run} <- [{done, done_run}, {turn, turn_run}],
          do: ask(pid, run, [300, "long enough s"])

    Enum.each([first, second], &stop/1)
    wait_until(fn -> ended?(path) end)
    {answers, JobProbe.counters(path)}
  end

  # A process that has made a bare call of the NIF, whose steps are done, and waits to be asked for the rest.
  defp done(nif) do
    {{pid, _} = caller, run} = waiting(nif)
    :ok = ask(pid, :wait_for_message, [])
    {caller, run}
  end

  defp waiting(nif) do
    me = self()

    caller =
      spawn_monitor(fn ->
        {:"$tame", :run, run} = apply(JobProbe, nif, [300, "long enough s"])
        ref = make_ref()
        send(me, {self(), hand_over(run, ref)})
        answer_asked(ref)
      end)

    {pid, _} = caller
    receive(do: ({^pid, run} -> {caller, run}))
  end

  defp hand_over(run, ref) do
    case JobProbe."$tame"(run, ref, [300, "long enough s"]) do
      {:"$tame", :wait, waiting} ->
        waiting

      {:"$tame", :online, run} ->
        :ok = JobProbe."$tame"(:erlang.system_info(:schedulers_online), :online, [])
        hand_over(run, ref)
    end
  end

  defp go_on(run, args \\ [300, "long enough s"]), do: JobProbe."$tame"(run, make_ref(), args)

  defp answer_asked(ref) do
    receive do
      {from, :wait_for_message, []} ->
        receive(do: ({^ref, _} -> send(from, {self(), :ok})))

      {from, run, args} ->
        send(from, {self(), catch_error(fn -> go_on(run, args) end)})
    end

    answer_asked(ref)
  end

  defp ask(pid, run, args) do
    send(pid, {self(), run, args})
    receive(do: ({^pid, answer} -> answer))
  end

  @doc "What a call raises whose init failed without saying why, or with an exception."
  def refused(placement) do
    for word <- ["failed", "raised", "outside", "no argument", "negative", "iodata"],
        do: catch_error(fn -> apply(JobProbe, placement, [1, word]) end)
  end

  defp start_and_wait(function) do
    caller = {pid, _} = start(function, 100)
    wait_until(fn -> waits?(caller) or not Process.alive?(pid) end)
    caller
  end

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

  @doc "Memory before and after that number of calls with a wrong argument in either place."
  def bad_calls(placement, count) do
    few = div(count, 10)
    bad_calls(placement, few, :warm)
    before = memory()
    bad_calls(placement, count, :measured)
    {before, memory()}
  end

  defp bad_calls(placement, count, _) do
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

  # ---- parts ------------------------------------------------------------------------------------

  # Each worker has a step that does not end before its release.
  defp hold_pool(path) do
    workers = :erlang.system_info(:schedulers_online)
    before = JobProbe.counters(path).step
    running = for _ <- 1..workers, do: start(:held, 1)
    wait_until(fn -> JobProbe.counters(path).step == before + workers end)
    running
  end

  # Results are numbered: those of the held ones come before.
  defp release(running, path) do
    JobProbe.release(path)
    for caller <- running, do: await(caller)
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

    before = JobProbe.counters(path).init
    running = for _ <- 1..2, do: start(:gated_pool, @endless_us)
    catch_timeout(fn -> wait_until(fn -> JobProbe.counters(path).init == before + 2 end, 5000) end)
    admitted = JobProbe.counters(path).init - before
    Enum.each(running, &stop/1)
    {admitted, for({_, [{module, function, args, _} | _]} <- kept, do: {module, function, args})}
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

  @doc "Reductions of an inline call of that length while the emulator is stopped for a second by somebody else."
  def stopped(us) do
    os_pid = :os.getpid()

    spawn(fn ->
      :os.cmd(
        ~c"(sleep 0.1; kill -STOP #{os_pid}; sleep 1; kill -CONT #{os_pid}) > /dev/null 2>&1 &"
      )
    end)

    Process.sleep(30)
    {:reductions, before} = Process.info(self(), :reductions)
    {passed, _} = :timer.tc(fn -> JobProbe.inline(us) end)
    {:reductions, later} = Process.info(self(), :reductions)
    {later - before, passed}
  end

  defp function(placement, :wrapped), do: placement
  defp function(placement, :bare), do: :"#{placement}_nif"

  # The bytes end with an s. Large enough not to be copied into the process.
  defp start(function, us, bytes \\ String.duplicate("s", 1000)) do
    if String.ends_with?(to_string(function), "_nif") do
      # No frame of any module below the NIF.
      :erlang.spawn_monitor(JobProbe, function, [us, bytes])
    else
      spawn_monitor(fn -> exit({:value, apply(JobProbe, function, [us, bytes])}) end)
    end
  end

  defp stop({pid, _} = caller) do
    Process.exit(pid, :kill)
    await(caller)
  end

  defp await({pid, monitor}) do
    receive do
      {:DOWN, ^monitor, :process, ^pid, {:value, value}} -> {:value, value}
      {:DOWN, ^monitor, :process, ^pid, {reason, stack}} when is_list(stack) -> {:error, reason}
      {:DOWN, ^monitor, :process, ^pid, reason} -> reason
    after
      20_000 -> {:still_there, Process.info(pid)}
    end
  end

  defp waits?({pid, _}) do
    # For its turn, or until the steps are done.
    match?(
      [current_function: {:tame_job_call, :hand_over, _}, status: :waiting],
      Process.info(pid, [:current_function, :status])
    )
  end

  defp ended?(path) do
    counters = JobProbe.counters(path)
    counters.init == counters.cleanup
  end

  # What is loaded beside busy processes takes seconds.
  defp neighbours(count, busy) do
    :ok =
      :code.ensure_modules_loaded([
        Tame.Await,
        File,
        Map,
        Enum,
        String,
        String.Chars,
        String.Chars.Atom
      ])

    for _ <- 1..count, do: spawn(busy)
  end

  defp busy, do: busy()

  defp spin do
    :tame_spin.spin_inline(1000)
    spin()
  end

  defp thread_count, do: length(File.ls!("/proc/self/task"))
  defp now_ms, do: System.monotonic_time(:millisecond)

  defp spin_until(at_us) do
    if System.monotonic_time(:microsecond) < at_us, do: spin_until(at_us)
  end

  defp wait_until(condition, ms \\ 20_000) do
    if not Tame.Await.until(condition, ms), do: throw(:timeout), else: :ok
  end

  defp catch_error(fun) do
    fun.()
  catch
    :error, reason -> reason
  end

  defp catch_timeout(fun) do
    fun.()
  catch
    :timeout -> :timeout
  end
end
