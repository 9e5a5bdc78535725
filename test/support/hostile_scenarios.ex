defmodule Tame.HostileScenarios do
  @moduledoc "A VM whose library tame_echo has a host gone bad, while it goes on with its work."

  alias Tame.Await
  alias Tame.Test.{HostileAttacks, HostileHost}

  # How long an attack goes on that has no end, and how long one may take whose parts are counted.
  @enough_ms 1000
  @most_ms 100_000
  # The longest that an answer of tame's may take before it counts as none.
  @stuck_ms 30_000

  @doc """
  Plays the attack with this program in the folder. Returns what was seen: the slowest answer of tame:info/0 and of
  another isolated library in ms, wrong answers of it, growth of atoms and of memory at its most, what restore came to,
  messages that a process got which is none of the library's.
  """
  def attack(name, program, folder) do
    quiet()
    {:ok, _} = Application.ensure_all_started(:tame)
    :ok = :tame.isolate(:tame_exor, %{intensity: :infinity})
    {witness, busy, decoy} = {witness(), busy_port(), decoy()}

    context = %{
      protocol: HostileHost.protocol(),
      vm: String.to_integer(System.pid()),
      decoy: os_pid(decoy),
      witness: witness,
      busy: busy
    }

    {steps, starts} = HostileAttacks.script(name, context)
    path = HostileHost.install!(program, folder, name, steps)
    :erlang.garbage_collect()
    before = %{atoms: :erlang.system_info(:atom_count), memory: :erlang.memory(:total)}
    # Answers that come to nobody go to a process that ends.
    victim = spawn(fn -> bother(path) end)
    deadline = now_ms() + if(starts > 1, do: @most_ms, else: @enough_ms)
    seen = watch(path, starts, deadline, %{info_ms: 0, other_ms: 0, wrong: [], memory: 0})
    Process.exit(victim, :kill)

    restored = restored(now_ms() + @stuck_ms)
    other = bounded(fn -> exor() end)

    seen =
      Map.merge(seen, %{
        restored: restored,
        other: other,
        decoy: Port.info(decoy) != nil,
        atoms: :erlang.system_info(:atom_count) - before.atoms,
        memory: max(0, seen.memory - before.memory),
        witness: told(witness),
        starts: HostileHost.starts(path),
        wanted: starts,
        logged: :counters.get(:persistent_term.get(__MODULE__), 1)
      })

    # A VM does not end while a program has not read what was written to its port.
    {_, 0} = System.cmd("kill", ["-9", to_string(os_pid(busy))])
    seen
  end

  # Those that call may take longer than restore waits for them where cores are scarce.
  defp restored(deadline) do
    case bounded(fn -> :tame.restore(:tame_echo) end) do
      {:error, {:in_use, _}} = error -> if now_ms() < deadline, do: restored(deadline), else: error
      other -> other
    end
  end

  @doc """
  A process that calls the library once and then reads nothing, which the host floods: whether another host was started for it,
  how many messages wait then, and what was reported.
  """
  def flood(program, folder) do
    {:ok, _} = Application.ensure_all_started(:tame)
    caller = spawn(&flooded/0)
    path = isolate_reported(program, folder, HostileAttacks.flood(caller))
    report = report_of("nobody reads what it sends")
    starts = HostileHost.starts(path)
    again = Await.until(fn -> HostileHost.starts(path) > starts + 3 end, 20_000)
    {:message_queue_len, waiting} = Process.info(caller, :message_queue_len)
    %{again: again, waiting: waiting, report: report}
  end

  @doc "A host that asks for leases without end: what was reported, and whether another was started for it."
  def leases(program, folder) do
    path = isolate_reported(program, folder, HostileAttacks.leases(), %{answer_ms: :infinity})
    report = report_of("a query for leases")
    %{report: report, again: Await.until(fn -> HostileHost.starts(path) > 1 end, 20_000)}
  end

  # The echo library with a host that plays these steps; reports come to this process.
  defp isolate_reported(program, folder, steps, more \\ %{}) do
    :ok = :logger.add_handler(:reports, Tame.ApplicationScenarios, %{})
    :ok = :logger.remove_handler(:default)
    Process.register(self(), :report_test)
    {:ok, _} = Application.ensure_all_started(:tame)
    path = HostileHost.install!(program, folder, :reported, HostileHost.one_of([steps]))
    options = %{host: path, intensity: :infinity, backoff_ms: {10, 10}}
    options = options |> Map.merge(HostileHost.options()) |> Map.merge(more)
    :ok = :tame.isolate(:tame_echo, options)
    path
  end

  # The first that has these words; a host may end for another reason before.
  defp report_of(words) do
    receive do
      {:report, text} -> if text =~ words, do: text, else: report_of(words)
    after
      500_000 -> "none"
    end
  end

  # The library gets this process with the call.
  defp flooded do
    _ = any_end()
    if :ets.member(:tame_given, {:tame_echo, self()}), do: Process.sleep(:infinity)
    Process.sleep(10)
    flooded()
  end

  # Isolates whenever it is not, and calls, for as long as it lives. No call of it may hang for ever, but
  # may end in any way.
  defp bother(path) do
    options = %{
      host: path,
      start_ms: 600,
      wait_ms: 600,
      deadline_ms: 600,
      grace_ms: 200,
      answer_ms: 300,
      intensity: :infinity,
      backoff_ms: {0, 0}
    }

    _ = :tame.isolate(:tame_echo, Map.merge(HostileHost.options(), options))
    for _ <- 1..20, do: spawn(&any_end/0)
    Process.sleep(10)
    bother(path)
  catch
    _, _ ->
      # Without it, one that refuses at once takes all of the machine.
      Process.sleep(5)
      bother(path)
  end

  # What these callers get is not logged, so that what is logged is tame's.
  defp any_end do
    :tame_echo.echo_inline([:any, "term"])
  catch
    _, _ -> :ok
  end

  defp watch(path, starts, deadline, seen) do
    {info, info_ms} = timed(fn -> bounded(fn -> map_size(:tame.info()) end) end)
    {other, other_ms} = timed(fn -> bounded(fn -> exor() end) end)

    seen = %{
      info_ms: max(seen.info_ms, info_ms),
      other_ms: max(seen.other_ms, other_ms),
      wrong:
        if(other == :right and is_integer(info), do: seen.wrong, else: [{info, other} | seen.wrong]),
      memory: max(seen.memory, :erlang.memory(:total))
    }

    # The last start is given its time as well.
    over? = now_ms() > deadline or (starts > 1 and HostileHost.starts(path) > starts)

    if over? or length(seen.wrong) > 2 do
      seen
    else
      Process.sleep(20)
      watch(path, starts, deadline, seen)
    end
  end

  defp exor do
    a = :rand.bytes(100)
    if :tame_exor.exor_inline(a, a) == :binary.copy(<<0>>, 100), do: :right, else: :wrong
  catch
    kind, reason -> {kind, reason}
  end

  # What it comes to; :stuck after a while.
  defp bounded(fun) do
    {pid, monitor} = spawn_monitor(fn -> exit({:value, fun.()}) end)

    receive do
      {:DOWN, ^monitor, _, _, {:value, value}} -> value
      {:DOWN, ^monitor, _, _, reason} -> {:ended, reason}
    after
      @stuck_ms ->
        Process.exit(pid, :kill)
        :stuck
    end
  end

  defp timed(fun) do
    {us, value} = :timer.tc(fun)
    {value, div(us, 1000)}
  end

  defp now_ms, do: System.monotonic_time(:millisecond)

  # Counts what is logged instead of writing it to the terminal of the tests.
  defp quiet do
    :persistent_term.put(__MODULE__, :counters.new(1, []))
    for id <- :logger.get_handler_ids(), do: :logger.remove_handler(id)
    :ok = :logger.add_handler(__MODULE__, __MODULE__, %{})
  end

  @doc false
  def log(_event, _config), do: :counters.add(:persistent_term.get(__MODULE__), 1, 1)

  # A process that nobody has any business with.
  defp witness, do: spawn(fn -> witness([]) end)

  defp witness(messages) do
    receive do
      {:told, to} -> send(to, {self(), Enum.reverse(messages)})
      message -> witness(Enum.take([message | messages], 3))
    end
  end

  defp told(witness) do
    send(witness, {:told, self()})

    receive do
      {^witness, messages} -> messages
    after
      5000 -> :witness_is_dead
    end
  end

  # Its program reads nothing, so that more is refused, or makes who writes it wait.
  defp busy_port do
    port = idle_program()
    full = fn -> Port.command(port, :binary.copy("x", 65_536), [:nosuspend]) == false end
    true = Await.until(full)
    port
  end

  defp decoy, do: idle_program()

  # Reads nothing, so it does not see its port close: it ends when this VM has.
  defp idle_program do
    args = ["--follow", "--pid=#{System.pid()}", "/dev/null"]
    Port.open({:spawn_executable, System.find_executable("tail")}, [:binary, args: args])
  end

  defp os_pid(port) do
    {:os_pid, os_pid} = Port.info(port, :os_pid)
    os_pid
  end
end
