defmodule Tame.Soak.Trouble do
  @moduledoc """
  What goes wrong: hosts crash and are stopped, processes of ours are killed. Each kind in its own time, as
  a process; what was done is counted.
  """

  @crash_ms 1000
  @stop_ms 10_000
  @kill_ms 7000

  def start do
    counts = :counters.new(3, [])

    pids =
      for {every_ms, index, what} <- [
            {@crash_ms, 1, &crash/0},
            {@stop_ms, 2, &stop_one/0},
            {@kill_ms, 3, &kill_ours/0}
          ] do
        spawn(fn -> every(every_ms, counts, index, what) end)
      end

    %{pids: pids, counts: counts}
  end

  def stop(%{pids: pids}) do
    for pid <- pids, do: Process.exit(pid, :kill)
    # Hosts that were stopped may go on, as an operator would have it in the end.
    for {os_pid, _} <- hosts(), do: signal("CONT", os_pid)
    :ok
  end

  def counts(%{counts: counts}) do
    [
      crashes: :counters.get(counts, 1),
      stops: :counters.get(counts, 2),
      kills: :counters.get(counts, 3)
    ]
  end

  defp every(ms, counts, index, what) do
    Process.sleep(ms)
    if bounded(what) == :done, do: :counters.add(counts, index, 1)
    every(ms, counts, index, what)
  end

  # tame:info/0 may have nobody to ask just now.
  defp bounded(what) do
    what.()
  catch
    _, _ -> :not_done
  end

  defp crash do
    # Only where it is isolated: it may be on the code path of this VM all the same.
    if :rand.uniform(4) == 1 and is_map_key(:tame.info(), :jiffy) do
      # Divides by zero in its own code. By apply, because a compiler that sees the name loads the module.
      json = "[" <> Enum.map_join(1..20_000, ",", &Integer.to_string/1) <> "]"
      _ = catch_all(fn -> apply(:jiffy, :decode, [json, [bytes_per_iter: 200]]) end)
      :done
    else
      one_of(hosts(), fn {os_pid, _} -> signal(Enum.random(~w(SEGV FPE ABRT KILL)), os_pid) end)
    end
  end

  defp stop_one, do: one_of(hosts(), fn {os_pid, _} -> signal("STOP", os_pid) end)

  defp kill_ours do
    one_of(Tame.Soak.Gauges.ours() -- [Process.whereis(:tame_sup)], fn pid ->
      Process.exit(pid, Enum.random([:kill, :kill, :kill, :soak]))
    end)
  end

  # {OS process, library} of those that run.
  def hosts do
    for {module, %{hosts: hosts}} <- :tame.info(),
        %{os_pid: os_pid} when is_integer(os_pid) and os_pid > 1 <- hosts,
        do: {os_pid, module}
  end

  defp one_of([], _), do: :not_done

  defp one_of(many, act) do
    act.(Enum.random(many))
    :done
  end

  defp signal(name, os_pid) do
    System.cmd("/bin/sh", ["-c", "kill -#{name} #{os_pid}"], stderr_to_stdout: true)
  end

  defp catch_all(fun) do
    fun.()
  catch
    _, _ -> :ok
  end
end
