defmodule Tame.JobModelSequences do
  @moduledoc """
  Random sequences of calls, ends, deaths, cancels and deadlines against `Tame.JobModel.Rules`, in a throw-away emulator. After
  each command all is quiet before the next, so the rules say of each call whether it waits, runs or has ended, and how.
  """

  alias Tame.{Await, JobModel}
  alias Tame.JobModel.Rules

  # Inline jobs do not wait to be released. What is held must leave workers of the pool (two at least where there are two
  # cores) to those that go on: so of pool and auto one at most, and these only with a gate.
  @held ~w(auto yielding dirty_cpu dirty_io yielding_dirty thread pool)a
  @free ~w(yielding dirty_io yielding_dirty thread)a
  @deadline_ms 15
  @quiet_ms 10_000

  @doc "The placements of a sequence: two of them."
  def placements do
    for one <- @held,
        two <- @held,
        not (one in [:auto, :pool] and two in [:auto, :pool]),
        do: {one, two}
  end

  @doc "Runs a sequence `{{placement, placement}, commands}`. `true`, or what differed and after which command."
  def run({placements, commands}) do
    things = %{one: JobModel.new_thing(), two: JobModel.new_thing(), none: :none}
    processes = length(Process.list())

    start = %{
      rules: %Rules{},
      placements: placements,
      things: things,
      callers: %{},
      workers: %{},
      ended: %{},
      parts: %{},
      before: JobModel.totals()
    }

    # At the end all is free again: the most that may run at once does.
    fresh =
      for job <- [:gated, :parts],
          which <- [0, 1],
          _ <- 1..JobModel.max_running(),
          do: call(job, which, :none)

    result =
      with {:ok, state} <- commands(start, commands ++ [:end_all]),
           {:ok, state} <- commands(state, own_gates(placements, fresh)),
           {:ok, state} <- commands(state, for(thing <- [:one, :two], do: call(:free, 0, thing))),
           {:ok, state} <- commands(state, [:end_all]),
           [] <- left_over(state),
           do: true

    with %{} = state <- last(result), do: end_callers(state)
    if result == true, do: settled(processes), else: without_state(result)
  end

  defp call(job, which, thing), do: {:call, job, which, thing, :plain, :held}

  defp own_gates({same, same}, fresh), do: Enum.filter(fresh, &(elem(&1, 2) == 0))
  defp own_gates(_, fresh), do: fresh

  defp last({:differs, state, _}), do: state
  defp last(_), do: true

  defp without_state({:differs, _, text}), do: text
  defp without_state(other), do: other

  defp settled(processes) do
    Await.until(fn -> length(Process.list()) <= processes end, @quiet_ms) or :processes_left
  end

  defp commands(state, commands) do
    Enum.reduce_while(commands, {:ok, state}, fn command, {:ok, state} ->
      case quiet(command(command, state)) do
        {:ok, state} -> {:cont, {:ok, state}}
        {:differs, state, seen} -> {:halt, {:differs, state, {:after, command, seen}}}
      end
    end)
  end

  # ---- commands: what they do, and what the rules say of it -----------------------------------------

  defp command({:call, job, which, thing, mode, work}, state) do
    placement = elem(state.placements, which)
    # No gate: not everywhere; see above.
    job = if job == :free and placement not in @free, do: :gated, else: job
    {mode, work} = if job == :parts, do: {:stream, 2}, else: {mode, work}
    # An init that refuses while others wait for its context may be too early for them, or too late.
    thing = if work == :refuse, do: :none, else: thing
    ticket = :erlang.unique_integer([:positive, :monotonic])
    gate = if job == :free, do: nil, else: {job, placement}

    rules = Rules.arrive(state.rules, ticket, %{gate: gate, thing: thing, work: work, mode: mode})
    rules = if mode == :deadline, do: strike(rules, ticket), else: rules
    :ok = JobModel.new_ticket(rem(ticket, 65_536))
    bytes = :binary.copy(<<1>>, rem(ticket, 100))
    args = [job, placement, ticket, state.things[thing], work, bytes]
    driver = self()
    caller = spawn(fn -> caller(mode, driver, ticket, args) end)
    worker = receive(do: ({:worker, ^ticket, pid} -> pid))
    workers = Map.put(state.workers, ticket, worker)
    %{state | rules: rules, callers: Map.put(state.callers, ticket, caller), workers: workers}
  end

  defp command({:release, n}, state) do
    on(state, n, &running?/2, fn ticket, call ->
      :ok = JobModel.release(rem(ticket, 65_536))
      Rules.leave(state.rules, ticket, value(ticket, call))
    end)
  end

  defp command({:kill, n}, state) do
    on(state, n, &lives?/2, fn ticket, _ ->
      Process.exit(state.callers[ticket], :kill)
      Rules.leave(state.rules, ticket, :killed)
    end)
  end

  defp command({:cancel, n}, state) do
    on(state, n, &(lives?(&1, &2) and &2.mode == :async), fn ticket, _ ->
      send(state.callers[ticket], :cancel)
      Rules.leave(state.rules, ticket, :cancelled)
    end)
  end

  defp command({:pull, n}, state) do
    on(state, n, &stream?/2, fn ticket, _ ->
      send(state.callers[ticket], :pull)
      Rules.pull(state.rules, ticket)
    end)
  end

  defp command({:drop, n, how}, state) do
    on(state, n, &stream?/2, fn ticket, _ ->
      send(state.callers[ticket], how)
      Rules.leave(state.rules, ticket, how)
    end)
  end

  defp command(:end_all, state) do
    case Rules.tickets(state.rules, &lives?/2) do
      [] ->
        state

      _ ->
        # One by one: each that runs ends, and others begin.
        [ticket | _] = Rules.tickets(state.rules, fn status, _ -> match?({:runs, _}, status) end)
        command = if is_integer(state.rules.calls[ticket].work), do: :halt, else: :release
        state = end_one(command, ticket, state)
        {:ok, state} = ok(quiet(state))
        command(:end_all, state)
    end
  catch
    {:differs, state} -> state
  end

  defp ok({:ok, state}), do: {:ok, state}
  defp ok({:differs, state, _}), do: throw({:differs, state})

  defp end_one(:halt, ticket, state) do
    send(state.callers[ticket], :halt)
    %{state | rules: Rules.leave(state.rules, ticket, :halt)}
  end

  defp end_one(:release, ticket, state) do
    :ok = JobModel.release(rem(ticket, 65_536))
    call = state.rules.calls[ticket]
    %{state | rules: Rules.leave(state.rules, ticket, value(ticket, call))}
  end

  defp on(state, n, which, act) do
    case Rules.tickets(state.rules, which) do
      [] ->
        state

      tickets ->
        ticket = Enum.at(tickets, rem(n, length(tickets)))
        %{state | rules: act.(ticket, state.rules.calls[ticket])}
    end
  end

  defp lives?({:ended, _}, _), do: false
  defp lives?(_, _), do: true
  defp running?({:runs, _}, %{work: work}), do: not is_integer(work)
  defp running?(_, _), do: false
  defp stream?({:runs, _}, %{work: work}), do: is_integer(work)
  defp stream?(_, _), do: false

  defp value(ticket, %{work: :fail}), do: {:error, {:failed, rem(ticket, 65_536)}}
  defp value(ticket, _), do: {:value, {rem(ticket, 65_536), rem(ticket, 100)}}

  # Whatever it waits for, or does: it ends at its deadline.
  defp strike(rules, ticket) do
    case rules.calls[ticket].status do
      {:ended, _} -> rules
      _ -> Rules.leave(rules, ticket, {:error, {:tame, :deadline}})
    end
  end

  # ---- what is seen -----------------------------------------------------------------------------------

  defp quiet(state) do
    key = {__MODULE__, :state}
    Process.put(key, state)

    same? = fn ->
      state = take_messages(Process.get(key))
      Process.put(key, state)
      seen(state) == expected(state)
    end

    if Await.until(same?, @quiet_ms) do
      {:ok, Process.get(key)}
    else
      state = Process.get(key)
      {:differs, state, for({t, e} <- expected(state), s = seen(state, t), s != e, do: {t, e, s})}
    end
  end

  defp expected(state),
    do: Map.new(state.rules.calls, fn {ticket, call} -> {ticket, call.status} end)

  defp seen(state),
    do: Map.new(state.rules.calls, fn {ticket, _} -> {ticket, seen(state, ticket)} end)

  defp seen(state, ticket) do
    # It was told to die, and may be in the middle of anything.
    dies? = killed?(state, ticket) and Process.alive?(state.workers[ticket])
    {inits, cleanups, runs} = JobModel.seen(rem(ticket, 65_536))

    cond do
      dies? -> :dies
      runs > 1 -> :runs_twice
      runs == 1 -> {:runs, Map.get(state.parts, ticket, 0)}
      inits != cleanups -> :ends
      is_map_key(state.ended, ticket) -> {:ended, state.ended[ticket]}
      not Process.alive?(state.callers[ticket]) -> {:ended, :killed}
      not waits?(state.workers[ticket]) -> :moves
      inits == 0 -> :gate
      true -> :thing
    end
  end

  defp killed?(state, ticket),
    do: state.rules.calls[ticket].status in [{:ended, :killed}, {:ended, :cancelled}]

  defp waits?(pid) do
    case Process.info(pid, [:status, :current_function]) do
      [status: :waiting, current_function: {:tame_job_call, :hand_over, _}] -> true
      _ -> false
    end
  end

  defp take_messages(state) do
    receive do
      {:part, ticket, part} ->
        number = Map.get(state.parts, ticket, 0) + 1
        {_, ^number, sum} = part
        ^sum = rem(ticket, 100)
        take_messages(put_in(state.parts[ticket], number))

      {:ended, ticket, how} ->
        false = is_map_key(state.ended, ticket)
        take_messages(put_in(state.ended[ticket], how))
    after
      0 -> state
    end
  end

  @doc """
  Collects all processes, and wakes all schedulers. What is garbage in a process that sleeps lives until that wakes: the
  emulator's own that handles signals of those on dirty schedulers had a job of one that was killed there. And the emulator
  destroys a resource as work of the scheduler that let go of it; one that has gone to sleep with such work, which is seen
  once in some thousand storms, does it when it is woken for something else.
  """
  def collect do
    for pid <- Process.list(), do: :erlang.garbage_collect(pid)

    for scheduler <- 1..:erlang.system_info(:schedulers) do
      {_, monitor} = :erlang.spawn_opt(fn -> :ok end, [:monitor, {:scheduler, scheduler}])
      receive(do: ({:DOWN, ^monitor, :process, _, _} -> :ok))
    end
  end

  # What should not be there when all calls have ended.
  defp left_over(state) do
    counts = fn ->
      collect()
      {inits, cleanups, over, shared} = JobModel.totals()
      {_, _, over0, shared0} = state.before
      {inits - cleanups, over - over0, shared - shared0}
    end

    # A dirty scheduler may still begin what a process wanted that has died meanwhile; and so it may have done when this
    # began, which is why what lives is counted, and not what has come since.
    even? = Await.until(fn -> counts.() == {0, 0, 0} end, @quiet_ms)
    messages = for {_, pid} <- state.callers, Process.alive?(pid), m <- messages(pid), do: m
    end_callers(state)
    if even?, do: messages, else: [{:counts, counts.()} | messages]
  end

  defp messages(pid) do
    {:messages, messages} = Process.info(pid, :messages)
    messages
  end

  defp end_callers(state), do: for({_, pid} <- state.callers, do: Process.exit(pid, :kill))

  # ---- a caller: it ends with what its call came to, and lives on until it is killed ------------------

  defp caller(:stream, driver, ticket, [job, placement, ticket, thing, parts, bytes]) do
    send(driver, {:worker, ticket, self()})
    stream = JobModel.call(job, placement, ticket, thing, parts, bytes)
    one_more = &Enumerable.reduce(stream, &1, fn part, _ -> {:suspend, part} end)
    how = outcome(fn -> walk(one_more, driver, ticket) end)
    end_with(driver, ticket, how)
  end

  defp caller(:async, driver, ticket, args) do
    work = fn ->
      send(driver, {:worker, ticket, self()})
      apply(JobModel, :call, args)
    end

    {:ok, ref} = :tame.async(work, [])

    how =
      receive do
        {^ref, {:ok, value}} -> {:value, value}
        {^ref, {:error, reason}} -> {:error, reason}
        :cancel -> :tame.cancel(ref) && :cancelled
      end

    end_with(driver, ticket, how)
  end

  defp caller(mode, driver, ticket, args) do
    send(driver, {:worker, ticket, self()})
    call = fn -> apply(JobModel, :call, args) end
    call = if mode == :deadline, do: fn -> Tame.deadline(@deadline_ms, call) end, else: call
    end_with(driver, ticket, outcome(fn -> {:value, call.()} end))
  end

  defp end_with(driver, ticket, how) do
    send(driver, {:ended, ticket, how})
    receive(do: (:never -> :ok))
  end

  defp walk(next, driver, ticket) do
    case next.({:cont, nil}) do
      {:suspended, part, next} ->
        send(driver, {:part, ticket, part})

        receive do
          :pull -> walk(next, driver, ticket)
          :halt -> next.({:halt, nil}) && :halt
          :drop -> dropped()
        end

      # Of a stream that ends by itself, too.
      {:halted, _} ->
        :done
    end
  end

  # Nobody has the stream any more.
  defp dropped do
    :erlang.garbage_collect()
    :drop
  end

  defp outcome(fun) do
    fun.()
  catch
    :error, reason -> {:error, reason}
  end
end
