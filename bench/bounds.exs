# What isolation leaves in the VM, and what waiting costs it: callers beyond a host's slots, and hosts that die.
#
#   cd labs && mix run ../bench/bounds.exs           both parts
#   cd labs && mix run ../bench/bounds.exs crashes   one of them
#
#   waiting   10,000 callers at once of a host that is stopped: memory for each while they wait, and how their calls end
#   crashes   3000 crashes of a host, one after the other: address space, memory, mappings, descriptors, processes, atoms

Code.require_file("bench.ex", __DIR__)

{:module, _, there, _} =
  defmodule Bench.Bounds.There do
    # Runs in a VM of its own.

    def start(options) do
      :logger.set_primary_config(:level, :none)
      {:ok, _} = Application.ensure_all_started(:tame)
      :ok = :tame.isolate(:tame_crash, options)
      host()
    end

    defp host, do: hd(:tame.info().tame_crash.hosts)

    # With a host that asks for no answer while it is stopped; all else as by default.
    def waiting(count, bytes) do
      %{os_pid: os_pid} = start(%{answer_ms: :infinity})
      argument = :binary.copy("x", bytes)
      go = make_ref()

      callers =
        for _ <- 1..count do
          spawn_monitor(fn ->
            receive do: (^go -> :ok)
            exit(call(fn -> :tame_crash.echo(argument) end))
          end)
        end

      _ = :tame_crash.echo(argument)
      signal(os_pid, "STOP")
      before = memory()
      for {caller, _} <- callers, do: send(caller, go)
      settle(callers, go)
      waiting = memory()
      signal(os_pid, "CONT")
      ends = for {_, monitor} <- callers, do: receive(do: ({:DOWN, ^monitor, _, _, how} -> how))

      %{
        ends: Enum.frequencies(ends),
        anon: div(waiting["RssAnon"] - before["RssAnon"], count),
        shared: div(waiting["RssShmem"] - before["RssShmem"], count)
      }
    end

    # Each has ended, or waits with its signal taken.
    defp settle(callers, go) do
      settled? =
        Enum.all?(callers, fn {caller, _} ->
          case Process.info(caller, [:status, :messages]) do
            nil -> true
            [status: status, messages: messages] -> status == :waiting and go not in messages
          end
        end)

      if not settled?, do: Process.sleep(20) && settle(callers, go)
    end

    defp call(fun) do
      _ = fun.()
      :answer
    catch
      :error, {:tame, reason} -> reason
    end

    defp signal(os_pid, name), do: {"", 0} = System.cmd("kill", ["-#{name}", "#{os_pid}"])

    # In bytes, by name.
    defp memory do
      text = File.read!("/proc/self/status")

      for [_, name, kb] <- Regex.scan(~r/^(\w+):\s+(\d+) kB$/m, text),
          into: %{},
          do: {name, String.to_integer(kb) * 1024}
    end

    def crashes(looks) do
      start(%{intensity: :infinity, backoff_ms: {0, 0}})
      Enum.map_reduce(looks, 0, fn look, done -> {look(crash(look, done)), look} end) |> elem(0)
    end

    # In a process of its own, whose heap goes with the rings that it has called over.
    defp crash(look, done) do
      for _ <- (done + 1)..look//1 do
        {_, monitor} = spawn_monitor(fn -> exit(call(fn -> :tame_crash.crash() end)) end)
        {:crashed, _} = receive(do: ({:DOWN, ^monitor, _, _, how} -> how))
      end

      look
    end

    defp look(crashes) do
      {_, monitor} = spawn_monitor(fn -> :tame_crash.echo("") end)
      receive(do: ({:DOWN, ^monitor, _, _, :normal} -> :ok))
      Process.sleep(200)
      :erlang.garbage_collect()
      %{"VmSize" => size, "VmRSS" => rss} = memory()

      [
        crashes,
        div(size, 1_048_576),
        div(rss, 1_048_576),
        "/proc/self/maps" |> File.read!() |> String.split("\n") |> length(),
        length(File.ls!("/proc/self/fd")),
        :erlang.system_info(:process_count),
        :erlang.system_info(:port_count),
        :erlang.system_info(:atom_count)
      ]
    end
  end

:ok = :tame_labs_native.build()

in_peer = fn function, arguments ->
  Bench.in_peer([{Bench.Bounds.There, there}], fn peer ->
    :peer.call(peer, Bench.Bounds.There, function, arguments, 600_000)
  end)
end

table = fn columns, rows ->
  Bench.table(columns, for(row <- rows, do: Enum.map(row, &to_string/1)))
end

known = ~w(waiting crashes)
parts = if System.argv() == [], do: known, else: System.argv()
Bench.known!(parts, known)

if "waiting" in parts do
  IO.puts("== 10,000 callers of a host that is stopped: bytes for each\n")

  rows =
    for bytes <- [0, 1024, 8192, 65_536, 120_000] do
      %{ends: ends, anon: anon, shared: shared} = in_peer.(:waiting, [10_000, bytes])
      [bytes, anon, shared, Map.get(ends, :answer, 0), Map.get(ends, :busy, 0)]
    end

  table.(["argument", "of the VM", "of the area", "answers", "busy"], rows)
end

if "crashes" in parts do
  IO.puts("\n== crashes of a host: MiB and numbers, in the VM\n")
  columns = ~w(crashes size resident mappings descriptors processes ports atoms)
  table.(columns, in_peer.(:crashes, [[0, 1, 10, 100, 1000, 2000, 3000]]))
end
