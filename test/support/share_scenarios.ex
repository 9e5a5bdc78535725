defmodule Tame.ShareScenarios do
  @moduledoc "What a test does with libraries that share a host, in a throw-away VM."

  @compile {:no_warn_undefined, [:share_one, :share_two, :share_three]}

  alias Tame.{Await, ProcessScenarios}
  alias Tame.Test.ShareLibraries

  @doc "Isolates these into group `boxes`, and loads their libraries in that order."
  def start(folder, modules, options \\ %{}) do
    {:ok, _} = Application.ensure_all_started(:tame)
    true = :code.add_patha(to_charlist(folder))
    ShareLibraries.new_log(folder)
    for module <- modules, do: :ok = isolate(folder, module, options)
    for module <- modules, do: :ok = bind(folder, module, 1)
    :ok
  end

  def isolate(folder, module, options) do
    library = ShareLibraries.library(folder, module, 1)
    # make test-sanitized-host names one with sanitizers.
    common = %{share: :boxes, library: library, host: Tame.Test.Host.path()}
    :tame.isolate(module, Map.merge(common, options))
  end

  def bind(folder, module, version, refuse \\ 0) do
    library = folder |> ShareLibraries.library(module, version) |> Path.rootname() |> to_charlist()
    module.bind(library, {to_charlist(Path.join(folder, "log")), refuse})
  end

  @doc "What `fun` raises, or its value."
  def outcome(fun) do
    {:value, fun.()}
  catch
    kind, reason -> {kind, reason}
  end

  @doc "Both libraries, the hosts there are, and what they make of each other's boxes."
  def two(folder) do
    start(folder, [:share_one, :share_two])
    box = :share_one.new_box(40)

    %{
      who: {:share_one.who(), :share_two.who()},
      hosts: for({module, info} <- :tame.info(), do: {module, length(info.hosts), info.share}),
      read: outcome(fn -> :share_one.read_box(box) end),
      others_read: outcome(fn -> :share_two.read_box(box) end),
      called: :share_two.call_box(:share_one, box),
      called_as_own: :share_two.call_box(:share_two, box),
      log: ShareLibraries.log(folder)
    }
  end

  @doc "A crash of one: what it raises, that the other is new as well, and in which order they were loaded again."
  def crash(folder) do
    start(folder, [:share_two, :share_one, :share_three], %{backoff_ms: {0, 0}})
    {before, :share_one, 1, 0} = :share_one.who()
    box = :share_two.new_box(1)
    ShareLibraries.new_log(folder)
    raised = outcome(fn -> :share_one.crash() end)
    {after_crash, :share_two, 1, 0} = :share_two.who()
    {^after_crash, :share_one, 1, 0} = :share_one.who()

    %{
      raised: raised,
      is_new: before != after_crash,
      old_box: outcome(fn -> :share_two.read_box(box) end),
      log: ShareLibraries.log(folder)
    }
  end

  @doc "A library that is refused when it joins: its reason, and whether the others have noticed."
  def refused(folder, refuse) do
    start(folder, [:share_one], %{backoff_ms: {0, 0}})
    {host, _, _, _} = :share_one.who()
    :ok = isolate(folder, :share_two, %{})
    answer = bind(folder, :share_two, 1, refuse)
    own = :share_two.who()
    Await.until(fn -> match?({_, :share_one, 1, 0}, :share_one.who()) end)
    {now, _, _, _} = :share_one.who()
    again = bind(folder, :share_two, 1)
    {both, _, _, _} = :share_two.who()
    {^both, _, _, _} = :share_one.who()
    %{answer: answer, own: own, same_host: host == now, again: again}
  end

  @doc "One whose load asks the VM for the hash of 4 MiB, in a host that starts: whether it starts, twice."
  def loads_with_much(folder) do
    start(folder, [], %{backoff_ms: {0, 0}})
    :ok = isolate(folder, :share_one, %{backoff_ms: {0, 0}})
    bound = bind(folder, :share_one, 1, -3)
    raised = outcome(fn -> :share_one.crash() end)
    {bound, raised, :share_one.who()}
  end

  @doc "What is refused before anything runs."
  def disagreements(folder) do
    start(folder, [:share_one], %{workers: 3, slots: 32})

    %{
      differs: isolate(folder, :share_two, %{workers: 4}),
      same: isolate(folder, :share_two, %{workers: 3}),
      own: isolate(folder, :share_three, %{deadline_ms: 5000, bind: :overlay}),
      workers: for({_, info} <- :tame.info(), host <- info.hosts, do: host.ring.slots)
    }
  end

  @doc """
  One is restored while a call of it goes on whose caller was killed, which makes a box then: the other goes on in the same host, and
  the one is unloaded after its box.
  """
  def restore_under_a_call(folder) do
    start(folder, [:share_one, :share_two])
    {host, _, _, _} = :share_one.who()
    file = Path.join(folder, "late")
    {pid, monitor} = spawn_monitor(:share_two, :late_box, [1, to_charlist(file)])
    Await.until(fn -> "waits share_two 1" in ShareLibraries.log(folder) end)
    Process.exit(pid, :kill)
    receive do: ({:DOWN, ^monitor, :process, ^pid, :killed} -> :ok)
    restored = :tame.restore(:share_two)
    # Time in which the host is told to unload it.
    Process.sleep(500)
    File.write!(file, "")
    Await.until(fn -> "unload share_two 1" in ShareLibraries.log(folder) end)
    {now, _, _, _} = :share_one.who()
    log = for line <- ShareLibraries.log(folder), line =~ "share_two", do: line
    %{restored: restored, same_host: host == now, log: log}
  end

  @doc "One is restored: its library is unloaded, the other goes on in the same host."
  def restore(folder) do
    start(folder, [:share_one, :share_two])
    {host, _, _, _} = :share_one.who()
    {:ok, _} = {:ok, :share_two.who()}
    restored = :tame.restore(:share_two)
    Await.until(fn -> "unload share_two 1" in ShareLibraries.log(folder) end)
    {same, _, _, _} = :share_one.who()
    {in_vm, _, _, _} = :share_two.who()
    last = :tame.restore(:share_one)
    Await.until(fn -> "unload share_one 1" in ShareLibraries.log(folder) end)

    %{
      restored: restored,
      same_host: host == same,
      in_vm: Integer.to_string(in_vm) == System.pid(),
      last: last,
      info: :tame.info()
    }
  end

  @doc """
  One is restored and isolated again and again while callers call it and the other: how calls of the other ended, and whether all
  were in one host.
  """
  def restored_beside_calls(folder, times) do
    start(folder, [:share_one, :share_two], %{intensity: :infinity, backoff_ms: {0, 0}})
    {host, _, _, _} = :share_one.who()
    callers = for _ <- 1..8, do: Task.async(fn -> who_until_told([], []) end)

    for _ <- 1..times do
      :ok = Await.until(fn -> :tame.restore(:share_two) == :ok end) && :ok
      :ok = isolate(folder, :share_two, %{})
    end

    for caller <- callers, do: send(caller.pid, :enough)
    {ones, twos} = callers |> Enum.map(&Task.await(&1, 600_000)) |> Enum.unzip()

    %{
      one: ones |> List.flatten() |> Enum.uniq() == [{:value, {host, :share_one, 1, 0}}],
      two:
        for({kind, {:tame, reason}} <- List.flatten(twos), kind != :value, uniq: true, do: reason)
    }
  end

  # What differs, of each.
  defp who_until_told(ones, twos) do
    receive do
      :enough -> {ones, twos}
    after
      0 ->
        ones = Enum.uniq([outcome(fn -> :share_one.who() end) | ones])
        who_until_told(ones, Enum.uniq([outcome(fn -> :share_two.who() end) | twos]))
    end
  end

  @doc "New code while a process waits for its call of the old: whether that can be purged, then and later, and what it returned."
  def purged_under_a_call(folder, bind) do
    start(folder, [:share_one], %{bind: bind})
    caller = Task.async(fn -> :share_one.nap(4000) end)
    true = Await.until(fn -> ProcessScenarios.in_use(:share_one) == 1 end)
    beam = File.read!(ShareLibraries.beam(folder, :share_one, 1))
    {:module, _} = :tame.load_binary(:share_one, ~c"share_one.erl", beam)
    purged = :code.soft_purge(:share_one)
    {purged, Task.await(caller, 600_000), :code.soft_purge(:share_one)}
  end

  @doc "New code so often that its library has each number that a host gives: what each bind and call came to."
  def numbers(folder, count) do
    start(folder, [:share_one, :share_two])
    {host, _, _, _} = :share_one.who()
    beam = File.read!(ShareLibraries.beam(folder, :share_one, 1))

    for _ <- 1..count do
      {:module, :share_one} = :tame.load_binary(:share_one, ~c"share_one.erl", beam)
      bound = bind(folder, :share_one, 1)
      who = {:share_one.who(), :share_two.who()}
      true = :code.soft_purge(:share_one)
      {bound, match?({{^host, :share_one, 1, _}, {^host, :share_two, 1, 0}}, who)}
    end
  end

  @doc "The process that keeps the group dies: the next one has the same hosts and libraries, and a third joins."
  def replaced(folder) do
    start(folder, [:share_one, :share_two])
    {host, _, _, _} = :share_one.who()
    keeper = Process.whereis(:tame_hosts_boxes)
    Process.exit(keeper, :kill)
    Await.until(fn -> Process.whereis(:tame_hosts_boxes) not in [nil, keeper] end)
    :ok = isolate(folder, :share_three, %{})
    joined = bind(folder, :share_three, 1)

    %{
      joined: joined,
      same: for(m <- [:share_one, :share_two, :share_three], do: elem(m.who(), 0) == host)
    }
  end

  @doc "Several hosts: a library that joins is loaded by all, and boxes go where they live."
  def hosts(folder) do
    start(folder, [:share_one, :share_two], %{hosts: 3})
    reached = for module <- [:share_one, :share_two], do: reached(module, 3, [], 200)
    boxes = for n <- 1..60, do: {n, :share_one.new_box(n)}

    %{
      same: match?([[_, _, _] = hosts, hosts], reached),
      called: Enum.all?(boxes, fn {n, box} -> :share_two.call_box(:share_one, box) == n + 1 end)
    }
  end

  @doc """
  Several hosts, and boxes in each: new code is loaded that often while others read them. What they read that is neither the
  box's nor what code without a library says.
  """
  def upgraded_beside_readers(folder, rounds) do
    start(folder, [:share_one], %{hosts: 3})
    [_, _, _] = reached(:share_one, 3, [], 200)
    boxes = for n <- 1..60, do: {n, :share_one.new_box(n)}
    readers = for _ <- 1..8, do: Task.async(fn -> read_until_told(boxes, []) end)
    beam = File.read!(ShareLibraries.beam(folder, :share_one, 1))

    for _ <- 1..rounds do
      {:module, :share_one} = :tame.load_binary(:share_one, ~c"share_one.erl", beam)
      :ok = bind(folder, :share_one, 1)
      true = Await.until(fn -> :code.soft_purge(:share_one) end)
    end

    for %{pid: pid} <- readers, do: send(pid, :enough)
    read = readers |> Task.await_many(600_000) |> Enum.concat()
    {Enum.uniq(read), length(pids(:share_one) |> Enum.uniq()) > 1}
  end

  defp read_until_told(boxes, odd) do
    receive do
      :enough -> odd
    after
      0 ->
        read =
          for {n, box} <- boxes,
              seen = outcome(fn -> :share_one.read_box(box) end),
              seen not in [{:value, n}, {:value, :own}],
              do: seen

        read_until_told(boxes, read ++ odd)
    end
  end

  # A call goes to the host that has the fewest: which ones a hundred short calls come to is theirs.
  defp reached(module, count, hosts, tries) do
    hosts = Enum.uniq(Enum.sort(hosts ++ pids(module)))

    if length(hosts) >= count or tries == 0,
      do: hosts,
      else: reached(module, count, hosts, tries - 1)
  end

  defp pids(module) do
    1..100
    |> Task.async_stream(
      fn _ ->
        {pid, _, _, _} = module.who()
        pid
      end,
      max_concurrency: 20
    )
    |> Enum.map(fn {:ok, pid} -> pid end)
  end

  @doc "New code and library beside the old: each code its library, boxes taken over, the old unloaded when purged."
  def upgrade(folder, bind) do
    start(folder, [:share_one, :share_two], %{bind: bind})
    old = spawn_link(:share_one, :loop, [])
    {host, :share_one, 1, 0} = asked(old)
    box = :share_one.new_box(10)
    one = :share_two.call_box(:share_one, box)

    {:ok, _} =
      File.copy(
        ShareLibraries.library(folder, :share_one, 2),
        ShareLibraries.library(folder, :share_one, 1) <> ".new"
      )

    :ok =
      File.rename(
        ShareLibraries.library(folder, :share_one, 1) <> ".new",
        ShareLibraries.library(folder, :share_one, 1)
      )

    beam = File.read!(ShareLibraries.beam(folder, :share_one, 2))
    loaded = :tame.load_binary(:share_one, ~c"share_one.erl", beam)
    before = {:share_one.who(), asked(old)}
    bound = bind(folder, :share_one, 2)
    both = {:share_one.who(), asked(old), :share_one.only_new()}
    two = :share_two.call_box(:share_one, box)
    kept = "unload share_one 1" in ShareLibraries.log(folder)
    send(old, :upgrade)
    {^host, :share_one, 2, 1} = asked(old)
    false = :erlang.check_process_code(old, :share_one)
    true = :code.soft_purge(:share_one)
    Await.until(fn -> "unload share_one 1" in ShareLibraries.log(folder) end)
    log = ShareLibraries.log(folder)
    after_purge = asked(old)
    ShareLibraries.new_log(folder)
    _ = outcome(fn -> :share_two.crash() end)
    {_, :share_one, 2, 0} = :share_one.who()
    restarted = ShareLibraries.log(folder)
    _ = outcome(fn -> :share_one.read_box(box) end)
    send(old, :stop)

    %{
      loaded: loaded,
      before: before == {{:own, 2}, {host, :share_one, 1, 0}},
      bound: bound,
      both: both == {{host, :share_one, 2, 1}, {host, :share_one, 1, 0}, {host, :share_one, 2, 1}},
      called: {one, two},
      kept: kept,
      after_purge: after_purge == {host, :share_one, 2, 1},
      log: log,
      restarted: restarted
    }
  end

  @doc "An upgrade that is refused: the old library serves on, and its boxes."
  def upgrade_refused(folder) do
    start(folder, [:share_one])
    old = spawn_link(:share_one, :loop, [])
    box = :share_one.new_box(10)
    beam = File.read!(ShareLibraries.beam(folder, :share_one, 1))
    {:module, :share_one} = :tame.load_binary(:share_one, ~c"share_one.erl", beam)
    refused = bind(folder, :share_one, 1, 7)
    mine = :share_one.who()
    theirs = asked(old)
    again = bind(folder, :share_one, 1)
    reload = bind(folder, :share_one, 1)
    read = :share_one.read_box(box)
    send(old, :stop)
    %{refused: refused, mine: mine, theirs: theirs, again: again, reload: reload, read: read}
  end

  @doc """
  The process behind load_binary/3 is killed while a host loads the library of new code: what was said, who answers
  meanwhile and then, and after another load that was asked for meanwhile; and what the module is restored to.
  """
  def upgrade_interrupted(folder) do
    start(folder, [:share_one])
    beam = ShareLibraries.loading_beam(folder, :share_one, 1)
    load = fn -> Task.async(fn -> :tame.load_binary(:share_one, ~c"share_one.erl", beam) end) end
    [isolation, host] = for kind <- [:isolation, :host], do: ProcessScenarios.process(kind, :boxes)
    :ok = :sys.suspend(host)
    first = load.()
    true = Await.until(fn -> told_to_load?(host) end)
    Process.exit(isolation, :kill)
    interrupted = Task.await(first)

    true =
      Await.until(fn -> ProcessScenarios.process(:isolation, :boxes) not in [nil, isolation] end)

    second = load.()
    {_, _, _, before} = :share_one.who()
    :ok = :sys.resume(host)
    loaded = Task.await(second, 600_000)
    {_, _, _, upgrades} = :share_one.who()
    :ok = :tame.restore(:share_one)
    {interrupted, loaded, {before, upgrades}, {:start, 0} in :share_one.module_info(:functions)}
  end

  @doc """
  The process behind isolate/2 or restore/1 is killed while the code that it loads is in its -on_load, which then
  returns `answer`: what was said, what another who asks for the same meanwhile is told, whether the module is isolated
  then, and who answers.
  """
  def interrupted(folder, what, answer) do
    start(folder, [])
    File.write!(Path.join(folder, "share_one.beam"), ShareLibraries.waiting_beam(:share_one))
    ask = fn -> asks(what, folder) end
    if what == :restore, do: :ok = asks(:isolate, folder)
    true = Process.register(self(), :gate)
    first = Task.async(ask)
    loader = receive do: ({loader, :loads} -> loader)
    killed = kill_isolation()
    true = Process.unregister(:gate)
    interrupted = Task.await(first)
    true = Await.until(fn -> isolation() not in [nil, killed] end)
    second = Task.async(ask)
    send(loader, {self(), answer})
    told = Task.await(second, 600_000)
    isolated = Map.keys(:tame.info())
    if isolated != [], do: :ok = bind(folder, :share_one, 1)
    {interrupted, told, isolated, :share_one.who()}
  end

  @doc """
  It is killed while restore/1 waits for a process in the bound code: what was said, whether that process is served by
  its host then, and whether nothing is left when it has ended.
  """
  def restore_interrupted(folder) do
    start(folder, [:share_one])
    old = spawn_link(:share_one, :loop, [])
    {_, :share_one, 1, 0} = asked(old)
    first = Task.async(fn -> :tame.restore(:share_one) end)
    # The code before, its library in this VM.
    here = {String.to_integer(System.pid()), :share_one, 1, 0}
    true = Await.until(fn -> :share_one.who() == here end)
    killed = kill_isolation()
    interrupted = Task.await(first)
    true = Await.until(fn -> isolation() not in [nil, killed] end)
    %{share_one: %{phase: phase}} = :tame.info()
    {_, :share_one, 1, 0} = theirs = asked(old)
    send(old, :stop)
    left = Await.until(fn -> :tame.info() == %{} end)
    {interrupted, {phase, theirs != here}, left, :share_one.who() == here}
  end

  defp asks(:isolate, folder), do: isolate(folder, :share_one, %{})
  defp asks(:restore, _folder), do: :tame.restore(:share_one)

  defp isolation, do: ProcessScenarios.process(:isolation, :boxes)

  defp kill_isolation do
    killed = isolation()
    Process.exit(killed, :kill)
    killed
  end

  defp told_to_load?(host) do
    {:messages, messages} = Process.info(host, :messages)
    Enum.any?(messages, &match?({:"$gen_cast", {:libraries, _}}, &1))
  end

  @doc "Upgrades that are refused, and some that crash the host: what is known of libraries before and after."
  def upgrades_refused(folder, refusals) do
    start(folder, [:share_one])
    before = known()

    for refuse <- refusals do
      beam = ShareLibraries.loading_beam(folder, :share_one, 1, refuse)
      {:error, {_, _}} = :tame.load_binary(:share_one, ~c"share_one.erl", beam)

      true =
        Await.until(fn -> match?({:value, {_, :share_one, 1, 0}}, outcome(&:share_one.who/0)) end)
    end

    {before, known()}
  end

  defp known do
    terms = for {{:tame_library, _}, _} <- :persistent_term.get(), do: 1
    {length(terms), :ets.info(:tame_library, :size)}
  end

  defp asked(pid) do
    send(pid, {self(), :who})

    receive do
      {^pid, who} -> who
    end
  end
end
