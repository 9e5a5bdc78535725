defmodule Tame.ProcessScenarios do
  @moduledoc """
  What a test does to the processes of isolation, in a throw-away emulator: each function ends, stops or starves
  some of them, and returns what was seen. Others build on how it starts and looks: `Tame.ProcessWalk`,
  `Tame.HostsScenarios`, `Tame.ApplicationScenarios`.
  """

  alias Tame.Test.{OsProcess, Places}

  @kinds [:hosts, :host, :host_sup, :library, :libraries, :isolation, :isolation_sup]

  def kinds, do: @kinds

  @doc "Starts tame and isolates places_nif.c under the name, with these options."
  def start(module \\ :places, options \\ %{}) do
    # What is tested is not how much is logged.
    :logger.set_primary_config(:level, :none)
    {:ok, _} = Application.ensure_all_started(:tame)
    Places.build!(module)
    :ok = :tame.isolate(module, options)
    module
  end

  @doc "The process of this kind, of the library `module`; of several hosts the first."
  def process(kind, module) do
    case kind do
      :hosts -> Process.whereis(:"tame_hosts_#{module}")
      :host_sup -> Process.whereis(:"tame_host_sup_#{module}")
      :library -> Process.whereis(:"tame_library_#{module}")
      :libraries -> Process.whereis(:tame_libraries)
      :isolation -> Process.whereis(:tame_isolation)
      :isolation_sup -> Process.whereis(:tame_isolation_sup)
      :host -> List.first(hosts(module))
    end
  end

  def hosts(module) do
    for {_, pid, _, _} <- Supervisor.which_children(:"tame_host_sup_#{module}"),
        is_pid(pid),
        do: pid
  end

  @doc """
  Kills a process of each kind in turn. For each: whether the module was isolated throughout (as far as calls made
  all the time can tell), answered at the end, and whether the registry still knows it.
  """
  def killed_in_turn(kinds, options) do
    module = start(:places, options)

    for kind <- kinds do
      true = Tame.Await.until(fn -> is_pid(process(kind, module)) end)
      Process.exit(process(kind, module), :kill)
      {kind, well?(module)}
    end
  end

  @doc """
  The name of such a process is another's for `ms` when its supervisor replaces it, as it is where the one before dies
  late: the machine may let a thread stand in which a process is about to end. How the module is after it.
  """
  def name_taken(kind, ms) do
    module = start()
    before = process(kind, module)
    {:registered_name, name} = Process.info(before, :registered_name)
    supervisor = process(%{isolation: :isolation_sup, hosts: :library}[kind], module)
    :ok = :sys.suspend(supervisor)
    Process.exit(before, :kill)
    true = Tame.Await.until(fn -> process(kind, module) == nil end)
    orphan = spawn(fn -> Process.sleep(ms) end)
    Process.register(orphan, name)
    :ok = :sys.resume(supervisor)
    true = Tame.Await.until(fn -> process(kind, module) not in [nil, orphan] end, 20_000)
    well?(module)
  end

  @doc "Whether a module answers from a host within some seconds, is in the registry, and is not loaded in this VM."
  def well?(module) do
    answers? =
      Tame.Await.until(fn -> match?({:ok, _}, outcome(fn -> in_host(module) end)) end, 20_000)

    %{answers: answers?, known: is_map_key(:tame.info(), module), in_vm: in_vm?(module)}
  end

  defp in_host(module) do
    os_pid = module.pause_ms(0)
    true = Integer.to_string(os_pid) != System.pid()
    os_pid
  end

  def in_vm?(module), do: module in :erlang.system_info(:taints)

  def outcome(fun) do
    {:ok, fun.()}
  catch
    kind, reason -> {kind, reason}
  end

  @doc "A caller in a long call while its host's process is killed: what it gets, and the next call."
  def host_killed_under_a_call do
    module = start()
    call = Task.async(fn -> outcome(fn -> module.pause_ms(60_000) end) end)
    true = Tame.Await.until(fn -> in_use(module) == 1 end)
    Process.exit(process(:host, module), :kill)
    {Task.await(call, 600_000), well?(module)}
  end

  @doc """
  The process of a host is killed while its port has output that the host, which is stopped, does not read. Whether
  the OS process ends, and another answers.
  """
  def host_killed_with_output do
    module = start()
    before = module.pause_ms(0)
    host = process(:host, module)
    {:monitors, monitors} = Process.info(host, :monitors)
    [port] = for {:port, port} <- monitors, do: port
    OsProcess.stop(before)
    # More than a pipe takes.
    true = Port.command(port, :binary.copy(<<0>>, 1_048_576), [:nosuspend])
    Process.exit(host, :kill)
    {Tame.Await.until(fn -> OsProcess.gone?(before) end, 20_000), well?(module)}
  end

  @doc "How a library's exit with each of these statuses is told, and after how many ms; where a daemon of it stays for `daemon_ms`."
  def exits(statuses, daemon_ms) do
    module = start(:places, %{backoff_ms: {0, 0}})

    for status <- statuses do
      began = System.monotonic_time(:millisecond)
      {:error, {:tame, {:crashed, info}}} = outcome(fn -> module.leave(status, daemon_ms) end)

      {Map.drop(info, [:library, :function]), System.monotonic_time(:millisecond) - began,
       well?(module)}
    end
  end

  @doc "A library stops its guard, and its host is killed: whether both end, and another answers."
  def guard_stopped(how) do
    module = start()
    before = module.pause_ms(0)
    guard = OsProcess.parent(before)
    OsProcess.stop(guard)

    case how do
      :crash -> OsProcess.signal(before, "SEGV")
      :restore -> :ok = :tame.restore(module)
    end

    gone = Tame.Await.until(fn -> Enum.all?([before, guard], &OsProcess.gone?/1) end, 20_000)
    {gone, how == :restore or well?(module) == %{answers: true, known: true, in_vm: false}}
  end

  @doc "For a VM that is about to be killed: a host whose guard is stopped."
  def with_guard_stopped do
    host = start().pause_ms(0)
    guard = OsProcess.parent(host)
    OsProcess.stop(guard)
    {System.pid(), host, guard}
  end

  def in_use(module) do
    for(%{ring: %{slots_in_use: n}} <- :tame.info()[module].hosts, do: n) |> Enum.sum()
  end

  @doc "restore/1 while a call is in the host and another process has the module on its stack."
  def restored_under_calls(ms) do
    module = start()

    callers =
      for fun <- [:pause_ms, :paused],
          do: Task.async(fn -> outcome(fn -> apply(module, fun, [ms]) end) end)

    true = Tame.Await.until(fn -> in_use(module) == 2 end)
    restored = :tame.restore(module)
    vm = String.to_integer(System.pid())
    results = Enum.map(callers, &Task.await(&1, 600_000))
    {restored, results, vm, module.pause_ms(0), :tame.info()}
  end

  @doc "isolate/2 while a process is in the module's native code in this VM, and another stays in its Erlang code."
  def isolated_under_calls(ms) do
    {:ok, _} = Application.ensure_all_started(:tame)
    module = :places
    Places.build!(module)
    parent = self()
    inside = Task.async(fn -> outcome(fn -> module.paused(ms) end) end)
    true = Tame.Await.until(fn -> in_its_code?(inside.pid, module) end)
    staying = spawn_link(fn -> send(parent, {:left, module.stay(fn -> :left end)}) end)
    true = Tame.Await.until(fn -> in_its_code?(staying, module) end)
    isolated = :tame.isolate(module)
    host = module.pause_ms(0)
    # It may not be replaced once more while that process is in the code of before.
    again = {:tame.restore(module), outcome(fn -> module.pause_ms(0) end)}
    result = Task.await(inside, 600_000)
    alive? = Process.alive?(staying)
    send(staying, :go)
    left = receive do: ({:left, value} -> value)
    true = Tame.Await.until(fn -> :tame.restore(module) == :ok end)
    {isolated, host, again, result, alive?, left, staying}
  end

  defp in_its_code?(pid, module),
    do: match?({:current_function, {^module, _, _}}, Process.info(pid, :current_function))

  @doc "The host's program is away when its host is killed, and comes back."
  def program_away(ms) do
    program = program_of_its_own()

    module =
      start(:places, %{host: program, wait_ms: 200, backoff_ms: {0, 0}, intensity: :infinity})

    File.rename!(program, program <> ".away")
    kill_hosts(module)
    Process.sleep(ms)
    away = outcome(fn -> module.pause_ms(0) end)
    File.rename!(program <> ".away", program)
    well = well?(module)
    File.rm!(program)
    {away, well, length(File.ls!("/proc/self/fd"))}
  end

  @doc """
  The host's program is away when its host is killed, in a VM with code that was stripped, as that of a release: the first
  two reports, whether the host's process is still the same then, and whether all is well when the program is back.
  """
  def program_away_stripped do
    program = program_of_its_own()
    options = %{host: program, backoff_ms: {1, 50}, intensity: :infinity}
    module = start(:places, options)
    {:ok, {_, stripped}} = :beam_lib.strip(File.read!(:code.which(:tame_native)))
    # Not beside the sources, which would be found there.
    {:module, _} = :code.load_binary(:tame_native, ~c"/tame/ebin/tame_native.beam", stripped)
    process = process(:host, module)
    parent = self()
    :ok = :logger.set_primary_config(:level, :error)
    :ok = :logger.add_handler(:away, __MODULE__.Handler, %{config: &send(parent, {:log, &1})})
    :ok = :logger.remove_handler(:default)
    File.rename!(program, program <> ".away")
    kill_hosts(module)
    texts = for _ <- 1..2, do: receive(do: ({:log, text} -> text), after: (20_000 -> :none))
    same = process == process(:host, module)
    File.rename!(program <> ".away", program)
    well = well?(module)
    File.rm!(program)
    {program, texts, same, well}
  end

  defmodule Handler do
    @moduledoc "Hands the text of each report to the function that is its configuration."
    def log(%{msg: {:report, report}, meta: %{report_cb: format}}, %{config: function})
        when is_function(format, 1) do
      {text, args} = format.(report)
      function.(to_string(:io_lib.format(text, args)))
    end

    def log(_event, _config), do: :ok
  end

  # A copy of tame_host, which a scenario may take away.
  def program_of_its_own do
    program =
      Path.join(
        System.tmp_dir!(),
        "tame_host_#{System.pid()}_#{System.unique_integer([:positive])}"
      )

    File.cp!(to_string(:tame_native.path(~c"tame_host")), program)
    program
  end

  def kill_hosts(module, signal \\ "KILL") do
    for %{os_pid: os_pid} when os_pid > 0 <- :tame.info()[module].hosts,
        do: OsProcess.signal(os_pid, signal)
  end

  @doc "A host that is stopped while nobody calls: how long until another answers, and whether the first is gone."
  def stopped_while_idle(answer_ms) do
    module = start(:places, %{answer_ms: answer_ms, deadline_ms: 200, grace_ms: 100_000})
    before = module.pause_ms(0)
    OsProcess.stop(before)

    replaced? =
      Tame.Await.until(
        fn -> match?({:ok, pid} when pid != before, outcome(fn -> module.pause_ms(0) end)) end,
        20_000
      )

    {replaced?, Tame.Await.until(fn -> OsProcess.gone?(before) end), in_use(module)}
  end

  @doc """
  Information while the processes of four modules say nothing, of two their tame_hosts and of two their hosts: its milliseconds,
  and the states that it says, of modules and hosts.
  """
  def info_of_silent do
    modules = [:places, :places_app, :places_later, :places_turns]
    for module <- modules, do: start(module)

    silent =
      Enum.zip_with([[:hosts, :hosts, :host, :host], modules], fn [kind, module] ->
        process(kind, module)
      end)

    for pid <- silent, do: :ok = :sys.suspend(pid)
    {us, info} = :timer.tc(fn -> :tame.info() end)
    for pid <- silent, do: :ok = :sys.resume(pid)

    states =
      for module <- modules, do: {info[module].state, Enum.map(info[module].hosts, & &1.state)}

    {div(us, 1000), states, map_size(:tame.info())}
  end

  @doc "restart/1 of a host that is stopped, and of a library that is not loaded yet."
  def restarted do
    module = start()
    before = module.pause_ms(0)
    OsProcess.stop(before)
    restarted = :tame.restart(module)
    later = module.pause_ms(0)
    true = Tame.Await.until(fn -> OsProcess.gone?(before) end, 20_000)

    Places.build!(:places_later, loads: :later)
    :ok = :tame.isolate(:places_later)
    early = :tame.restart(:places_later)
    :ok = :places_later.start()

    {restarted, later != before, early,
     :places_later.pause_ms(0) != String.to_integer(System.pid())}
  end

  @doc """
  restart/1 when the supervisor of the hosts has just died, which nobody has noticed yet and which its own supervisor
  does not replace for a while: the answer, and how it is when that goes on. The process that is asked has taken the
  place of another, so nothing that the load has left behind helps it.
  """
  def restarted_without_supervisor do
    [{:hosts, %{answers: true}}] = killed_in_turn([:hosts], %{})
    module = :places
    true = Tame.Await.until(fn -> :tame.info()[module].state == :serving end)
    for kind <- [:library, :hosts], do: :ok = :sys.suspend(process(kind, module))
    restart = Task.async(fn -> :tame.restart(module) end)
    true = Tame.Await.until(fn -> asked?(process(:hosts, module), :restart) end)
    [supervisor, host] = for kind <- [:host_sup, :host], do: process(kind, module)
    Process.exit(supervisor, :kill)
    true = Tame.Await.until(fn -> not (Process.alive?(supervisor) or Process.alive?(host)) end)
    :ok = :sys.resume(process(:hosts, module))
    restarted = Task.await(restart)
    :ok = :sys.resume(process(:library, module))
    {restarted, well?(module)}
  end

  defp asked?(process, what) do
    {:messages, messages} = Process.info(process, :messages)
    Enum.any?(messages, &match?({:"$gen_call", _from, ^what}, &1))
  end

  @doc "Two hosts, of which the library lets only one load it for a while: how many are up, and whether both are later."
  def one_of_two_refused do
    lock = Path.join(System.tmp_dir!(), "tame_lock_#{System.pid()}")
    System.put_env("PLACES_LOCK", lock)
    module = start(:places, %{hosts: 2, backoff_ms: {10, 10}, intensity: :infinity})
    # The second is refused, and started again and again.
    again? = fn -> Enum.any?(:tame.info()[module].hosts, &(&1.starts > 2)) end
    true = Tame.Await.until(again?, 20_000)
    before = Enum.count(states(module), &(&1 == :up))
    System.delete_env("PLACES_LOCK")
    later = Tame.Await.until(fn -> states(module) == [:up, :up] end, 20_000)
    File.rm!(lock)
    {before, later}
  end

  defp states(module), do: for(%{state: state} <- :tame.info()[module].hosts, do: state)

  @doc "A host that is said to have written a bad reply: whether it is replaced, and one that is not its any more."
  def condemned do
    module = start()
    before = module.pause_ms(0)
    [ring] = rings(module)
    :ok = :tame_hosts.bad_reply(module, ring, :payload)

    replaced? =
      Tame.Await.until(
        fn -> match?({:ok, pid} when pid != before, outcome(fn -> module.pause_ms(0) end)) end,
        20_000
      )

    now = module.pause_ms(0)
    # Said of a ring that is closed by now it ends nobody.
    :ok = :tame_hosts.bad_reply(module, ring, :payload)
    _ = :tame.info()
    {replaced?, Tame.Await.until(fn -> OsProcess.gone?(before) end), module.pause_ms(0) == now}
  end

  # As calls find them.
  def rings(module) do
    [{key, ^module}] = :ets.match_object(:tame_library, {:_, module})
    library = :tame_library.find(key)
    :tame_ring.rings(elem(library, 2)) |> Tuple.to_list()
  end

  @doc "A call of that many ms, with a deadline of the caller's: what it comes to, and its ms."
  def paused_with(ms, deadline_ms, options) do
    module = start(:places, options)

    {us, outcome} =
      :timer.tc(fn ->
        outcome(fn -> Tame.deadline(deadline_ms, fn -> module.pause_ms(ms) end) end)
      end)

    :ok = :tame.restore(module)
    {outcome, us / 1000}
  end

  @doc "No host comes up: what a call raises without a deadline, and with one that is shorter than wait_ms."
  def no_host(options) do
    program = program_of_its_own()

    module =
      start(
        :places,
        Map.merge(%{host: program, backoff_ms: {10, 10}, intensity: :infinity}, options)
      )

    File.rm!(program)
    kill_hosts(module)
    true = Tame.Await.until(fn -> :tame.info()[module].state == :empty end)
    outcome(fn -> module.pause_ms(0) end)
  end
end
