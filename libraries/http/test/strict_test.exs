defmodule Tame.HTTP.StrictTest do
  # What smuggles a request past a proxy is refused, and nothing behind it is looked at.
  use ExUnit.Case, async: true
  import Tame.HTTP.Test.Client
  alias Tame.HTTP.Test.Frames

  @smuggled "GET /smuggled HTTP/1.1\r\nhost: a\r\n\r\n"

  for {name, request} <- [
        {"two content-lengths that differ",
         "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\na"},
        {"two content-lengths that agree",
         "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ncontent-length: 1\r\n\r\na"},
        {"a list of content-lengths",
         "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1, 1\r\n\r\na"},
        {"a content-length that is no number",
         "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: +1\r\n\r\na"},
        {"transfer-encoding, then content-length",
         "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\ncontent-length: 4\r\n\r\n0\r\n\r\n"},
        {"content-length, then transfer-encoding",
         "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"},
        {"transfer-encoding other than chunked",
         "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: xchunked\r\n\r\n0\r\n\r\n"},
        {"transfer-encoding in HTTP/1.0",
         "POST / HTTP/1.0\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"},
        {"space before the colon", "POST / HTTP/1.1\r\nhost: a\r\ncontent-length : 1\r\n\r\na"},
        {"a folded line", "GET / HTTP/1.1\r\nhost: a\r\nx: y\r\n z\r\n\r\n"},
        {"bare LF behind the request line", "GET / HTTP/1.1\nhost: a\r\n\r\n"},
        {"bare LF behind a header", "GET / HTTP/1.1\r\nhost: a\nx: y\r\n\r\n"},
        {"bare LF at the end of the head", "GET / HTTP/1.1\r\nhost: a\r\n\n"},
        {"bare CR in a header", "GET / HTTP/1.1\r\nhost: a\rb\r\n\r\n"},
        {"NUL in a header", "GET / HTTP/1.1\r\nhost: a\0b\r\n\r\n"},
        {"a version that is none", "GET / HTTP/9.9\r\nhost: a\r\n\r\n"},
        {"more headers than 128", "GET / HTTP/1.1\r\n#{String.duplicate("a: b\r\n", 200)}\r\n"},
        {"a head without end", "GET / HTTP/1.1\r\na: #{String.duplicate("a", 200_000)}\r\n\r\n"}
      ] do
    test "#{name}: refused, and the connection ends" do
      test = self()
      handler = fn r -> send(test, {:request, r.path}) && {200, [], "hello"} end
      {server, port} = start(handler: handler)

      output = all(send_raw(port, unquote(request) <> @smuggled))
      assert output =~ ~r"^HTTP/1.[01] 4\d\d "
      assert length(String.split(output, "HTTP/1.")) == 2
      refute_received {:request, "/smuggled"}
      balanced(server)
    end
  end

  test "a chunk size that is wrong ends the connection, whatever has been read" do
    {server, port} = start(%{})
    head = "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n"

    for chunks <- [
          "1\na\r\n0\r\n\r\n",
          "0x1\r\na\r\n0\r\n\r\n",
          "\r\n",
          "1\r\nab\r\n0\r\n\r\n",
          "ffffffffffffffffff\r\n"
        ] do
      output = all(send_raw(port, head <> chunks <> @smuggled))
      refute output =~ "200"
    end

    balanced(server)
  end

  test "either protocol, by its first bytes, in whatever pieces they come" do
    {server, port} = start(header_timeout_ms: 60_000)

    [preface, settings, get] = [
      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
      <<0::24, 4, 0, 0::32>>,
      Frames.get(1)
    ]

    h2 = IO.iodata_to_binary([preface, settings, get])
    h1 = "GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"

    for cut <- [1, 2, 3, 14, 15, 23, 24, 25, 30, 33, 34, :each] do
      for {bytes, expected} <- [
            {h2, "hello"},
            {h1, "hello"},
            {"PRI" <> h1, "hello"},
            {"PRI * HTTP/2.0\r\n\r\nX", " 400 "}
          ] do
        socket = connect(port)
        :ok = :inet.setopts(socket, nodelay: true)

        for piece <- pieces(bytes, cut) do
          :ok = :gen_tcp.send(socket, piece)
          Process.sleep(1)
        end

        eventually(fn ->
          {:ok, data} = :gen_tcp.recv(socket, 0, 5000)
          data =~ expected
        end)

        :gen_tcp.close(socket)
      end
    end

    # One that ends before it is known.
    for n <- [0, 1, 23], do: :gen_tcp.close(send_raw(port, binary_part(preface, 0, n)))
    eventually(fn -> :tame_http.info(server).connections == 0 end)
    balanced(server)
  end

  test "a server that ends does not wait for a connection whose protocol is not known" do
    {server, port} = start(%{})

    sockets =
      for n <- [0, 1, 23],
          do: send_raw(port, binary_part("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 0, n))

    eventually(fn -> :tame_http.info(server).connections == 3 end)
    before = System.monotonic_time(:millisecond)
    :ok = :tame_http.drain(server, 20_000)
    assert System.monotonic_time(:millisecond) - before < 10_000
    for socket <- sockets, do: assert(all(socket) == "")
  end

  defp pieces(bytes, :each), do: for(<<byte <- bytes>>, do: <<byte>>)

  defp pieces(bytes, cut) do
    cut = min(cut, byte_size(bytes) - 1)
    <<first::binary-size(cut), rest::binary>> = bytes
    [first, rest]
  end

  test "no atom is made of what clients send" do
    {_, port} = start(%{})

    for n <- 1..100 do
      words = for part <- ~w(method path query host name value), do: "tame-#{part}-#{n}"
      [method, path, query, host, name, value] = words
      head = "#{method} /#{path}?#{query} HTTP/1.1\r\nhost: #{host}\r\n#{name}: #{value}\r\n\r\n"
      assert {200, _, "hello"} = answer(send_raw(port, head))

      # Not by the number of atoms: other tests load modules meanwhile.
      for word <- words,
          text <- [word, "/" <> word],
          do: assert_raise(ArgumentError, fn -> String.to_existing_atom(text) end)
    end
  end

  test "random bytes: the server lives, and counts right" do
    {server, port} = start(header_timeout_ms: 10_000)

    seeds = [
      "",
      "GET / HTTP/1.1\r\nhost: a\r\n",
      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
      "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n"
    ]

    for n <- 1..2000 do
      socket = send_raw(port, [Enum.at(seeds, rem(n, 4)), :rand.bytes(:rand.uniform(200))])
      :gen_tcp.close(socket)
    end

    assert {200, _, "hello"} = get(port)
    eventually(fn -> :tame_http.info(server).connections <= 1 end)
    balanced(server)
  end
end
