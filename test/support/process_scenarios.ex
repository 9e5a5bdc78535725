defmodule Tame.ProcessScenarios do
  @moduledoc """
  What a test does to the processes of isolation, in a throw-away emulator: each function ends, stops or starves
  some of them, and returns what was seen.
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
    {Task.await(call, 20_000), well?(module)}
  end

  defp in_use(module) do
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
    results = Enum.map(callers, &Task.await(&1, 20_000))
    {restored, results, vm, module.pause_ms(0), :tame.info()}
  end

  @doc "isolate/2 while a process is in the module's native code in this VM, and another stays in its Erlang code."
  def isolated_under_calls(ms) do
    {:ok, _} = Application.ensure_all_started(:tame)
    module = :places
    Places.build!(module)
    parent = self()
    inside = Task.async(fn -> outcome(fn -> module.paused(ms) end) end)
    staying = spawn_link(fn -> send(parent, {:left, module.stay(fn -> :left end)}) end)
    # Both have begun when the process's function says so.
    true =
      Tame.Await.until(fn ->
        match?({:current_function, {^module, _, _}}, Process.info(staying, :current_function))
      end)

    isolated = :tame.isolate(module)
    host = module.pause_ms(0)
    # It may not be replaced once more while that process is in the code of before.
    again = {:tame.restore(module), outcome(fn -> module.pause_ms(0) end)}
    result = Task.await(inside, 20_000)
    alive? = Process.alive?(staying)
    send(staying, :go)
    left = receive do: ({:left, value} -> value)
    true = Tame.Await.until(fn -> :tame.restore(module) == :ok end)
    {isolated, host, again, result, alive?, left, staying}
  end

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

  # A copy of tame_host, which a scenario may take away.
  defp program_of_its_own do
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

    {replaced?, OsProcess.gone?(before), in_use(module)}
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

  @doc "Resources of several hosts: sums of cells made at each, and of two at once."
  def resources(hosts) do
    module = start(:places, %{hosts: hosts})

    true =
      Tame.Await.until(fn -> Enum.count(:tame.info()[module].hosts, &(&1.state == :up)) == hosts end)

    # Two at once go to two hosts: the first keeps its own busy.
    cells = for n <- 1..20, do: {n, cell_beside(module, n)}
    sums = for {n, cell} <- cells, do: {n, elem(module.sum([cell, cell]), 1)}
    places = cells |> Enum.map(fn {_, cell} -> elem(module.sum([cell]), 0) end) |> Enum.uniq()

    {first, second} =
      Enum.split_with(cells, fn {_, cell} -> elem(module.sum([cell]), 0) == hd(places) end)

    mixed = outcome(fn -> module.sum([elem(hd(first), 1), elem(hd(second), 1)]) end)
    {sums, length(places), mixed}
  end

  defp cell_beside(module, n) do
    busy = Task.async(fn -> module.pause_ms(rem(n, 2) * 20) end)
    if rem(n, 2) == 1, do: Tame.Await.until(fn -> in_use(module) > 0 end)
    cell = module.new_cell(n)
    Task.await(busy)
    cell
  end

  @doc "How calls spread over hosts, of callers at once."
  def spread(hosts, callers) do
    module = start(:places, %{hosts: hosts, workers: 1})

    true =
      Tame.Await.until(fn -> Enum.count(:tame.info()[module].hosts, &(&1.state == :up)) == hosts end)

    tasks = for _ <- 1..callers, do: Task.async(fn -> module.pause_ms(500) end)
    tasks |> Task.await_many(20_000) |> Enum.uniq() |> length()
  end

  @doc "Calls that wait for each other, more than there are workers."
  def met(workers, count) do
    module = start(:places, %{workers: workers})
    tasks = for _ <- 1..count, do: Task.async(fn -> outcome(fn -> module.meet(count) end) end)
    Task.await_many(tasks, 20_000)
  end

  @doc "Whom a library may find by name: its own caller, and processes of the system."
  def whom do
    module = start()
    Process.register(self(), :places_test)
    own = module.tell(:places_test, :hello)
    heard = receive do: (:hello -> true), after: (5000 -> false)

    {own, heard,
     for(
       name <- [:init, :code_server, :tame_isolation, :no_such_name],
       do: module.tell(name, {:stop, :stop})
     )}
  end

  @doc "Atoms that exist already, many times over, and new ones up to the most."
  def atoms(most) do
    module = start(:places, %{max_atoms: most})
    old = for _ <- 1..(most + 100), do: module.atom("ok")
    new = for n <- 1..(most + 10), do: outcome(fn -> module.atom("tame_places_atom_#{n}") end)
    kill_hosts(module)
    true = Tame.Await.until(fn -> match?({:ok, _}, outcome(fn -> module.pause_ms(0) end)) end)
    again = module.atom("tame_places_atom_1")

    {Enum.uniq(old), Enum.count(new, &match?({:ok, _}, &1)), List.last(new), again,
     :tame.info()[module].atoms}
  end

  @doc "An idle host is kept while the VM holds one of its resources, and stopped afterwards."
  def idle_with_resource do
    module = start(:places, %{hosts: {1, 2}, idle_ms: 2000, workers: 1, slots: 1})
    tasks = for _ <- 1..6, do: Task.async(fn -> module.pause_ms(300) end)
    Task.await_many(tasks, 20_000)
    2 = length(:tame.info()[module].hosts)
    [_, %{os_pid: newest}] = :tame.info()[module].hosts
    cell = cell_in(module, newest)
    Process.sleep(4000)
    kept = length(:tame.info()[module].hosts)
    {^newest, 7} = module.sum([cell])
    {kept, released(module)}
  end

  # A cell that lives in this very host: made while the other one has a call, if that is the other one.
  defp cell_in(module, os_pid) do
    busy = Task.async(fn -> module.pause_ms(100) end)
    true = Tame.Await.until(fn -> in_use(module) == 1 end)
    cell = module.new_cell(7)
    Task.await(busy)
    if elem(module.sum([cell]), 0) == os_pid, do: cell, else: cell_in(module, os_pid)
  end

  defp released(module) do
    :erlang.garbage_collect()
    Tame.Await.until(fn -> length(:tame.info()[module].hosts) == 1 end, 10_000)
  end

  @doc "A library that its application loads, before and after isolation; then restored."
  def loaded_later(bind) do
    {:ok, _} = Application.ensure_all_started(:tame)
    module = :places_app
    Places.build!(module, loads: :later)
    vm = String.to_integer(System.pid())
    :ok = module.start()
    in_vm = module.pause_ms(0) == vm
    isolated = :tame.isolate(module, %{bind: bind})
    in_host = outcome(fn -> module.pause_ms(0) != vm end)
    restored = :tame.restore(module)
    {in_vm, isolated, in_host, restored, outcome(fn -> module.pause_ms(0) == vm end)}
  end

  @doc "The application tame stopped, started, and the module isolated again."
  def stopped_application do
    module = start()
    :ok = Application.stop(:tame)
    stopped = {outcome(fn -> module.pause_ms(0) end), in_vm?(module)}
    {:ok, _} = Application.ensure_all_started(:tame)
    started = {outcome(fn -> module.pause_ms(0) end), in_vm?(module)}
    :ok = :tame.isolate(module)
    {stopped, started, well?(module)}
  end

  @doc "What application:start comes to with this configuration, whether tame runs then, and whether jiffy is in the VM."
  def configured(isolate) do
    :logger.set_primary_config(:level, :none)
    Application.load(:tame)
    Application.put_env(:tame, :isolate, isolate)
    started = Application.ensure_all_started(:tame)
    answer = outcome(fn -> :jiffy.decode("[1]") end)
    {started, is_pid(Process.whereis(:tame_sup)), answer, in_vm?(:jiffy)}
  end

  @doc "Arguments that are none, and what they change."
  def bad_arguments do
    module = start()

    answers =
      for bad <- ["jiffy", ~c"jiffy", {:jiffy, 1}, 7],
          do: {bad, :tame.isolate(bad), :tame.restore(bad), :tame.restart(bad)}

    {answers, well?(module), outcome(fn -> module.load(:badarg, 0) end),
     outcome(fn -> module.load(~c"/x", 0) end)}
  end

  @doc "What the log has of a host that dies of a signal, of several at once, and of one that exits."
  def reports do
    {:ok, _} = Application.ensure_all_started(:tame)
    Process.register(self(), :report_test)
    :ok = :logger.add_handler(:report_test, __MODULE__, %{})
    :ok = :logger.remove_handler(:default)
    :ok = :tame.isolate(:jiffy, %{backoff_ms: {0, 0}, intensity: :infinity})
    json = "[" <> Enum.map_join(1..20_000, ",", &Integer.to_string/1) <> "]"
    for _ <- 1..20, do: outcome(fn -> :jiffy.decode(json, bytes_per_iter: 200) end)
    Process.sleep(1100)
    outcome(fn -> :jiffy.decode(json, bytes_per_iter: 200) end)
    {:ok, _} = outcome(fn -> :jiffy.decode("[1]") end)
    heard([])
  end

  defp heard(texts) do
    receive do
      {:report, text} -> heard([text | texts])
    after
      500 -> Enum.reverse(texts)
    end
  end

  # A handler of logger.
  def log(%{msg: {:report, report}, meta: %{report_cb: format}}, _config) do
    {text, args} = format.(report)
    send(:report_test, {:report, to_string(:io_lib.format(text, args))})
  end

  def log(_event, _config), do: :ok

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
    {replaced?, OsProcess.gone?(before), module.pause_ms(0) == now}
  end

  # As calls find them.
  defp rings(module), do: :ets.lookup(:tame_library, module) |> hd() |> elem(2) |> Tuple.to_list()

  @doc """
  Ends, stops, starves and replaces processes at random, `steps` times, whatever state each is in just then, beside
  callers that go on all the time. What the callers got, by kind, and how it is in the end.
  """
  def walk(seed, steps) do
    :rand.seed(:exsss, seed)
    program = program_of_its_own()

    module =
      start(:places, %{
        host: program,
        hosts: {1, 2},
        answer_ms: 300,
        deadline_ms: 3000,
        grace_ms: 300,
        backoff_ms: {0, 20},
        intensity: :infinity
      })

    callers = for _ <- 1..4, do: Task.async(fn -> calls(module, %{}) end)
    taken = for _ <- 1..steps, do: step(module, program)
    File.exists?(program) || File.rename!(program <> ".away", program)
    well = well?(module)
    Enum.each(callers, &send(&1.pid, :enough))

    seen =
      callers |> Task.await_many(30_000) |> Enum.reduce(&Map.merge(&1, &2, fn _, a, b -> a + b end))

    :erlang.garbage_collect()

    resources? =
      Tame.Await.until(
        fn -> Enum.sum(for %{ring: %{resources: n}} <- :tame.info()[module].hosts, do: n) == 0 end,
        20_000
      )

    restored = restored(module, 20)
    File.rm!(program)
    {taken, seen, well, resources?, restored}
  end

  # The last step may have ended a process that is being replaced just now.
  defp restored(module, asks) do
    case :tame.restore(module) do
      {:error, {:interrupted, _}} when asks > 1 ->
        Process.sleep(100)
        restored(module, asks - 1)

      answer ->
        answer
    end
  end

  # Until it is told that it is enough, and has been answered once: a walk may be shorter than the deadline of a call
  # in a host that was stopped at once.
  defp calls(module, seen) do
    receive do
      :enough when is_map_key(seen, :right) -> seen
    after
      0 ->
        cell = outcome(fn -> module.new_cell(3) end)

        kind =
          kind(
            case(cell,
              do:
                (
                  {:ok, cell} -> outcome(fn -> module.sum([cell]) end)
                  failed -> failed
                )
            )
          )

        calls(module, Map.update(seen, kind, 1, &(&1 + 1)))
    end
  end

  # badarg: the cell's host is dead.
  defp kind({:ok, {os_pid, 3}}),
    do: if(Integer.to_string(os_pid) == System.pid(), do: :in_vm, else: :right)

  defp kind({:ok, _}), do: :wrong
  defp kind({:error, :badarg}), do: :badarg
  defp kind({:error, {:tame, reason}}) when is_atom(reason), do: reason
  defp kind({:error, {:tame, {reason, _}}}), do: reason
  defp kind(other), do: other

  defp step(module, program) do
    action =
      Enum.random(
        @kinds ++ [:kill_host, :stop_host, :program, :reload, :restart, :rename, :info, :condemn]
      )

    _ = outcome(fn -> act(action, module, program) end)
    Process.sleep(Enum.random([0, 1, 5, 50, 200]))
    action
  end

  defp act(:kill_host, module, _), do: kill_hosts(module)
  defp act(:stop_host, module, _), do: kill_hosts(module, "STOP")
  defp act(:restart, module, _), do: :tame.restart(module)
  defp act(:info, _module, _), do: :tame.info()

  defp act(:condemn, module, _),
    do: for(ring <- rings(module), do: :tame_hosts.bad_reply(module, ring, :payload))

  defp act(:program, _module, program) do
    if File.exists?(program),
      do: File.rename!(program, program <> ".away"),
      else: File.rename!(program <> ".away", program)
  end

  defp act(:reload, _module, _) do
    :code.soft_purge(:tame_ring_nif) && :code.load_file(:tame_ring_nif)
  end

  # Without a name server: what is known by name changes, and nobody has to hear of it.
  defp act(:rename, _module, _) do
    if node() == :nonode@nohost,
      do: :net_kernel.start([:"walk_#{System.pid()}@127.0.0.1", :longnames]),
      else: :net_kernel.stop()
  end

  defp act(kind, module, _) do
    case process(kind, module) do
      pid when is_pid(pid) -> Process.exit(pid, :kill)
      nil -> :ok
    end
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
