defmodule Tame.LimitsScenarios do
  @moduledoc """
  What becomes of a library that takes more than its limits allow, in a throw-away emulator. Each function isolates
  natives/bounds_nif.cpp under its limits and returns what was seen.
  """

  import Tame.ProcessScenarios, only: [outcome: 1]

  alias Tame.Test.{Bounds, OsProcess}

  @restarts %{intensity: :infinity, backoff_ms: {1, 1}}

  @doc "Starts tame and isolates the library under these limits."
  def start(limits, more \\ %{}) do
    :logger.set_primary_config(:level, :none)
    {:ok, _} = Application.ensure_all_started(:tame)
    Bounds.build!(:bounds)
    isolate(limits, more)
  end

  defp isolate(limits, more \\ %{}),
    do: :tame.isolate(:bounds, @restarts |> Map.merge(%{limits: limits}) |> Map.merge(more))

  @doc "What each of these calls came to, and the number of OS processes that the host has had by then."
  def calls(limits, calls, more \\ %{}) do
    :ok = start(limits, more)
    for {name, args} <- calls, do: {call(name, args), starts()}
  end

  defp call(name, args), do: outcome(fn -> apply(:bounds, name, args) end)

  # Of a host that is up, so that no restart is under way.
  defp starts do
    {:ok, _} = call(:where, [])
    [%{starts: starts}] = :tame.info().bounds.hosts
    starts
  end

  @doc "How long each of these calls took, in ms, and what it came to."
  def timed(limits, calls) do
    :ok = start(limits)

    for {name, args} <- calls do
      {us, outcome} = :timer.tc(fn -> call(name, args) end)
      {div(us, 1000), outcome}
    end
  end

  @doc "An argument of these bytes, larger than the library's memory: the call, and its memory beside it."
  def large_argument(limits, bytes) do
    :ok = start(limits)
    {call(:open_files, [:binary.copy("x", bytes), :close]), starts()}
  end

  @doc "The CPUs and the priority without limits; then with the first CPU alone, the last, and all by their number."
  def places do
    :ok = start(%{})
    {_, nice, cpus} = :bounds.where()
    :ok = :tame.restore(:bounds)

    under =
      for limits <- [
            %{cpus: 1, nice: nice + 3},
            %{cpus: [List.last(cpus)]},
            %{cpus: length(cpus)}
          ] do
        :ok = isolate(limits)
        {_, nice, cpus} = :bounds.where()
        :ok = :tame.restore(:bounds)
        {cpus, nice}
      end

    {cpus, nice, under}
  end

  @doc "isolate/2 under limits that cannot be had; then where the module's calls run, and what info/0 knows."
  def refused(limits, env \\ []) do
    for {name, value} <- env, do: System.put_env(name, value)
    refused = start(limits)
    for {name, _} <- env, do: System.delete_env(name)
    {refused, Integer.to_string(elem(:bounds.where(), 0)) == System.pid(), :tame.info()}
  end

  @doc "The guard is killed while the library is at work: what the call raises, and a host after it, under its limits."
  def guard_killed(limits) do
    :ok = start(limits)
    {host, _, _} = :bounds.where()
    spinning = Task.async(fn -> call(:spin, [:default]) end)
    true = Tame.Await.until(fn -> Tame.ProcessScenarios.in_use(:bounds) == 1 end)
    OsProcess.signal(OsProcess.parent(host), "KILL")
    raised = Task.await(spinning, 600_000)

    {:ok, {other, _, _}} = call(:where, [])
    gone = Tame.Await.until(fn -> OsProcess.gone?(host) end)
    {raised, gone, other != host, call(:must_take, [100, :abort])}
  end

  @doc "Callers in the host while another one reaches a limit."
  def beside(limits) do
    :ok = start(limits)
    spinning = Task.async(fn -> call(:spin, [:default]) end)
    true = Tame.Await.until(fn -> Tame.ProcessScenarios.in_use(:bounds) == 1 end)
    {call(:must_take, [100, :abort]), Task.await(spinning, 600_000)}
  end

  @doc "What info/0 says of the limits, and the one report of a host that has reached one."
  def reported(limits) do
    :ok = start(limits)
    parent = self()

    handler = fn %{msg: {:report, report}}, _ ->
      {format, args} = :tame_crash_report.format(report)
      send(parent, {:report, IO.iodata_to_binary(:io_lib.format(format, args))})
    end

    :logger.set_primary_config(:level, :error)
    :ok = :logger.remove_handler(:default)
    :ok = :logger.add_handler(:limits_test, Tame.LimitsScenarios.Handler, %{config: handler})
    raised = call(:must_take, [100, :abort])
    report = receive(do: ({:report, report} -> report), after: (20_000 -> :none))
    {:tame.info().bounds.limits, raised, report}
  end

  defmodule Handler do
    @moduledoc "Hands each report of the log to the function that is its configuration."
    def log(%{msg: {:report, %{event: {:tame, :host_crashed}}}} = event, %{config: function}),
      do: function.(event, nil)

    def log(_event, _config), do: :ok
  end

  @doc """
  That many callers at once, at the defaults, of a host that is up or that is killed just before: how their calls
  ended, counted.
  """
  def crowd(count, host) do
    :ok = start(%{})
    go = make_ref()
    if host == :killed, do: Tame.ProcessScenarios.kill_hosts(:bounds)

    callers =
      for _ <- 1..count do
        {caller, monitor} =
          spawn_monitor(fn ->
            receive do: (^go -> :ok)
            exit(how(call(:open_files, ["", :close])))
          end)

        send(caller, go)
        monitor
      end

    Enum.frequencies(
      for monitor <- callers, do: receive(do: ({:DOWN, ^monitor, _, _, end_} -> end_))
    )
  end

  defp how({:ok, _}), do: :ok
  defp how({:error, {:tame, {reason, _}}}), do: reason
  defp how({:error, {:tame, reason}}), do: reason

  @doc "Address space of this VM before and after that many crashes, in bytes, and that of one ring."
  def address_space(crashes) do
    :ok = start(%{}, %{backoff_ms: {0, 0}})
    # Its heap keeps the rings of its calls.
    crash = fn -> Task.await(Task.async(fn -> call(:crash, []) end)) end
    {:error, {:tame, {:crashed, _}}} = crash.()
    before = settled()
    for _ <- 1..crashes, do: crash.()
    [%{starts: starts}] = :tame.info().bounds.hosts
    {before, settled(), starts}
  end

  # The least of what it is for a while, because a ring is closed some time after its host has died.
  defp settled do
    {:ok, _} = Task.await(Task.async(fn -> call(:where, []) end))

    Enum.min(
      for _ <- 1..20 do
        Process.sleep(10)
        [_, kb] = Regex.run(~r/^VmSize:\s+(\d+)/m, File.read!("/proc/self/status"))
        String.to_integer(kb) * 1024
      end
    )
  end
end
