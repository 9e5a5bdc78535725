defmodule Tame.HTTP.HostileTest do
  # Clients that mean harm: the server lives, others are answered meanwhile, every request is counted once, and what it
  # took is given back. bench/hardness.exs has the figures.
  use ExUnit.Case

  import Tame.HTTP.Test.Client

  alias Tame.HTTP.Test.{Frames, Witness}

  # The other client keeps to them, however busy the machine is; a test of one makes it shorter.
  @bounds %{
    header_timeout_ms: 10_000,
    idle_timeout_ms: 10_000,
    request_timeout_ms: 20_000,
    max_connections: 2000
  }

  # RFC 9113, section 7
  @protocol_error 1
  @flow_control_error 3
  @enhance_your_calm 11

  # A wide margin: the machine may be busy. An attack that holds the I/O thread for good is over this.
  @answered_ms 10_000

  defp attacked(options \\ %{}, fun) do
    {server, port} = start(Map.merge(@bounds, options))
    {value, times} = Witness.during(port, fn -> fun.(port) end)
    assert Witness.p99(times) < @answered_ms
    socket = send_raw(port, "GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
    assert all(socket) =~ "hello"
    eventually(fn -> :tame_http.info(server).connections == 0 end)
    balanced(server)
    value
  end

  defp closes_within(sockets, ms) do
    until = System.monotonic_time(:millisecond) + ms

    for socket <- sockets do
      left = max(1, until - System.monotonic_time(:millisecond))
      assert {:closed, _} = Frames.all(socket, left)
    end
  end

  describe "HTTP/1.1" do
    test "slowloris: headers that come a byte at a time are waited for no longer than header_timeout_ms" do
      attacked(%{header_timeout_ms: 2000}, fn port ->
        sockets = for _ <- 1..200, do: send_raw(port, "GET / HTTP/1.1\r\nhost: a\r\nx: ")

        for _ <- 1..30 do
          for socket <- sockets, do: :gen_tcp.send(socket, "y")
          Process.sleep(100)
        end

        closes_within(sockets, 10_000)
      end)
    end

    test "a body that comes a byte at a time has request_timeout_ms in all" do
      attacked(%{request_timeout_ms: 3000}, fn port ->
        sockets =
          for _ <- 1..100,
              do: send_raw(port, "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 100000\r\n\r\n")

        for _ <- 1..45 do
          for socket <- sockets, do: :gen_tcp.send(socket, "y")
          Process.sleep(100)
        end

        closes_within(sockets, 15_000)
      end)
    end

    test "headers that are too large, too many, or a path without end are refused" do
      attacked(fn port ->
        for {head, expected} <- [
              {["x: ", String.duplicate("y", 100_000)], [431]},
              {for(n <- 1..500, do: "x#{n}: y\r\n"), [431]}
            ] do
          answer = port |> send_raw(["GET / HTTP/1.1\r\nhost: a\r\n", head, "\r\n\r\n"]) |> all()
          assert status(answer) in expected
        end

        path = String.duplicate("y", 1_000_000)
        answer = port |> send_raw(["GET /", path, " HTTP/1.1\r\nhost: a\r\n\r\n"]) |> all()
        assert status(answer) in [414, 431]
      end)
    end

    # Request smuggling lives on what two servers read differently.
    for {name, head} <- [
          {"two lengths that differ", "content-length: 5\r\ncontent-length: 6\r\n\r\nhello"},
          {"two lengths in one", "content-length: 5, 6\r\n\r\nhello"},
          {"a length with a sign", "content-length: +5\r\n\r\nhello"},
          {"a length with a space", "content-length: 5 5\r\n\r\nhello"},
          {"a length that is no number", "content-length: 0x5\r\n\r\nhello"},
          {"another coding after chunked",
           "transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n"},
          {"an unknown coding", "transfer-encoding: xchunked\r\n\r\n0\r\n\r\n"},
          {"a space before the colon", "transfer-encoding : chunked\r\n\r\n0\r\n\r\n"},
          {"a folded line", "x: y\r\n z\r\n\r\n"},
          {"a chunk's length with a sign",
           "transfer-encoding: chunked\r\n\r\n+5\r\nhello\r\n0\r\n\r\n"},
          {"a chunk's length beyond 64 bits",
           "transfer-encoding: chunked\r\n\r\n10000000000000005\r\nhello\r\n0\r\n\r\n"},
          {"a bare LF behind a chunk's extension",
           "transfer-encoding: chunked\r\n\r\n5;a=b\nhello\r\n0\r\n\r\n"},
          {"a chunk that does not end where it says",
           "transfer-encoding: chunked\r\n\r\n5\r\nhelloX\r\n0\r\n\r\n"},
          {"a null byte in a value", "x: a\0b\r\n\r\n"},
          {"a carriage return in a value", "x: a\rb\r\n\r\n"}
        ] do
      test "#{name} is refused, and nothing behind it is a request" do
        head = unquote(head)

        attacked(fn port ->
          smuggled = "GET /smuggled HTTP/1.1\r\nhost: a\r\n\r\n"
          answers = port |> send_raw(["POST / HTTP/1.1\r\nhost: a\r\n", head, smuggled]) |> all()
          assert status(answers) in 400..499
          assert length(String.split(answers, "HTTP/1.1 ")) == 2
        end)
      end
    end

    # RFC 9112, 6.1: it is refused, or answered, and the connection is closed.
    for head <- [
          "content-length: 5\r\ntransfer-encoding: chunked",
          "transfer-encoding: chunked\r\ncontent-length: 5"
        ] do
      test "a length and chunks: nothing behind is a request (#{inspect(head)})" do
        attacked(fn port ->
          smuggled = "GET /smuggled HTTP/1.1\r\nhost: a\r\n\r\n"
          request = ["POST / HTTP/1.1\r\nhost: a\r\n", unquote(head), "\r\n\r\n0\r\n\r\n"]
          answers = port |> send_raw([request, smuggled]) |> all()
          assert length(String.split(answers, "HTTP/1.1 ")) == 2
          assert answers =~ ~r/^connection: close\r$/mi
        end)
      end
    end

    test "ten thousand requests whose answers nobody reads hold nothing for long" do
      {server, port} = start(@bounds)
      socket = connect(port)
      :inet.setopts(socket, send_timeout: 500)
      Frames.flood(socket, String.duplicate("GET / HTTP/1.1\r\nhost: a\r\n\r\n", 100), 100)
      assert {200, _, "hello"} = get(port)
      :gen_tcp.close(socket)
      balanced(server)
    end

    test "a client that leaves, half or at all, at any byte of a request" do
      attacked(fn port ->
        request = "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhello"

        for at <- 0..byte_size(request), how <- [:reset, :half, :close] do
          socket = send_raw(port, binary_part(request, 0, at))
          if how == :reset, do: :inet.setopts(socket, linger: {true, 0})
          if how == :half, do: :gen_tcp.shutdown(socket, :write)
          if how == :half and at == byte_size(request), do: all(socket)
          :gen_tcp.close(socket)
        end
      end)
    end

    test "bytes of no meaning" do
      attacked(fn port ->
        :rand.seed(:exsss, {1, 2, 3})

        for _ <- 1..500 do
          bytes = :rand.bytes(:rand.uniform(300))
          prefix = Enum.random(["", "GET / HTTP/1.1\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"])
          socket = send_raw(port, [prefix, bytes])
          :gen_tcp.shutdown(socket, :write)
          :gen_tcp.close(socket)
        end
      end)
    end
  end

  describe "HTTP/2" do
    test "rapid reset: streams that are opened and reset without end close the connection" do
      attacked(fn port ->
        socket = Frames.connect(port)

        sent =
          Enum.reduce_while(0..19_999, 0, fn n, _ ->
            id = 2 * n + 1

            case :gen_tcp.send(socket, [
                   Frames.get(id),
                   Frames.frame(:rst_stream, 0, id, <<8::32>>)
                 ]) do
              :ok -> {:cont, n}
              {:error, _} -> {:halt, n}
            end
          end)

        {ended, frames} = Frames.all(socket)
        assert ended == :closed
        assert sent < 19_999 or Frames.goaway(frames) == [@enhance_your_calm]
      end)
    end

    test "continuation flood: a header block without end closes the connection" do
      attacked(fn port ->
        socket = Frames.connect(port)
        piece = List.duplicate(Frames.literal("name", String.duplicate("v", 100)), 100)
        :ok = :gen_tcp.send(socket, Frames.frame(:headers, 0x1, 1, Frames.fields()))
        sent = Frames.flood(socket, Frames.frame(:continuation, 0, 1, piece), 10_000)
        assert sent < 50_000_000
        assert {:closed, frames} = Frames.all(socket)
        assert Enum.all?(Frames.goaway(frames), &(&1 in [@protocol_error, @enhance_your_calm]))
      end)
    end

    for {name, kind} <- [
          {"settings", :settings},
          {"ping", :ping},
          {"empty data", :data},
          {"window update", :window_update},
          {"priority", :priority}
        ] do
      test "#{name} flood, with nobody who reads: memory is bounded" do
        frame =
          case unquote(kind) do
            :settings -> Frames.frame(:settings, 0, 0, <<4::16, 65_535::32>>)
            :ping -> Frames.frame(:ping, 0, 0, <<1::64>>)
            :data -> Frames.frame(:data, 0, 1, "")
            :window_update -> Frames.frame(:window_update, 0, 0, <<1::32>>)
            :priority -> Frames.frame(:priority, 0, 3, <<0::32, 1>>)
          end

        attacked(fn port ->
          socket = Frames.connect(port)
          :inet.setopts(socket, send_timeout: 300)

          if unquote(kind) == :data,
            do: :gen_tcp.send(socket, Frames.frame(:headers, 0x4, 1, Frames.fields()))

          before = resident_kb()
          Frames.flood(socket, List.duplicate(frame, 1000), 2000)
          assert resident_kb() - before < 100_000
          :gen_tcp.close(socket)
        end)
      end
    end

    test "a window of nothing: an answer that cannot leave is given up" do
      handler = fn _ -> {200, [], :binary.copy("x", 100_000)} end
      {server, port} = start(Map.merge(@bounds, %{handler: handler, idle_timeout_ms: 2000}))

      sockets =
        for _ <- 1..20 do
          # SETTINGS_INITIAL_WINDOW_SIZE
          socket = Frames.connect(port, [{4, 0}])
          :ok = :gen_tcp.send(socket, for(id <- [1, 3, 5], do: Frames.get(id)))
          socket
        end

      closes_within(sockets, 20_000)
      balanced(server)
    end

    test "windows that grow beyond 31 bits are an error of flow control" do
      attacked(fn port ->
        socket = Frames.connect(port)
        most = Frames.frame(:window_update, 0, 0, <<0x7FFFFFFF::32>>)
        :ok = :gen_tcp.send(socket, [most, most])
        assert {:closed, frames} = Frames.all(socket)
        assert Frames.goaway(frames) == [@flow_control_error]
      end)
    end

    test "header bomb: few bytes that name a large field many times do not become many" do
      attacked(fn port ->
        socket = Frames.connect(port)
        # Remembered (index 62), then named four thousand times: 16 MB of header fields.
        large = [0x40, 1, "x", 0x7F, 0xA1, 0x1E, String.duplicate("y", 4000)]
        before = resident_kb()

        for id <- 1..39//2 do
          bomb = [Frames.fields(), if(id == 1, do: large, else: []), :binary.copy(<<0xBE>>, 4000)]
          _ = :gen_tcp.send(socket, Frames.frame(:headers, 0x5, id, bomb))
        end

        # Refused one by one, or the connection is closed.
        refused? = fn frames ->
          Enum.any?(frames, &match?({type, _, _, _} when type in [:headers, :rst_stream], &1))
        end

        {ended, frames} = Frames.all(socket, 500, refused?)
        assert ended == :closed or refused?.(frames)
        assert resident_kb() - before < 100_000
        :gen_tcp.close(socket)
      end)
    end
  end

  defp status("HTTP/1.1 " <> <<code::binary-size(3)>> <> _), do: String.to_integer(code)
  defp status(other), do: flunk("no answer but #{inspect(other, limit: 100)}")

  defp resident_kb do
    [_, kb] = Regex.run(~r/VmRSS:\s+(\d+)/, File.read!("/proc/self/status"))
    String.to_integer(kb)
  end
end
