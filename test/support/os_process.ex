defmodule Tame.Test.OsProcess do
  @moduledoc false
  # Looking at OS processes, by /proc.

  import ExUnit.Assertions

  @gone_ms 30_000

  # Ended but not yet collected by its parent counts as gone: in a container nobody may.
  def gone?(os_pid), do: thread_state("/proc/#{os_pid}") in [nil, "Z", "X"]

  def await_gone(os_pid, deadline \\ deadline()) do
    await("OS process #{os_pid} is still there", deadline, fn -> gone?(os_pid) end)
  end

  # Stops a process, and returns when none of its threads runs any more.
  def stop(os_pid) do
    signal(os_pid, "STOP")

    await("OS process #{os_pid} does not stop", deadline(), fn ->
      Enum.all?(Path.wildcard("/proc/#{os_pid}/task/*"), &(thread_state(&1) == "T"))
    end)
  end

  # The letter after the name, which stands in brackets; nil when there is no such thread.
  defp thread_state(folder) do
    case File.read(Path.join(folder, "stat")) do
      {:ok, stat} -> stat |> String.split(") ") |> List.last() |> String.first()
      {:error, _} -> nil
    end
  end

  defp await(otherwise, deadline, done?) do
    left_ms = deadline - System.monotonic_time(:millisecond)
    if not Tame.Await.until(done?, left_ms), do: flunk(otherwise), else: :ok
  end

  def deadline, do: System.monotonic_time(:millisecond) + @gone_ms

  def parent(os_pid) do
    [_, ppid] = Regex.run(~r/^PPid:\s+(\d+)$/m, File.read!("/proc/#{os_pid}/status"))
    ppid
  end

  # The OS processes below one.
  def below(os_pid) do
    children =
      for path <- Path.wildcard("/proc/#{os_pid}/task/*/children"),
          {:ok, text} <- [File.read(path)],
          pid <- String.split(text),
          do: pid

    children ++ Enum.flat_map(children, &below/1)
  end

  def signal(os_pid, name) do
    {"", 0} = System.cmd("/bin/sh", ["-c", "kill -#{name} #{os_pid}"], stderr_to_stdout: true)
    :ok
  end

  # A TCP port of the loopback interface on which nobody listens.
  def free_tcp_port do
    {:ok, socket} = :gen_tcp.listen(0, ip: {127, 0, 0, 1})
    {:ok, port} = :inet.port(socket)
    :gen_tcp.close(socket)
    port
  end

  # Another VM with our code, as a port that speaks lines. It ends with its standard input.
  def start_vm(code, env) do
    ours = for module <- [:tame, Tame.Latency, __MODULE__], do: Path.dirname(:code.which(module))

    Port.open({:spawn_executable, System.find_executable("elixir")}, [
      :binary,
      :exit_status,
      :stderr_to_stdout,
      line: 10_000,
      args: Enum.flat_map(ours, &["-pa", &1]) ++ ["-e", code],
      env: for({name, value} <- env, do: {String.to_charlist(name), String.to_charlist(value)})
    ])
  end
end
