defmodule Tame.ProcessWalk do
  @moduledoc "A random walk over the states of the processes of isolation, in a throw-away emulator."

  import Tame.ProcessScenarios

  @kinds kinds()

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
      callers
      |> Task.await_many(600_000)
      |> Enum.reduce(&Map.merge(&1, &2, fn _, a, b -> a + b end))

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
end
