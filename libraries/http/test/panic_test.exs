defmodule Tame.HTTP.PanicTest do
  # A panic in a request, by a build of the library that has a path which panics; and that no other build has it.
  use ExUnit.Case, async: true
  import Tame.HTTP.Test.Client
  alias Tame.HTTP.Test.{Frames, Peer}

  @moduletag :tmp_dir
  # Where it was not built before.

  @said "the path that panics"

  # A VM whose tame_http is that build.
  defp peer(folder) do
    {_, 0} = System.cmd("make", ["-s", "build/panics.so"])
    application = Path.join(folder, "tame_http")
    File.mkdir_p!(Path.join(application, "priv"))
    File.cp!("build/panics.so", Path.join(application, "priv/tame_http.so"))
    ebin = Path.join(application, "ebin")
    File.cp_r!(Application.app_dir(:tame_http, "ebin"), ebin)
    peer = Peer.start_link([String.to_charlist(ebin)])
    assert File.read!(Path.join(application, "priv/tame_http.so")) =~ @said
    peer
  end

  test "it is a request's own: 500, and the connection goes on", %{tmp_dir: folder} do
    peer = peer(folder)
    {server, port} = Peer.server(peer)
    socket = connect(port)

    for _ <- 1..100 do
      :ok = :gen_tcp.send(socket, "GET /panic HTTP/1.1\r\nhost: a\r\n\r\n")
      assert {500, _, ""} = answer(socket)
    end

    h2 = Frames.connect(port)
    :ok = :gen_tcp.send(h2, [panicking(1), Frames.get(3)])
    assert [1, 3] = Enum.sort(for _ <- 1..2, do: next_answer(h2))
    flags = ["--http2-prior-knowledge", "-o", "/dev/null", "-w", "%{http_code}"]
    assert {"500", 0} = curl(flags ++ [url(port, "/panic")])
    :ok = :gen_tcp.send(socket, "GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    assert {200, _, "hello"} = answer(socket)
    info = Peer.call(peer, :tame_http, :info, [server])
    assert %{requests: 104, failed: 102, answered: 2, open_requests: 0} = info
  end

  # GET /panic
  defp panicking(stream) do
    fields = [0x82, 0x86, 0x04, 6, "/panic", 0x41, 1, "a"]
    Frames.frame(:headers, 0x5, stream, fields)
  end

  # The stream of the next one; frames come one by one, which loses none that came with it.
  defp next_answer(socket) do
    {:ok, <<size::24, type, _, _::1, stream::31>>} = :gen_tcp.recv(socket, 9, 10_000)
    if size > 0, do: {:ok, _} = :gen_tcp.recv(socket, size, 10_000)
    if type == 1, do: stream, else: next_answer(socket)
  end

  test "the library that is built for use has no such path" do
    refute File.read!(Application.app_dir(:tame_http, "priv/tame_http.so")) =~ @said
    {_, port} = start(%{})
    assert {200, _, "hello"} = get(port, "/panic")
  end
end
