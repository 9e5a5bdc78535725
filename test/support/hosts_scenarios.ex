defmodule Tame.HostsScenarios do
  @moduledoc """
  What a library that has several hosts, or waits in one, does in a throw-away emulator: where its calls, resources
  and atoms go. Each function returns what was seen.
  """

  import Tame.ProcessScenarios

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
    busy = Task.async(fn -> module.pause_ms(rem(n, 2) * 50) end)
    if rem(n, 2) == 1, do: await_busy(module, busy)
    cell = module.new_cell(n)
    Task.await(busy)
    cell
  end

  # Somebody who looks late finds that it has ended.
  defp await_busy(module, %{pid: pid}) do
    true = Tame.Await.until(fn -> in_use(module) > 0 or not Process.alive?(pid) end)
  end

  @doc "How calls spread over hosts, of callers at once."
  def spread(hosts, callers) do
    module = start(:places, %{hosts: hosts, workers: 1})

    true =
      Tame.Await.until(fn -> Enum.count(:tame.info()[module].hosts, &(&1.state == :up)) == hosts end)

    tasks = for _ <- 1..callers, do: Task.async(fn -> module.pause_ms(3000) end)
    tasks |> Task.await_many(600_000) |> Enum.uniq() |> length()
  end

  @doc "Calls that wait for each other, more than there are workers."
  def met(workers, count) do
    module = start(:places, %{workers: workers})
    tasks = for _ <- 1..count, do: Task.async(fn -> outcome(fn -> module.meet(count) end) end)
    Task.await_many(tasks, 600_000)
  end

  @doc "Dirty calls that wait until another, which is not dirty, lets them go: more than there ever are workers."
  def let_go(workers, count) do
    module = start(:places, %{workers: workers, deadline_ms: 20_000})
    tasks = for _ <- 1..count, do: Task.async(fn -> outcome(fn -> module.meet(1000) end) end)
    true = Tame.Await.until(fn -> in_use(module) == count end)
    let_go = outcome(fn -> module.arrive(1000) end)
    {let_go, Task.await_many(tasks, 600_000)}
  end

  @doc "Whom a library may find by name: its own caller, and processes of the system."
  def whom do
    module = start()
    Process.register(self(), :places_test)
    own = module.tell(:places_test, :hello)
    heard = receive do: (:hello -> true), after: (20_000 -> false)

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
    module = start(:places, %{hosts: {1, 2}, idle_ms: 5000, workers: 1, slots: 1})
    [_, %{os_pid: newest}] = crowded(module, 20)
    cell = cell_in(module, newest)
    Process.sleep(8000)
    kept = length(:tame.info()[module].hosts)
    {^newest, 7} = module.sum([cell])
    {kept, released(module)}
  end

  @doc "The clock that an idle host is told, and the VM's own: each less the machine's, in ns."
  def clock do
    start(:places, %{})
    1 = :erlang.trace_pattern({:tame_host_frames, :send, 2}, true)
    :erlang.trace(:processes, true, [:call])

    receive do
      {:trace, _host, :call, {_module, :send, [{:clock, told}, _state]}} ->
        {told, :erlang.monotonic_time(:nanosecond) - :os.perf_counter(:nanosecond)}
    after
      60_000 -> :nothing
    end
  end

  # Calls that wait, until there are two hosts: on a machine that is full somebody may look late.
  defp crowded(module, tries) when tries > 0 do
    tasks = for _ <- 1..6, do: Task.async(fn -> module.pause_ms(300) end)
    Task.await_many(tasks, 600_000)
    hosts = :tame.info()[module].hosts
    if length(hosts) == 2, do: hosts, else: crowded(module, tries - 1)
  end

  # A cell that lives in this very host: made while the other one has a call, if that is the other one.
  defp cell_in(module, os_pid) do
    busy = Task.async(fn -> module.pause_ms(300) end)
    await_busy(module, busy)
    cell = module.new_cell(7)
    Task.await(busy)
    if elem(module.sum([cell]), 0) == os_pid, do: cell, else: cell_in(module, os_pid)
  end

  defp released(module) do
    :erlang.garbage_collect()
    Tame.Await.until(fn -> length(:tame.info()[module].hosts) == 1 end)
  end
end
