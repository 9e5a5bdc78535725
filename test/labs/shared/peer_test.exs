defmodule Tame.PeerTest do
  # What a peer leaves behind when a NIF there forks: nothing, however it ends.
  use ExUnit.Case, async: true

  alias Tame.{Await, AuditNatives, Peer}
  alias Tame.Test.{CLibrary, OsProcess}

  @module :audit_forking_nif
  @mark "TAME_PEER_TEST"

  setup do
    folder = CLibrary.tmp_dir!()
    AuditNatives.build!(folder, @module)
    on_exit(fn -> :code.del_path(String.to_charlist(folder)) end)
    mark = "#{System.pid()}_#{System.unique_integer([:positive])}"
    on_exit(fn -> for pid <- marked(mark), do: OsProcess.signal(pid, "KILL") end)
    %{folder: folder, mark: mark}
  end

  test "when it is stopped", %{mark: mark} do
    peer = forked(mark)
    assert length(marked(mark)) >= 3
    assert Peer.stop(peer) == :ok
    assert marked(mark) == []
  end

  test "when its owner dies", %{mark: mark} do
    {:ok, owner} = Agent.start(fn -> forked(mark) end, timeout: 60_000)
    assert length(marked(mark)) >= 3
    Process.exit(owner, :kill)
    assert Await.until(fn -> marked(mark) == [] end, 20_000)
  end

  test "when a NIF ends it, of which its status tells", %{folder: folder, mark: mark} do
    file = Path.join(folder, "status")
    peer = forked(mark, file)
    monitor = Process.monitor(peer.pid)
    :ok = Peer.cast(peer, @module, :crash, [0])
    assert_receive {:DOWN, ^monitor, _, _, _}, 20_000
    assert marked(mark) == []
    assert File.read!(file) == "139\n"
    Peer.stop(peer)
  end

  test "when our VM is killed", %{folder: folder, mark: mark} do
    code = """
    true = :code.add_pathz(~c"#{folder}")
    {:ok, peer} = Tame.Peer.start(Tame.Peer.code_path(), nil, [{~c"#{@mark}", ~c"#{mark}"}])
    :ok = Tame.Peer.call(peer, #{inspect(@module)}, :forking, [0])
    IO.puts("forked")
    Process.sleep(:infinity)
    """

    vm = OsProcess.start_vm(code, [])
    {:os_pid, os_pid} = Port.info(vm, :os_pid)
    assert_receive {^vm, {:data, {:eol, "forked"}}}, 60_000
    assert length(marked(mark)) >= 3
    OsProcess.signal(os_pid, "KILL")
    assert Await.until(fn -> marked(mark) == [] end, 20_000)
  end

  defp forked(mark, status_file \\ nil) do
    env = [{to_charlist(@mark), to_charlist(mark)}]
    {:ok, peer} = Peer.start(Peer.code_path(), status_file, env)
    :ok = Peer.call(peer, @module, :forking, [0])
    peer
  end

  # Those that a peer with this mark is, and started.
  defp marked(mark) do
    for path <- Path.wildcard("/proc/[0-9]*/environ"),
        {:ok, text} <- [File.read(path)],
        "#{@mark}=#{mark}" in String.split(text, <<0>>),
        do: path |> Path.dirname() |> Path.basename()
  end
end
