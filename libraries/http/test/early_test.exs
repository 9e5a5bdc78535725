defmodule Tame.HTTP.EarlyTest do
  # Answers that are given before the body has come: the client has them, though it still sends.
  use ExUnit.Case, async: true
  import Tame.HTTP.Test.Client
  alias Tame.HTTP.Test.Frames

  @end_stream 0x1
  @no_error 0

  defp too_long, do: start(body_limit: 1000)

  # Its handler reads nothing.
  defp unread, do: start(body: :stream, handler: fn _ -> {401, [], ""} end)

  # A POST that announces a body and sends none of it, and the frames until its answer.
  defp early(port) do
    socket = Frames.connect(port)
    head = [0x83, Enum.drop(Frames.fields(), 1), Frames.literal("content-length", "2000")]
    :ok = :gen_tcp.send(socket, Frames.frame(:headers, 0x4, 1, head))
    {socket, until(socket, &match?({:headers, _, 1, _}, &1))}
  end

  # All frames up to the one that is looked for, and those that came with it.
  defp until(socket, fun, bytes \\ "", seen \\ []) do
    {frame, rest} = Frames.next(socket, bytes)
    seen = [frame | seen]

    if rest == "" and Enum.any?(seen, fun),
      do: Enum.reverse(seen),
      else: until(socket, fun, rest, seen)
  end

  defp pong(socket) do
    :ok = :gen_tcp.send(socket, Frames.frame(:ping, 0, 0, <<1::64>>))
    until(socket, &match?({:ping, 1, _, _}, &1))
  end

  defp resets(frames), do: for({:rst_stream, _, 1, <<code::32>>} <- frames, do: code)

  for kind <- [:too_long, :unread] do
    test "HTTP/2: the stream is not reset while its client still sends: #{kind}" do
      {server, port} = unquote(kind)()
      {socket, frames} = early(port)
      assert {:headers, flags, 1, _} = List.keyfind(frames, :headers, 0)
      assert Bitwise.band(flags, @end_stream) == @end_stream
      :ok = :gen_tcp.send(socket, Frames.frame(:data, 0, 1, :binary.copy("a", 1000)))
      frames = frames ++ pong(socket)
      last = Frames.frame(:data, @end_stream, 1, :binary.copy("a", 1000))
      :ok = :gen_tcp.send(socket, last)
      assert resets(frames ++ pong(socket)) == []
      balanced(server)
    end

    test "HTTP/2: a client that never ends its body is told to stop, and its connection serves: #{kind}" do
      {server, port} = unquote(kind)()
      {socket, frames} = early(port)
      assert resets(frames) == []
      assert resets(until(socket, &match?({:rst_stream, _, 1, _}, &1))) == [@no_error]
      :ok = :gen_tcp.send(socket, Frames.get(3))
      until(socket, &match?({:headers, _, 3, _}, &1))
      balanced(server)
    end
  end

  test "HTTP/1.1: a client that sends all before it reads has its answer, and its connection goes on" do
    {server, port} = too_long()
    body = :binary.copy("a", 500_000)

    socket =
      send_raw(port, "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 500000\r\n\r\n" <> body)

    assert {413, _, ""} = answer(socket)
    :ok = :gen_tcp.send(socket, "GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    assert {200, _, "hello"} = answer(socket)
    balanced(server)
  end

  test "HTTP/1.1: a client that never ends its body is answered, and closed" do
    {server, port} = too_long()
    socket = send_raw(port, "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5000\r\n\r\nabc")
    assert {413, _, ""} = answer(socket)
    assert all(socket) == ""
    balanced(server)
  end

  test "HTTP/1.1: a client that was told to go on, and sends too much, has its answer" do
    {server, port} = start(body_limit: 100_000)

    head =
      "POST / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ntransfer-encoding: chunked\r\n\r\n"

    piece = ["2710\r\n", :binary.copy("x", 10_000), "\r\n"]

    for _ <- 1..20 do
      socket = send_raw(port, head)
      assert {100, _, ""} = answer(socket)
      for _ <- 1..40, do: :gen_tcp.send(socket, piece)
      assert {413, _, ""} = answer(socket)
      :gen_tcp.close(socket)
    end

    balanced(server)
  end

  test "HTTP/1.1: a client that does not wait to be told to go on has its answer" do
    {server, port} = too_long()
    head = "POST / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 500000\r\n\r\n"

    for _ <- 1..20 do
      socket = send_raw(port, head <> :binary.copy("a", 500_000))
      assert {413, _, ""} = answer(socket)
      :ok = :gen_tcp.send(socket, "GET / HTTP/1.1\r\nhost: a\r\n\r\n")
      assert {200, _, "hello"} = answer(socket)
    end

    balanced(server)
  end

  describe "an answer while a read waits" do
    # It gives up reading, and answers.
    defp impatient do
      handler = fn request ->
        {:error, :timeout} = :tame_http.read_body(request, %{timeout: 50})
        {200, [], "early"}
      end

      start(body: :stream, handler: handler)
    end

    test "HTTP/2: the stream ends" do
      {server, port} = impatient()
      socket = Frames.connect(port)
      :ok = :gen_tcp.send(socket, Frames.post(1))
      assert resets(until(socket, &match?({:rst_stream, _, 1, _}, &1))) == [@no_error]
      balanced(server)
    end

    test "HTTP/1.1: the connection ends" do
      {server, port} = impatient()
      socket = send_raw(port, "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\n")
      assert {200, _, "early"} = answer(socket)
      assert all(socket) == ""
      balanced(server)
    end
  end

  test "HTTP/2: a static route and CONNECT are answered, and the client may send on for a while" do
    {server, port} = start(static: %{"/s" => {200, [], "hello"}})
    connect = [Frames.literal(":method", "CONNECT"), 0x41, 1, "a"]

    for head <- [
          Frames.frame(:headers, 0x4, 1, [0x82, 0x86, 0x04, 2, "/s", 0x41, 1, "a"]),
          Frames.frame(:headers, 0x4, 1, connect)
        ] do
      socket = Frames.connect(port)
      :ok = :gen_tcp.send(socket, head)
      frames = until(socket, &match?({:headers, _, 1, _}, &1))
      :ok = :gen_tcp.send(socket, Frames.frame(:data, 0, 1, "abc"))
      assert resets(frames ++ pong(socket)) == []
    end

    balanced(server)
  end

  test "curl gets the status over HTTP/1.1 and HTTP/2, of short and of long bodies" do
    {server, port} = too_long()

    ways = [
      ["--http1.1"],
      ["--http1.1", "-H", "transfer-encoding: chunked"],
      ["--http2-prior-knowledge"]
    ]

    for way <- ways, size <- [1001, 100_000], _ <- 1..5 do
      body = :binary.copy("a", size)
      assert {"413", 0} = curl(way ++ ["-w", "%{http_code}", "-d", body, url(port)])
    end

    assert %{refused: 30} = balanced(server)
  end

  test "a server that stops while bodies are on their way ends at once" do
    {server, port} = unread()
    sockets = for _ <- 1..20, do: elem(early(port), 0)

    {microseconds, :ok} = :timer.tc(fn -> :tame_http.drain(server, 0) end)
    assert microseconds < 5_000_000
    for socket <- sockets, do: assert({:closed, _} = Frames.all(socket))
  end
end
