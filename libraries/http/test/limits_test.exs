defmodule Tame.HTTP.LimitsTest do
  # Each bound, reached: what is beyond it is refused, what is below is served, and nothing is left.
  use ExUnit.Case, async: true
  import Tame.HTTP.Test.Client
  alias Tame.HTTP.Test.{Frames, Load, Peer}

  defp held do
    test = self()

    fn _ ->
      send(test, {:held, self()})
      receive do: (:go -> {200, [], "hello"})
    end
  end

  defp handlers(n), do: for(_ <- 1..n, do: receive(do: ({:held, pid} -> pid)))

  test "what is refused costs the same, however many wait" do
    peer = Peer.start_link()

    [few, many] =
      for max_waiting <- [100, 10_000] do
        busy = %{handler: &Peer.never/1, run: :acceptor, credit: 1, wait_timeout_ms: 60_000}
        bounds = %{io_threads: 1, max_streams: 65_536, max_waiting: max_waiting}
        {server, port} = Peer.server(peer, Map.merge(busy, bounds))
        load = Load.start(port, ["-c", "1", "-m", "12000"])
        ns = Peer.call(peer, Peer, :refusal_ns, [server])
        Load.stop(load)
        :ok = Peer.call(peer, :tame_http, :drain, [server, 0])
        ns
      end

    assert many < 3 * few
  end

  test "max_in_flight and max_waiting: some run, some wait, others are refused with Retry-After" do
    {server, port} =
      start(handler: held(), max_in_flight: 3, max_waiting: 4, wait_timeout_ms: 60_000)

    sockets = for _ <- 1..3, do: send_raw(port, "GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    running = handlers(3)
    waiting = for _ <- 1..4, do: send_raw(port, "GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    eventually(fn -> :tame_http.info(server).waiting == 4 end)

    for _ <- 1..20 do
      assert {503, head, ""} = get(port)
      assert head =~ "retry-after: 1"
    end

    assert %{in_flight: 3, waiting: 4, refused: 20} = :tame_http.info(server)
    for pid <- running, do: send(pid, :go)
    for socket <- sockets, do: assert({200, _, "hello"} = answer(socket))
    for _ <- 1..4, [pid] = handlers(1), do: send(pid, :go)
    for socket <- waiting, do: assert({200, _, "hello"} = answer(socket))
    assert %{answered: 7, refused: 20} = balanced(server)
  end

  test "what waited for too long is refused, though handlers never end" do
    {server, port} = start(handler: held(), max_in_flight: 1, wait_timeout_ms: 1000)
    first = ask(port)
    [handler] = handlers(1)
    others = for _ <- 1..3, do: ask(port)
    for socket <- others, do: assert({503, _, ""} = answer(socket))
    send(handler, :go)
    assert {200, _, "hello"} = answer(first)
    balanced(server)
  end

  test "a handler beyond request_timeout_ms still counts, so their number is bounded" do
    {server, port} =
      start(handler: held(), max_in_flight: 2, request_timeout_ms: 3000, wait_timeout_ms: 1000)

    sockets = for _ <- 1..2, do: ask(port)
    # One that nobody takes in time has no handler.
    pids = handlers(2)
    for socket <- sockets, do: assert({504, _, ""} = answer(socket))
    sockets = for _ <- 1..3, do: ask(port)
    for socket <- sockets, do: assert({503, _, ""} = answer(socket))
    eventually(fn -> :tame_http.info(server).open_requests == 0 end)
    assert :tame_http.info(server).in_flight == 2
    for pid <- pids, do: send(pid, :go)
    eventually(fn -> :tame_http.info(server).in_flight == 0 end)
    balanced(server)
  end

  test "max_connections: the next one is served when another ends" do
    {server, port} = start(max_connections: 2)
    [first, second] = for _ <- 1..2, do: connect(port)
    for s <- [first, second], do: :gen_tcp.send(s, "GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    for s <- [first, second], do: assert({200, _, "hello"} = answer(s))
    third = send_raw(port, "GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    assert {:error, :timeout} = :gen_tcp.recv(third, 0, 200)
    assert %{connections: 2} = :tame_http.info(server)
    :gen_tcp.close(first)
    assert {200, _, "hello"} = answer(third)
  end

  test "max_connections: of all I/O threads together, whichever of them has the connections" do
    {server, port} = start(max_connections: 4, io_threads: 4)

    for _ <- 1..20 do
      # The fourth is served wherever it is, with three in any of the threads.
      sockets = for _ <- 1..4, do: ask(port)
      for socket <- sockets, do: assert({200, _, "hello"} = answer(socket))
      for socket <- sockets, do: :gen_tcp.close(socket)
    end

    balanced(server)
    eventually(fn -> :tame_http.info(server).connections == 0 end)
    sockets = for _ <- 1..40, do: ask(port)
    eventually(fn -> :tame_http.info(server).answered == 84 end)
    # Time for more than there may be.
    Process.sleep(200)
    assert %{connections: 4, answered: 84} = :tame_http.info(server)

    # Each that ends lets another in, in whatever thread it waits.
    for _ <- sockets, reduce: sockets do
      sockets ->
        served = served(sockets)
        :gen_tcp.close(served)
        List.delete(sockets, served)
    end

    assert %{answered: 120} = balanced(server)
  end

  defp ask(port), do: send_raw(port, "GET / HTTP/1.1\r\nhost: a\r\n\r\n")

  # One that has been answered.
  defp served(sockets) do
    eventually(fn -> Enum.find(sockets, &match?({:ok, _}, :gen_tcp.recv(&1, 0, 1))) end)
  end

  test "max_streams: clients are told, and those that keep to it are served" do
    {server, port} = start(max_streams: 3)
    {output, 0} = System.cmd("nghttp", ["-v", "-n", url(port)])
    assert output =~ "SETTINGS_MAX_CONCURRENT_STREAMS(0x03):3]"
    {output, 0} = System.cmd("h2load", ["-n", "500", "-c", "1", "-m", "3", url(port)])
    assert output =~ "500 succeeded"
    # What is beyond it is reset, and never comes to a handler.
    {output, _} = System.cmd("h2load", ["-n", "500", "-c", "1", "-m", "100", url(port)])
    refute output =~ "500 succeeded"
    balanced(server)
  end

  test "max_streams: streams beyond it are refused, and their connection goes on" do
    {server, port} = start(max_streams: 10, handler: held())
    socket = Frames.connect(port)
    :ok = :gen_tcp.send(socket, for(n <- 0..199, do: Frames.get(2 * n + 1)))
    pids = handlers(10)
    # REFUSED_STREAM
    refused = &for {:rst_stream, _, _, <<7::32>>} <- &1, do: 7
    {:silent, frames} = Frames.all(socket, 500, &(length(refused.(&1)) >= 190))
    assert length(refused.(frames)) == 190
    for pid <- pids, do: send(pid, :go)

    ended = &for {:data, 1, stream, "hello"} <- &1, do: stream
    {:silent, frames} = Frames.all(socket, 500, &(length(ended.(&1)) >= 10))
    served = for {stream, 200} <- Frames.statuses(frames), do: stream
    assert Enum.sort(served) == for(n <- 0..9, do: 2 * n + 1)
    balanced(server)
  end

  test "requests that are malformed end their own streams" do
    {server, port} = start(handler: held())
    socket = Frames.connect(port)
    :ok = :gen_tcp.send(socket, Frames.get(1))
    [pid] = handlers(1)
    bad = for n <- 1..100, do: Frames.get(2 * n + 1, Frames.literal("connection", "close"))
    :ok = :gen_tcp.send(socket, bad)
    ended = &for {:rst_stream, _, _, <<1::32>>} <- &1, do: 1
    {:silent, frames} = Frames.all(socket, 500, &(length(ended.(&1)) >= 100))
    assert length(ended.(frames)) == 100
    send(pid, :go)

    assert {:silent, [{:headers, _, 1, _}, {:data, _, 1, "hello"}]} =
             Frames.all(socket, 500, &(length(&1) >= 2))

    balanced(server)
  end

  test "bodies in small pieces are bodies" do
    {server, port} = start(handler: &echo/1)
    socket = Frames.connect(port)
    pieces = for _ <- 1..8000, do: Frames.frame(:data, 0, 1, "twenty bytes of text")
    last = Frames.frame(:data, 1, 1, "")
    :ok = :gen_tcp.send(socket, [Frames.post(1), pieces, last])
    size = &IO.iodata_length(for {:data, data} <- Frames.of(&1, 1), do: data)
    # As far as the client's window.
    {:silent, frames} = Frames.all(socket, 500, &(size.(&1) >= 65_535))
    assert Frames.goaway(frames) == []
    assert size.(frames) == 65_535
    balanced(server)
  end

  test "body_limit: 413, by the announced length and by what comes" do
    {server, port} =
      start(body_limit: 1000, handler: fn r -> {200, [], "#{byte_size(r.body)}"} end)

    data = String.duplicate("a", 1000)

    for {flags, body, expected} <- [
          {[], data, "1000-200"},
          {[], data <> "a", "-413"},
          {["-H", "transfer-encoding: chunked"], data, "1000-200"},
          {["-H", "transfer-encoding: chunked"], data <> "a", "-413"},
          {["--http2-prior-knowledge"], data, "1000-200"},
          {["--http2-prior-knowledge"], data <> "a", "-413"}
        ] do
      assert {^expected, 0} = curl(["-w", "-%{http_code}", "-d", body, url(port)] ++ flags)
    end

    # Refused before it is sent: there is no 100.
    head = "POST / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 1001\r\n\r\n"
    assert {413, _, ""} = answer(send_raw(port, head))
    assert %{refused: 4} = balanced(server)
    eventually(fn -> :tame_http.info(server).body_memory == 0 end)
  end

  test "body_memory: 503 for the bodies of all clients together" do
    {server, port} = start(body_memory: 100_000, max_in_flight: 1, handler: held())
    first = send_raw(port, "GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    [handler] = handlers(1)
    head = "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 60000\r\n\r\n"
    body = String.duplicate("a", 60_000)
    second = send_raw(port, head <> body)
    eventually(fn -> :tame_http.info(server).waiting == 1 end)
    assert {503, _, ""} = answer(send_raw(port, head <> body))
    send(handler, :go)
    assert {200, _, _} = answer(first)
    [handler] = handlers(1)
    send(handler, :go)
    assert {200, _, _} = answer(second)
    balanced(server)
    eventually(fn -> :tame_http.info(server).body_memory == 0 end)
  end

  test "header_timeout_ms: clients that say nothing, and those that never end their head" do
    {server, port} = start(header_timeout_ms: 3000)
    silent = connect(port)
    preface = send_raw(port, "PRI * HTTP/2.0\r\n")
    slow = send_raw(port, "GET / HTTP/1.1\r\nhost: a\r\n")
    # Also on a connection that has been of use.
    used = send_raw(port, "GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    assert {200, _, "hello"} = answer(used)
    drip = Task.async(fn -> drip(used) end)
    for socket <- [silent, preface, slow], do: all(socket)
    assert :closed = Task.await(drip, 20_000)
    eventually(fn -> :tame_http.info(server).connections == 0 end)
  end

  test "header_timeout_ms: a connection may be quiet for longer between its requests" do
    {server, port} = start(header_timeout_ms: 2000)
    socket = ask(port)
    assert {200, _, "hello"} = answer(socket)
    Process.sleep(3000)
    assert :tame_http.info(server).connections == 1
    :ok = :gen_tcp.send(socket, "GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    assert {200, _, "hello"} = answer(socket)
  end

  test "header_timeout_ms: each head has that long, though one has always begun" do
    {server, port} = start(header_timeout_ms: 4000)
    socket = send_raw(port, "GET / HTTP/1.1\r\nhost")

    for _ <- 1..60 do
      :ok = :gen_tcp.send(socket, ": a\r\n\r\nGET / HTTP/1.1\r\nhost")
      assert {200, _, "hello"} = answer(socket)
      Process.sleep(100)
    end

    :ok = :gen_tcp.send(socket, ": a\r\nconnection: close\r\n\r\n")
    assert {200, _, "hello"} = answer(socket)
    assert %{answered: 61} = balanced(server)
  end

  test "header_timeout_ms: a head behind a request that runs waits for it, in how many packets it came" do
    handler = fn
      %{path: "/long"} ->
        Process.sleep(3000) && {200, [], "hello"}

      %{path: "/short"} ->
        Process.sleep(50) && {200, [], "hello"}

      _ ->
        {200, [], {:stream, fn send -> for(_ <- 1..15, do: send.("x") && Process.sleep(200)) end}}
    end

    {server, port} = start(header_timeout_ms: 2000, handler: handler)
    get = fn path, more -> "GET #{path} HTTP/1.1\r\nhost: a\r\n#{more}\r\n" end
    last = get.("/short", "connection: close\r\n")
    # Behind one that Erlang has, and behind one whose answer streams.
    behind = for path <- ["/long", "/pieces"], do: {path, in_two(port, get.(path, ""), last)}
    # There are many heads, so hyper reads some of them in two parts.
    many = String.duplicate(get.("/short", "pad: #{String.duplicate("p", 200)}\r\n"), 59)
    behind = [{"/short", send_raw(port, many <> last)} | behind]

    for {path, socket} <- behind do
      answers = all(socket)
      expected = if path == "/short", do: 60, else: 2
      assert {path, length(String.split(answers, "HTTP/1.1 200")) - 1} == {path, expected}
      assert String.ends_with?(answers, "hello")
      if path == "/pieces", do: assert(length(String.split(answers, "\r\nx\r\n")) == 16)
    end

    assert %{answered: 64} = balanced(server)
  end

  # The head of the second in two packets.
  defp in_two(port, first, <<begun::binary-size(20), rest::binary>>) do
    socket = send_raw(port, first)
    :ok = :inet.setopts(socket, nodelay: true)

    for part <- [begun, rest] do
      Process.sleep(50)
      :ok = :gen_tcp.send(socket, part)
    end

    socket
  end

  test "header_timeout_ms: a head that never ends behind one that was answered, whole or byte by byte" do
    handler = fn _ -> Process.sleep(3000) && {200, [], {:stream, & &1.("hello")}} end
    {server, port} = start(header_timeout_ms: 2000, idle_timeout_ms: 60_000, handler: handler)
    first = "GET / HTTP/1.1\r\nhost: a\r\n\r\n"
    still = send_raw(port, first <> "GET / HT")
    drips = send_raw(port, first)
    drip = Task.async(fn -> drip(drips, "x") end)
    assert all(still) =~ ~r"^HTTP/1.1 200 .*hello\r\n0\r\n\r\n$"s
    assert :closed = Task.await(drip, 20_000)
    eventually(fn -> :tame_http.info(server).connections == 0 end)
    assert %{answered: 2} = balanced(server)
  end

  test "header_timeout_ms: a client that takes a long answer has it, though its next head has begun" do
    big = String.duplicate("a", 32 * 1024 * 1024)
    {_, port} = start(header_timeout_ms: 2000, handler: fn _ -> {200, [], big} end)
    socket = send_raw(port, "GET / HTTP/1.1\r\nhost: a\r\n\r\nGET / HT")
    # Nothing of it for a while, longer than a head may take.
    Process.sleep(3000)
    assert byte_size(all(socket)) > byte_size(big)
  end

  defp drip(socket, piece \\ "a: b\r\n") do
    :ok = :gen_tcp.send(socket, "GET / HTTP/1.1\r\n")

    Enum.find_value(1..10_000, fn _ ->
      with :ok <- :gen_tcp.send(socket, piece),
           {:error, :timeout} <- :gen_tcp.recv(socket, 0, 20) do
        nil
      else
        {:error, _} -> :closed
        # 408 and its like
        {:ok, _} -> nil
      end
    end)
  end

  test "request_timeout_ms: a body that never ends is 408" do
    {server, port} = start(request_timeout_ms: 200)
    socket = send_raw(port, "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\nabc")
    assert {408, _, ""} = answer(socket)
    assert %{refused: 1} = balanced(server)
  end

  test "request_timeout_ms: a handler has it whole, however long the body took" do
    handler = fn _ -> Process.sleep(3000) && {200, [], "hello"} end
    {server, port} = start(request_timeout_ms: 5000, handler: handler)
    socket = send_raw(port, "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\nab")
    Process.sleep(3000)
    :ok = :gen_tcp.send(socket, "c")
    assert {200, _, "hello"} = answer(socket)
    balanced(server)
  end

  test "idle_timeout_ms: an upload that moves is no idle connection, though its answer has begun" do
    handler = fn request ->
      {200, [], {:stream, fn send -> send.("begun") && send.("#{byte_size(whole(request))}") end}}
    end

    {server, port} = start(body: :stream, idle_timeout_ms: 3000, handler: handler)
    socket = Frames.connect(port)
    :ok = :gen_tcp.send(socket, Frames.post(1))

    for _ <- 1..20 do
      Process.sleep(250)
      :ok = :gen_tcp.send(socket, Frames.frame(:data, 0, 1, :binary.copy("x", 1000)))
    end

    :ok = :gen_tcp.send(socket, Frames.frame(:data, 1, 1, ""))
    whole? = &({:data, "20000"} in Frames.of(&1, 1))
    {_, frames} = Frames.all(socket, 0, whole?)
    assert whole?.(frames)
    balanced(server)
  end

  defp whole(request, so_far \\ "") do
    case :tame_http.read_body(request, %{bytes: 1}) do
      {:more, data} -> whole(request, so_far <> data)
      {:done, data, _} -> so_far <> data
    end
  end

  test "idle_timeout_ms: connections that nobody uses, and clients that do not read" do
    big = String.duplicate("a", 64 * 1024 * 1024)

    {server, port} =
      start(
        idle_timeout_ms: 2000,
        handler: fn r -> {200, [], if(r.path == "/big", do: big, else: "hello")} end
      )

    used = send_raw(port, "GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    assert {200, _, "hello"} = answer(used)
    deaf = send_raw(port, "GET /big HTTP/1.1\r\nhost: a\r\n\r\n")
    eventually(fn -> :tame_http.info(server).connections == 0 end)
    assert all(used) == ""
    :gen_tcp.close(deaf)
    balanced(server)
  end

  test "no files left: connections wait, and are served when there are some" do
    peer = Peer.start_link()
    {server, port} = Peer.server(peer)
    os_pid = Peer.call(peer, :os, :getpid)
    limit_files(os_pid, 60)
    Peer.call(peer, Peer, :take_files)
    _waiting = for _ <- 1..5, do: connect(port)
    eventually(fn -> Peer.call(peer, :tame_http, :info, [server]).accept_errors > 0 end)
    socket = send_raw(port, "GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    limit_files(os_pid, 1024)
    assert {200, _, "hello"} = answer(socket)
  end

  test "few files left: a server starts whole, or says that there are none" do
    peer = Peer.start_link()
    # Loads the code, which takes files too.
    {_, port} = Peer.server(peer)
    assert {200, _, "hello"} = get(port)
    :ok = Peer.call(peer, :code, :ensure_modules_loaded, [[Enum]])
    limit_files(Peer.call(peer, :os, :getpid), 100)

    started =
      for left <- 0..8 do
        case Peer.call(peer, Peer, :start_with_files, [left]) do
          {:ok, port} ->
            assert {200, _, "hello"} = get(port)
            :ok

          {:error, {:listen, :emfile, text}} ->
            assert text =~ "Too many open files"
            :emfile
        end
      end

    assert started == Enum.sort(started)
    assert :emfile in started and :ok in started
    eventually(fn -> Peer.call(peer, Peer, :threads) == 1 + Enum.count(started, &(&1 == :ok)) end)
  end

  test "io_threads: connections are spread over them, and nobody else has a share of the port" do
    peer = Peer.start_link()
    {_, port} = Peer.server(peer, %{io_threads: 2})
    before = Peer.call(peer, Peer, :sleeps)
    for _ <- 1..200, do: assert({200, _, "hello"} = get(port))
    for {name, n} <- Peer.call(peer, Peer, :sleeps), do: assert(n > before[name] + 50)
    assert map_size(before) == 2

    for io_threads <- [1, 2] do
      options = %{port: port, io_threads: io_threads, handler: &hello/1, ip: {127, 0, 0, 1}}
      assert {:error, {:listen, :eaddrinuse, _}} = :tame_http.start(options)
    end
  end

  defp limit_files(os_pid, n) do
    {"", 0} = System.cmd("prlimit", ["--pid", "#{os_pid}", "--nofile=#{n}:1024"])
  end
end
