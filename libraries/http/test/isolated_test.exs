defmodule Tame.HTTP.IsolatedTest do
  # The native half in an OS process of its own: sockets, TLS and protocols there, handlers here.
  use ExUnit.Case, async: true
  import Tame.HTTP.Test.Client, except: [start: 1, stop: 1]
  alias Tame.HTTP.Test.{Load, Peer}

  setup do
    %{peer: Peer.start_link()}
  end

  defp host(peer) do
    %{tame_http_nif: %{hosts: [%{os_pid: os_pid}]}} = Peer.call(peer, :tame, :info)
    os_pid
  end

  # A port that was free a moment ago.
  defp free_port do
    {:ok, socket} = :gen_tcp.listen(0, ip: {127, 0, 0, 1})
    {:ok, port} = :inet.port(socket)
    :ok = :gen_tcp.close(socket)
    port
  end

  defp status(port) do
    {output, _} = curl(["-o", "/dev/null", "-w", "%{http_code}", url(port)])
    output
  end

  test "both protocols, long bodies, and no thread of a server in the VM", %{peer: peer} do
    # Has no NIFs: the native half is another module's.
    assert {:error, {:no_nifs, _}} = Peer.call(peer, :tame, :isolate, [:tame_http])
    :ok = Peer.call(peer, :tame, :isolate, [:tame_http_nif])
    {server, port} = Peer.server(peer, %{handler: &Tame.HTTP.Test.Client.echo/1})
    assert Peer.call(peer, Peer, :threads) == 0
    assert File.read!("/proc/#{host(peer)}/maps") =~ "tame_http.so"
    body = :binary.copy("0123456789", 100_000)
    file = Path.join(System.tmp_dir!(), "tame_http_#{System.unique_integer([:positive])}")
    File.write!(file, body)

    for protocol <- ["--http1.1", "--http2-prior-knowledge"],
        do: assert({^body, 0} = curl([protocol, "--data-binary", "@#{file}", url(port)]))

    File.rm!(file)
    info = Peer.call(peer, :tame_http, :info, [server])
    assert {info.requests, info.answered, info.open_requests} == {2, 2, 0}
  end

  for run <- [:process, :acceptor] do
    test "its host is killed under load: the server starts anew, at its port: #{run}", %{
      peer: peer
    } do
      :ok = Peer.call(peer, :tame, :isolate, [:tame_http_nif])
      {server, port} = Peer.server(peer, %{port: free_port(), run: unquote(run)})
      load = Load.start(port, ["-m", "10"])
      answered = fn -> Peer.call(peer, :tame_http, :info, [server]).answered end
      eventually(fn -> answered.() > 100 end)
      before = host(peer)
      {_, 0} = System.cmd("kill", ["-KILL", "#{before}"])
      Load.stop(load)
      eventually(fn -> status(port) == "200" end)
      assert host(peer) != before
      assert Peer.call(peer, :tame_http, :port, [server]) == port
      :ok = Peer.call(peer, :tame_http, :stop, [server])
      assert status(port) == "000"
    end
  end

  test "its host is killed: nobody waits for what it would have said", %{peer: peer} do
    :ok = Peer.call(peer, :tame, :isolate, [:tame_http_nif])
    {_, _} = Peer.server(peer)
    {ended, gone, alive} = Peer.call(peer, Peer, :without_host, [host(peer)])
    assert {Enum.uniq(ended), gone, alive} == {[{:error, :closed}], true, false}
  end

  test "its host is killed while it has calls: they find a client that is gone", %{peer: peer} do
    :ok = Peer.call(peer, :tame, :isolate, [:tame_http_nif])
    {_, _} = Peer.server(peer)

    [part, whole, start, read, alive, watch] =
      Peer.call(peer, Peer, :killed_in_calls, [host(peer)])

    assert Enum.uniq([part, whole, start, read]) == [{:error, :closed}]
    assert {alive, watch} == {false, :gone}
  end

  test "a body is read in pieces of 16 MiB at most, and nothing of it is lost", %{peer: peer} do
    :ok = Peer.call(peer, :tame, :isolate, [:tame_http_nif])

    {_, port} =
      Peer.server(peer, %{handler: &Peer.sizes/1, body: :stream, body_limit: 200_000_000})

    file = Path.join(System.tmp_dir!(), "tame_http_#{System.unique_integer([:positive])}")
    File.write!(file, :binary.copy("0123456789", 10_000_000))
    {output, 0} = curl(["--data-binary", "@#{file}", url(port)])
    File.rm!(file)
    sizes = output |> String.split() |> Enum.map(&String.to_integer/1)
    assert Enum.sum(sizes) == 100_000_000
    assert Enum.max(sizes) in 16_777_216..20_000_000
  end

  test "isolated while a server runs: it moves there", %{peer: peer} do
    {server, port} = Peer.server(peer, %{port: free_port()})
    assert status(port) == "200"
    :ok = Peer.call(peer, :tame, :isolate, [:tame_http_nif])
    eventually(fn -> Peer.call(peer, Peer, :threads) == 0 and status(port) == "200" end)
    :ok = Peer.call(peer, :tame_http, :stop, [server])
  end
end
