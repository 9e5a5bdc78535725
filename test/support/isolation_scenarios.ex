defmodule Tame.IsolationScenarios do
  @moduledoc "What a test does with isolated libraries, in a throw-away emulator."

  alias Tame.IsolationCalls

  @doc """
  Makes the calls in the VM, isolates with the options, makes them again, restores, makes them a third time. Returns how many
  there were and those that came to something else, at most three.
  """
  def compare(library, count, seed, options) do
    {:ok, _} = Application.ensure_all_started(:tame)
    modules = IsolationCalls.libraries()[library]
    IsolationCalls.load(library)
    calls = IsolationCalls.calls(library, count, seed)
    in_vm = Enum.map(calls, &outcome/1)

    for module <- modules, do: :ok = :tame.isolate(module, options)
    isolated = Enum.map(calls, &outcome/1)

    served =
      :tame.info()
      |> Map.values()
      |> Enum.flat_map(& &1.hosts)
      |> Enum.map(& &1.ring.calls)
      |> Enum.sum()

    for module <- modules, do: :ok = :tame.restore(module)
    restored = Enum.map(calls, &outcome/1)

    %{
      count: count,
      served: served,
      isolated: differences(in_vm, isolated),
      restored: differences(in_vm, restored)
    }
  end

  # Funs and references made anew by each call are equal to nothing else.
  defp outcome(call), do: IsolationCalls.outcome(call)

  defp differences(expected, got) do
    Enum.zip(expected, got) |> Enum.reject(fn {a, b} -> a === b end) |> Enum.take(3)
  end

  @doc """
  Isolates jiffy and makes it divide by zero: what the call raises, and how long the next one takes, in ms, for
  each of that number of crashes.
  """
  def crashes(count, options) do
    start(:jiffy, options)
    json = "[" <> Enum.map_join(1..20_000, ",", &Integer.to_string/1) <> "]"

    rounds =
      for _ <- 1..count do
        raised =
          try do
            :jiffy.decode(json, bytes_per_iter: 200)
          catch
            :error, reason -> {reason, List.first(__STACKTRACE__)}
          end

        {us, answer} = :timer.tc(fn -> outcome(fn -> :jiffy.decode("[1]") end) end)
        {raised, answer, us / 1000}
      end

    {rounds, :tame.info().jiffy}
  end

  @doc "One call of tame_spin, isolated under these options, for that number of ms: what it raises and when, in ms."
  def spin(function, ms, options) do
    start(:tame_spin, options)
    timed(fn -> outcome(fn -> apply(:tame_spin, function, [ms * 1000]) end) end)
  end

  @doc "As spin/3, where the deadline is the caller's."
  def spin_with(function, ms, deadline_ms) do
    start(:tame_spin, %{})

    timed(fn ->
      outcome(fn ->
        Tame.deadline(deadline_ms, fn -> apply(:tame_spin, function, [ms * 1000]) end)
      end)
    end)
  end

  @doc """
  A call longer than its deadline, which goes on without end: what the caller gets, and how long it is from the
  call until the host that had it is replaced, in ms. What the next call comes to.
  """
  def overdue(options) do
    start(:tame_spin, options)
    [%{os_pid: before}] = :tame.info().tame_spin.hosts

    {{raised, replaced}, ms} =
      timed(fn ->
        raised = outcome(fn -> :tame_spin.spin_inline(600_000_000) end)
        {raised, Tame.Await.until(fn -> other_host?(:tame_spin, before) end)}
      end)

    {raised, {replaced, ms}, outcome(fn -> :tame_spin.spin_inline(10) end)}
  end

  @doc "As overdue/1, for a caller that is killed."
  def killed_caller(options) do
    start(:tame_spin, options)
    [%{os_pid: before}] = :tame.info().tame_spin.hosts
    worked_ns = :tame_cpu.process_ns(before)
    caller = spawn(fn -> :tame_spin.spin_inline(600_000_000) end)
    # The host has begun when it works; one that has not drops the call.
    true = Tame.Await.until(fn -> :tame_cpu.process_ns(before) > worked_ns + 50_000_000 end)
    Process.exit(caller, :kill)

    {replaced, ms} = timed(fn -> Tame.Await.until(fn -> other_host?(:tame_spin, before) end) end)

    {replaced, ms, outcome(fn -> :tame_spin.spin_inline(10) end)}
  end

  @doc "Kills the host so often that it is left alone: what calls raise, then what after restart/1."
  def failed(options) do
    start(:jiffy, options)

    # Some of these find none that is up.
    killed? = fn ->
      kill_host(:jiffy)
      Process.sleep(20)
      :tame.info().jiffy.state == :failed
    end

    true = Tame.Await.until(killed?, 20_000)
    failed = outcome(fn -> :jiffy.decode("[1]") end)
    :ok = :tame.restart(:jiffy)
    {failed, outcome(fn -> :jiffy.decode("[1]") end)}
  end

  @doc "More callers at once than a host takes, under these options. Returns how their calls ended, counted."
  def crowd(callers, ms, options) do
    start(:tame_spin, options)

    tasks =
      for _ <- 1..callers do
        Task.async(fn -> outcome(fn -> :tame_spin.spin_inline(ms * 1000) end) end)
      end

    most = most_hosts(:tame_spin, tasks)
    ends = tasks |> Task.await_many(600_000) |> Enum.frequencies_by(&kind/1)
    {ends, most}
  end

  defp kind({:ok, _}), do: :ok
  defp kind({:error, reason, _}), do: reason

  # The most hosts there were while the tasks ran.
  defp most_hosts(module, tasks, most \\ 0) do
    now = length(:tame.info()[module].hosts)

    if Enum.any?(tasks, &Process.alive?(&1.pid)) do
      Process.sleep(20)
      most_hosts(module, tasks, max(now, most))
    else
      max(now, most)
    end
  end

  @doc "Whether there is one host at last, when nobody calls."
  def idle, do: Tame.Await.until(fn -> length(:tame.info().tame_spin.hosts) == 1 end)

  @doc "What a reply that is twice its arguments' size raises."
  def large_reply(options) do
    :ok = start(:jiffy, options)

    try do
      :jiffy.encode(List.duplicate(1, 60_000))
    catch
      :error, reason -> reason
    after
      :tame.restore(:jiffy)
    end
  end

  @doc "Refusals of isolate/2, each a reason and a sentence; and that the module works as before."
  def refusals(cases) do
    {:ok, _} = Application.ensure_all_started(:tame)
    refused = for {module, options} <- cases, do: :tame.isolate(module, options)
    {refused, outcome(fn -> :jiffy.decode("[1]") end)}
  end

  @doc "jiffy as in a stripped release: what recompile says, isolated on its own choice, a call, one when restored."
  def stripped do
    {:ok, _} = Application.ensure_all_started(:tame)
    {:jiffy, beam, file} = :code.get_object_code(:jiffy)
    {:ok, {:jiffy, stripped}} = :beam_lib.strip(beam)
    dir = Path.join(System.tmp_dir!(), "tame_stripped_#{System.unique_integer([:positive])}")
    File.mkdir_p!(Path.join(dir, "jiffy/ebin"))
    File.write!(Path.join(dir, "jiffy/ebin/jiffy.beam"), stripped)
    priv = file |> Path.dirname() |> Path.dirname() |> Path.join("priv")
    File.ln_s!(priv, Path.join(dir, "jiffy/priv"))
    true = :code.add_patha(to_charlist(Path.join(dir, "jiffy/ebin")))

    refused = :tame.isolate(:jiffy, %{bind: :recompile})
    isolated = :tame.isolate(:jiffy)
    during = :jiffy.encode([1, 2])
    [%{ring: %{calls: calls}}] = :tame.info().jiffy.hosts
    true = calls > 0
    :ok = :tame.restore(:jiffy)
    later = :jiffy.encode([1, 2])
    File.rm_rf!(dir)
    {refused, isolated, during, later}
  end

  @doc "What isolation of a module comes to whose library ends its process on load, or on dlopen."
  def crash_on_load(folder, module, definition) do
    {:ok, _} = Application.ensure_all_started(:tame)
    library = Tame.AuditNatives.build!(folder, module, [definition])
    :tame.isolate(module, %{library: library})
  end

  @doc "A native resource and a message to self on a node that had its name before anything was isolated."
  def named do
    {:ok, _} = Tame.Latency.Distribution.join()
    start(:crypto, %{})
    state = :crypto.hash_update(:crypto.hash_init(:sha256), "abc")
    hash = :crypto.hash_final(state)
    start(:tame_echo, %{})
    echo = :tame_echo.echo({self(), state})
    Tame.Latency.Distribution.leave()
    {hash == :crypto.hash(:sha256, "abc"), echo == {self(), state}}
  end

  @doc "Pids, references and resources of before and after this node has got a name."
  def rename(options) do
    start(:tame_echo, options)
    start(:crypto, options)
    ref = make_ref()
    state = :crypto.hash_init(:sha256)
    before = {:tame_echo.echo({self(), ref}), self(), ref}
    {:ok, _} = Tame.Latency.Distribution.join()
    true = node() != :nonode@nohost
    {{pid, same_ref}, _, _} = before
    later = :tame_echo.echo({self(), ref, pid, same_ref})
    hash = :crypto.hash_final(:crypto.hash_update(state, "abc"))
    Tame.Latency.Distribution.leave()

    {pid == self() and same_ref == ref, later == {self(), ref, self(), ref},
     hash == :crypto.hash(:sha256, "abc")}
  end

  @doc "Makes and lets go of that number of native resources: about how many the host still has at the end."
  def resources(count) do
    start(:crypto, %{})
    for _ <- 1..count, do: :crypto.hash_init(:sha256)
    :erlang.garbage_collect()
    [%{rss_bytes: before}] = :tame.info().crypto.hosts
    for _ <- 1..count, do: :crypto.hash_init(:sha256)
    :erlang.garbage_collect()
    :crypto.hash(:sha256, "")
    [%{rss_bytes: later}] = :tame.info().crypto.hosts
    {before, later}
  end

  @doc """
  The reductions that a call of an isolated function takes, in the best of many rounds: one that has to wait for its
  reply takes a whole timeslice, which is not meant. On a busy machine all calls wait for some time: rounds go on until
  one is below that number, or ten seconds have passed.
  """
  def reductions(below) do
    start(:tame_echo_isolated, %{})
    reductions(below, nil, System.monotonic_time(:second) + 10)
  end

  # An atom is greater than any number.
  defp reductions(below, least, until) do
    least = min(least, reductions_of_calls(100))

    if least < below or System.monotonic_time(:second) > until,
      do: least,
      else: reductions(below, least, until)
  end

  defp reductions_of_calls(calls) do
    {:reductions, before} = Process.info(self(), :reductions)
    for _ <- 1..calls, do: :tame_echo_isolated.echo(0)
    {:reductions, later} = Process.info(self(), :reductions)
    (later - before) / calls
  end

  @doc "What a module telemetry, made here, is told of a host that is killed."
  def telemetry do
    Process.register(self(), :telemetry_test)

    forms =
      for form <- [
            "-module(telemetry).",
            "-export([execute/3]).",
            "execute(Event, Measurements, Metadata) ->
               telemetry_test ! {event, {Event, Measurements, Metadata}}, ok."
          ] do
        {:ok, tokens, _} = :erl_scan.string(String.to_charlist(form))
        {:ok, parsed} = :erl_parse.parse_form(tokens)
        parsed
      end

    {:ok, :telemetry, beam} = :compile.forms(forms)
    {:module, :telemetry} = :code.load_binary(:telemetry, ~c"telemetry.erl", beam)

    start(:jiffy, %{})
    kill_host(:jiffy)
    for _ <- 1..3, do: receive(do: ({:event, event} -> event))
  end

  @doc "The OS processes of a library's hosts and their guards."
  def os_pids(module) do
    for %{os_pid: os_pid} <- :tame.info()[module].hosts, do: os_pid
  end

  def start(module, options) do
    {:ok, _} = Application.ensure_all_started(:tame)
    :ok = :tame.isolate(module, options)
  end

  defp timed(fun) do
    {us, value} = :timer.tc(fun)
    {value, us / 1000}
  end

  defp other_host?(module, before) do
    Enum.all?(:tame.info()[module].hosts, &(&1.state == :up and &1.os_pid != before))
  end

  defp kill_host(module) do
    true =
      Tame.Await.until(fn ->
        Enum.any?(:tame.info()[module].hosts, &(&1.state == :up)) or
          :tame.info()[module].state == :failed
      end)

    for %{os_pid: os_pid, state: :up} <- :tame.info()[module].hosts,
        do: System.cmd("kill", ["-KILL", "#{os_pid}"])
  end
end
