defmodule Tame.HTTP.LifeTest do
  # What ends, is killed, reloaded or purged under load. Each in a VM of its own.
  use ExUnit.Case, async: true
  import Tame.HTTP.Test.Client, except: [start: 1, stop: 1]
  alias Tame.HTTP.Test.{Load, Peer}

  @modules [:tame_http_nif, :tame_http_acceptor, :tame_http_answer, :tame_http_server, :tame_http]

  setup context do
    if context[:no_peer], do: :ok, else: under_load(context)
  end

  defp under_load(context) do
    peer = Peer.start_link()
    {server, port} = Peer.server(peer, context[:options] || %{})
    load = Load.start(port, context[:load] || ["-m", "10"])
    answered = fn -> Peer.call(peer, :tame_http, :info, [server]).answered end
    eventually(fn -> answered.() > 100 end)
    on_exit(fn -> Load.stop(load) end)
    %{peer: peer, server: server, port: port, answered: answered}
  end

  defp goes_on(%{port: port, answered: answered}) do
    before = answered.()
    eventually(fn -> answered.() > before + 100 end)
    assert {200, _, "hello"} = get(port)
  end

  defp curl_status(port) do
    case curl(["-w", "%{http_code}", url(port)]) do
      {output, 0} ->
        {output |> String.slice(-3, 3) |> String.to_integer(), String.slice(output, 0..-4)}

      {_, _} ->
        nil
    end
  end

  for protocol <- [["-m", "10"], ["--h1"]] do
    @tag load: protocol
    test "every module is deleted and purged, again and again: #{protocol}", context do
      for _ <- 1..10, module <- @modules do
        Peer.call(context.peer, :code, :purge, [module])
        Peer.call(context.peer, :code, :delete, [module])
        Peer.call(context.peer, :code, :purge, [module])
      end

      goes_on(context)
    end
  end

  test "every module is loaded again, with its native half", context do
    for _ <- 1..10, module <- @modules do
      Peer.call(context.peer, :code, :purge, [module])
      assert {:module, ^module} = Peer.call(context.peer, :code, :load_file, [module])
    end

    goes_on(context)
    assert [_] = Peer.call(context.peer, Peer, :maps, ["tame_http.so"])
  end

  @tag options: %{acceptors: 3}
  test "acceptors are killed: requests are answered, and others take what comes", context do
    for _ <- 1..20 do
      Peer.call(context.peer, Peer, :kill_acceptor, [context.server])
      before = context.answered.()
      eventually(fn -> context.answered.() > before end)
    end

    goes_on(context)
  end

  test "the owner is killed: the server starts anew", context do
    Peer.call(context.peer, Peer, :kill_child, [context.server, :server])

    eventually(fn ->
      port = Peer.call(context.peer, Peer, :port_if_alive, [context.server])
      is_integer(port) and port != context.port and {200, "hello"} == curl_status(port)
    end)

    # That of the old one.
    eventually(fn -> match?({:error, _}, :gen_tcp.connect({127, 0, 0, 1}, context.port, [])) end)
    eventually(fn -> Peer.call(context.peer, Peer, :threads, []) == 1 end)
  end

  test "its supervisor is killed: sockets and threads end", context do
    Peer.call(context.peer, Process, :exit, [context.server, :kill])
    eventually(fn -> match?({:error, _}, :gen_tcp.connect({127, 0, 0, 1}, context.port, [])) end)
    eventually(fn -> Peer.call(context.peer, Peer, :threads, []) == 0 end)
    {_, port} = Peer.server(context.peer)
    assert {200, _, "hello"} = get(port)
  end

  test "stopped and started under load, again and again", context do
    for _ <- 1..20 do
      {server, port} = Peer.server(context.peer, %{io_threads: 2})
      load = Load.start(port)
      eventually(fn -> Peer.call(context.peer, :tame_http, :info, [server]).answered > 10 end)
      assert :ok = Peer.call(context.peer, :tame_http, :drain, [server, 0])
      Load.stop(load)
    end

    goes_on(context)
    eventually(fn -> Peer.call(context.peer, Peer, :threads, []) == 1 end)
  end

  # A server that a supervisor of somebody's has, and a request of it that does not end.
  defp supervised(options) do
    peer = Peer.start_link()
    port = Peer.call(peer, Peer, :supervised, [options])
    send_raw(port, "GET /held HTTP/1.1\r\nhost: a\r\n\r\n")
    held = eventually(fn -> Peer.call(peer, Process, :whereis, [:held]) end)
    {peer, port, held}
  end

  @tag :no_peer
  test "the application stops: so do servers that others supervise, and the processes of their requests" do
    {peer, port, held} = supervised(%{shutdown_ms: 200})
    :ok = Peer.call(peer, Application, :stop, [:tame_http])
    eventually(fn -> not Peer.call(peer, Process, :alive?, [held]) end)
    eventually(fn -> match?({:error, _}, :gen_tcp.connect({127, 0, 0, 1}, port, [])) end)
    eventually(fn -> Peer.call(peer, Peer, :threads, []) == 0 end)
  end

  @tag :no_peer
  test "the application ends and begins again: servers that others supervise begin anew" do
    port = free_port()
    {peer, ^port, held} = supervised(%{shutdown_ms: 200, port: port, io_threads: 2})
    :ok = Peer.call(peer, Peer, :start_again, [])
    eventually(fn -> Peer.call(peer, Peer, :port_if_alive, [:web]) == port end)
    assert {200, _, "hello"} = get(port)
    eventually(fn -> not Peer.call(peer, Process, :alive?, [held]) end)
    eventually(fn -> Peer.call(peer, Peer, :threads, []) == 2 end)
  end

  @tag :no_peer
  test "a server that a supervisor of yours has is killed: one restart, though its port is not free at once" do
    port = free_port()
    child = :tame_http.child_spec(%{ip: {127, 0, 0, 1}, port: port, handler: &hello/1})
    {:ok, supervisor} = Supervisor.start_link([child], strategy: :one_for_one, max_restarts: 1)
    [{_, server, _, _}] = Supervisor.which_children(supervisor)
    {_, owner, _, _} = List.keyfind(Supervisor.which_children(server), :server, 0)
    # It does not see that it has to end, as on a busy machine.
    true = :erlang.suspend_process(owner)
    Process.exit(server, :kill)
    eventually(fn -> starts(supervisor) end)
    true = :erlang.resume_process(owner)
    [{_, next, _, _}] = Supervisor.which_children(supervisor)
    assert next != server
    assert {200, _, "hello"} = get(port)
    :ok = Supervisor.stop(supervisor)
  end

  defp starts(supervisor) do
    {:current_stacktrace, stack} = Process.info(supervisor, :current_stacktrace)
    Enum.any?(stack, &match?({:tame_http, :start_link, _, _}, &1))
  end

  defp free_port do
    {:ok, socket} = :gen_tcp.listen(0, ip: {127, 0, 0, 1})
    {:ok, port} = :inet.port(socket)
    :gen_tcp.close(socket)
    port
  end

  @tag :no_peer
  @tag :tmp_dir
  test "another build of the native half is refused while a server runs, and taken then", %{
    tmp_dir: folder
  } do
    # As releases have them. Another path is another mapping; one path is one for as long as the VM lives.
    [old, new] =
      for version <- ["1", "2"] do
        app = Path.join([folder, version, "tame_http"])
        File.mkdir_p!(Path.join(app, "priv"))
        File.cp_r!(Application.app_dir(:tame_http, "ebin"), Path.join(app, "ebin"))
        ours = Application.app_dir(:tame_http, "priv/tame_http.so")
        File.cp!(ours, Path.join(app, "priv/tame_http.so"))
        to_charlist(Path.join(app, "ebin"))
      end

    peer = Peer.start_link([old])
    {server, port} = Peer.server(peer)
    assert {200, _, "hello"} = get(port)
    assert [map] = Peer.call(peer, Peer, :maps, ["tame_http.so"])
    assert map =~ Path.join(folder, "1")
    true = Peer.call(peer, :code, :add_patha, [new])
    load = fn -> Peer.call(peer, :code, :load_file, [:tame_http_nif]) end
    assert {:error, :on_load_failure} = load.()
    assert {200, _, "hello"} = get(port)
    :ok = Peer.call(peer, :tame_http, :stop, [server])
    eventually(fn -> Peer.call(peer, Peer, :threads, []) == 0 end)
    Peer.call(peer, :code, :purge, [:tame_http_nif])
    assert {:module, :tame_http_nif} = load.()
    {_, port} = Peer.server(peer)
    assert {200, _, "hello"} = get(port)
    # The old one stays.
    assert length(Peer.call(peer, Peer, :maps, ["tame_http.so"])) == 2
  end

  for {how, status} <- [{"halt(0)", 0}, {"halt(3)", 3}, {"init:stop()", 0}] do
    @tag :no_peer
    test "#{how} under load: the exit status is #{status}" do
      for _ <- 1..3 do
        {output, status} = Peer.run_and(unquote(how))
        assert {output, status} == {"", unquote(status)}
      end
    end
  end
end
