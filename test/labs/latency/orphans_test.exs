defmodule Tame.Latency.OrphansTest do
  # A whole VM of its own is killed here, and its epmd has a port of its own.
  use ExUnit.Case, async: true

  import Tame.Test.OsProcess

  # Opens every method that this machine has, echoes without end in all of them, and prints the
  # OS processes: the programs, the guard of epmd, epmd, and the VM itself.
  @echo_all ~S"""
  alias Tame.Latency.{Distribution, Methods, Program}
  main = self()

  modules =
    [Methods.Port, Methods.SocketUnix, Methods.SocketTCP, Methods.CNode, Methods.JavaNode]

  for module <- modules do
    spawn_link(fn ->
      case module.open() do
        {:ok, state} ->
          program = if is_struct(state), do: state, else: state |> Tuple.to_list() |> List.last()
          send(main, {:pid, module.describe().id, program.os_pid})
          payload = :binary.copy("x", 100_000)
          Stream.repeatedly(fn -> ^payload = module.echo(state, payload) end) |> Stream.run()

        {:skip, why} ->
          send(main, {:skip, module.describe().id, why})
      end
    end)
  end

  for _ <- modules do
    receive do
      {:pid, id, os_pid} -> IO.puts("pid #{id} #{os_pid}")
      {:skip, id, why} -> IO.puts("skipped: #{id}: #{why}")
    end
  end

  if Process.whereis(Distribution) do
    guard = :sys.get_state(Distribution).epmd.os_pid
    [epmd] = "/proc/#{guard}/task/#{guard}/children" |> File.read!() |> String.split()
    IO.puts("pid guard #{guard}")
    IO.puts("pid epmd #{epmd}")
  end

  # The echoes have no event to wait for: they go on until the VM is killed, and must have begun.
  Process.sleep(300)
  IO.puts("pid vm #{System.pid()}")
  IO.puts("ready")
  Process.sleep(:infinity)
  """

  test "nothing is left of a run whose VM got SIGKILL in the middle of it" do
    epmd_port = free_tcp_port()
    vm = start_vm(@echo_all, %{"ERL_EPMD_PORT" => "#{epmd_port}"})
    pids = pids(vm, %{})

    assert %{"vm" => vm_pid, "port" => _, "socket_unix" => _, "socket_tcp" => _} = pids
    for {_, os_pid} <- pids, do: refute(gone?(os_pid))

    signal(vm_pid, "KILL")

    deadline = deadline()
    for {_, os_pid} <- pids, do: await_gone(os_pid, deadline)

    assert :gen_tcp.connect({127, 0, 0, 1}, epmd_port, []) == {:error, :econnrefused}
  end

  @opens_and_closes ~S"""
  alias Tame.Latency.Methods.CNode

  case CNode.open() do
    {:ok, state} ->
      IO.puts("alive #{Node.alive?()}")
      :ok = CNode.close(state)
      IO.puts("alive #{Node.alive?()}")
      IO.puts("epmd #{inspect(:net_adm.names(~c"127.0.0.1"))}")

    other ->
      IO.inspect(other)
  end
  """

  test "close ends the epmd that open started" do
    vm = start_vm(@opens_and_closes, %{"ERL_EPMD_PORT" => "#{free_tcp_port()}"})

    case said(vm, []) do
      ["{:skip" <> _ = why] -> IO.puts("\nskipped: #{why}")
      lines -> assert lines == ["alive true", "alive false", "epmd {:error, :address}"]
    end
  end

  test "without an epmd to start the reason says so" do
    # The VM's own program folder is on its PATH, and epmd may lie there: we leave sh only.
    code = ~S"""
    System.put_env("PATH", "/nowhere")
    IO.inspect(Tame.Latency.Methods.CNode.open())
    """

    epmd_port = free_tcp_port()
    vm = start_vm(code, %{"ERL_EPMD_PORT" => "#{epmd_port}"})
    assert [line] = said(vm, [])
    assert line =~ "no epmd: none answers on 127.0.0.1:#{epmd_port}" or line =~ "is not built"
  end

  defp pids(vm, pids) do
    receive do
      {^vm, {:data, {:eol, "ready"}}} ->
        pids

      {^vm, {:data, {:eol, "pid " <> line}}} ->
        [name, os_pid] = String.split(line)
        pids(vm, Map.put(pids, name, os_pid))

      {^vm, {:data, {_, line}}} ->
        IO.puts("\n#{line}")
        pids(vm, pids)

      {^vm, {:exit_status, status}} ->
        flunk("the VM ended with exit status #{status}")
    after
      60_000 -> flunk("the VM was not ready within a minute; it said: #{inspect(pids)}")
    end
  end

  defp said(vm, lines) do
    receive do
      {^vm, {:data, {_, line}}} -> said(vm, [line | lines])
      {^vm, {:exit_status, _}} -> Enum.reverse(lines)
    after
      60_000 -> flunk("the VM did not end within a minute; it said: #{inspect(lines)}")
    end
  end
end
