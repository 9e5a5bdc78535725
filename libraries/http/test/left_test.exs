defmodule Tame.HTTP.LeftTest do
  # Clients that leave, take nothing or give up what they asked for: what they had of the server is there for others again.
  use ExUnit.Case, async: true
  import Tame.HTTP.Test.Client
  alias Tame.HTTP.Test.Frames

  @long :binary.copy("x", 300_000)

  # Its handlers say who they are, and send more than may wait for the client, in one piece.
  defp senders(options \\ []) do
    test = self()

    handler = fn _ ->
      send(test, {:sender, self()})
      {200, [], {:stream, fn send -> send.(@long) end}}
    end

    start([handler: handler] ++ options)
  end

  # They say who they are, and wait.
  defp held do
    test = self()

    fn _ ->
      send(test, {:sender, self()})
      receive do: (:go -> {200, [], "hello"})
    end
  end

  defp leave(socket) do
    :ok = :inet.setopts(socket, linger: {true, 0})
    :gen_tcp.close(socket)
  end

  defp all_have_ended(server) do
    eventually(fn -> :tame_http.info(server).in_flight == 0 end)
    eventually(fn -> not Enum.any?(told(), &Process.alive?/1) end)
    balanced(server)
  end

  defp forget_told do
    receive do
      {:sender, _} -> forget_told()
    after
      0 -> :ok
    end
  end

  defp told(pids \\ []) do
    receive do
      {:sender, pid} -> told([pid | pids])
    after
      0 ->
        for pid <- pids, do: send(self(), {:sender, pid})
        pids
    end
  end

  test "no sender waits for ever for room: HTTP/1.1" do
    {server, port} = senders()

    for _ <- 1..100 do
      sockets = for _ <- 1..10, do: send_raw(port, "GET / HTTP/1.1\r\nhost: a\r\n\r\n")
      for socket <- sockets, do: leave(socket)
    end

    all_have_ended(server)
  end

  test "no sender waits for ever for room: HTTP/2" do
    {server, port} = senders()

    for _ <- 1..50 do
      # A window of nothing.
      socket = Frames.connect(port, [{4, 0}])

      for n <- 0..19 do
        :ok = :gen_tcp.send(socket, Frames.get(2 * n + 1))
        Process.sleep(:rand.uniform(3) - 1)
        :ok = :gen_tcp.send(socket, Frames.reset(2 * n + 1))
      end

      leave(socket)
    end

    all_have_ended(server)
  end

  test "an answer that its client does not take is given up, whatever else the client does" do
    {server, port} =
      senders(
        idle_timeout_ms: 3000,
        max_in_flight: 5,
        max_waiting: 5,
        static: %{"/s" => {200, [], ""}}
      )

    socket = Frames.connect(port, [{4, 0}])
    for n <- 0..9, do: :ok = :gen_tcp.send(socket, Frames.get(2 * n + 1))
    eventually(fn -> :tame_http.info(server).requests == 10 end)

    asks = Task.async(fn -> ask_now_and_then(socket, 10..30) end)

    eventually(fn ->
      match?({200, _, _}, get(port, "/s")) and :tame_http.info(server).open_requests == 0
    end)

    Task.await(asks, 60_000)
    # Its connection goes on.
    {_, frames} = Frames.all(socket, 0, &last_answered?/1)
    assert last_answered?(frames)
    all_have_ended(server)
  end

  # As long as a connection asks it is not idle: time itself is what is tested.
  defp ask_now_and_then(socket, numbers) do
    for n <- numbers do
      :ok = :gen_tcp.send(socket, Frames.get_path(2 * n + 1, "/s"))
      Process.sleep(300)
    end
  end

  defp last_answered?(frames), do: {61, 200} in Frames.statuses(frames)

  # The last one that it asks for is answered, and the first was given up.
  defp goes_on_without_the_first(socket) do
    asks = Task.async(fn -> ask_now_and_then(socket, 1..30) end)
    given_up? = &Keyword.has_key?(Frames.of(&1, 1), :rst_stream)
    {_, frames} = Frames.all(socket, 0, &(last_answered?(&1) and given_up?.(&1)))
    Task.await(asks, 60_000)
    {given_up?.(frames), last_answered?(frames)}
  end

  test "an answer in one long piece, of which its client takes the first bytes, is given up too" do
    {server, port} = senders(idle_timeout_ms: 3000, static: %{"/s" => {200, [], ""}})
    socket = Frames.connect(port, [{4, 1000}])
    :ok = :gen_tcp.send(socket, Frames.get(1))
    assert {true, true} = goes_on_without_the_first(socket)
    all_have_ended(server)
  end

  test "one connection has no more of Erlang than max_streams, though it gives up all that it asks for" do
    # The other has static answers besides, which take nothing of Erlang.
    for statics <- [0, 12] do
      {server, port} = start(handler: held(), max_streams: 20, static: %{"/s" => {200, [], ""}})
      socket = Frames.connect(port)

      Enum.find(0..40, fn n ->
        streams = for i <- 0..(9 + statics), do: 2 * ((10 + statics) * n + i) + 1
        {given_up, others} = Enum.split(streams, 10)
        sent = :gen_tcp.send(socket, Enum.map(given_up, &Frames.get/1))
        Process.sleep(20)
        left = Enum.map(given_up, &Frames.reset/1)
        asked = Enum.map(others, &Frames.get_path(&1, "/s"))
        sent != :ok or :gen_tcp.send(socket, [left, asked]) != :ok
      end)

      assert {:closed, _} = Frames.all(socket)
      assert length(told()) <= 40
      for pid <- told(), do: send(pid, :go)
      all_have_ended(server)
      forget_told()
    end
  end

  test "a client that gives up some of its requests, and waits for the others, may do so for ever" do
    {server, port} = start(max_streams: 10)
    socket = Frames.connect(port)

    Enum.reduce(0..50, "", fn n, bytes ->
      [one, other] = [4 * n + 1, 4 * n + 3]
      :ok = :gen_tcp.send(socket, [Frames.get(one), Frames.reset(one), Frames.get(other)])
      answered(socket, other, bytes)
    end)

    balanced(server)
  end

  # What has come behind the head of that stream's answer.
  defp answered(socket, stream, bytes) do
    case Frames.next(socket, bytes, 20_000) do
      {{:headers, _, ^stream, <<0x88, _::binary>>}, rest} -> rest
      {_, rest} -> answered(socket, stream, rest)
    end
  end

  # What is behind the head of a request, and nobody reads yet.
  @unread [
    {"GET", "", "GET /next HTTP/1.1\r\nhost: a\r\n\r\n"},
    {"GET", "", "\r\n"},
    {"POST", "content-length: 100\r\n", ""},
    {"POST", "content-length: 100\r\n", "abc"},
    {"POST", "content-length: 3\r\n", "abc"},
    {"POST", "content-length: 300000\r\n", @long},
    {"POST", "transfer-encoding: chunked\r\n", "3\r\nabc\r\n"}
  ]

  test "a client that leaves is noticed, whatever of its bytes is not read: HTTP/1.1" do
    test = self()

    waits = fn request ->
      id = :tame_http.watch(request)
      send(test, :watches)
      receive do: ({:tame_http, :gone, ^id} -> :ok)
      send(test, {:gone, :tame_http.is_alive(request)})
    end

    handler = fn
      %{path: "/piece"} = request ->
        {200, [], {:stream, fn send -> send.("a") && waits.(request) end}}

      request ->
        waits.(request)
        {200, [], ""}
    end

    {server, port} = start(handler: handler, body: :stream)

    for how <- [:reset, :half, :close],
        path <- ["/", "/piece"],
        {method, more, behind} <- @unread do
      socket = send_raw(port, "#{method} #{path} HTTP/1.1\r\nhost: a\r\n#{more}\r\n" <> behind)
      assert_receive :watches, 10_000
      # What the system has no room for keeps the end behind it from coming.
      how = if byte_size(behind) < 1000, do: how, else: :reset

      case how do
        :reset -> leave(socket)
        :half -> :gen_tcp.shutdown(socket, :write)
        :close -> :gen_tcp.close(socket)
      end

      assert {how, path, behind} ==
               receive(do: ({:gone, false} -> {how, path, behind}), after: (20_000 -> :not_told))
    end

    all_have_ended(server)
  end

  test "an answer in pieces whose client leaves before its end was not sent" do
    test = self()
    handler = fn request -> send(test, {:request, request}) && :later end
    {server, port} = start(handler: handler)

    for http2 <- [false, true] do
      socket = if http2, do: Frames.connect(port), else: connect(port)

      ask = if http2, do: Frames.get(1), else: "GET / HTTP/1.1\r\nhost: a\r\n\r\n"
      :ok = :gen_tcp.send(socket, ask)
      assert_receive {:request, request}, 10_000

      stream = fn send ->
        :ok = send.("a")
        leave(socket)
        eventually(fn -> not :tame_http.is_alive(request) end)
      end

      assert {:error, :closed} = :tame_http.reply(request, {200, [], {:stream, stream}})
    end

    balanced(server)
  end

  test "an answer that is whole, and that its client does not take, is given up too" do
    handler = fn %{path: "/" <> size} -> {200, [], :binary.copy("x", String.to_integer(size))} end

    {server, port} =
      start(handler: handler, idle_timeout_ms: 3000, static: %{"/s" => {200, [], ""}})

    short = [{0, 5}, {4, 5}, {0, 1000}]
    long = for window <- [0, 1000], size <- [2000, 100_000, 300_000], do: {window, size}

    clients =
      for {window, size} <- short ++ long do
        Task.async(fn ->
          socket = Frames.connect(port, [{4, window}])
          :ok = :gen_tcp.send(socket, Frames.get_path(1, "/#{size}"))
          assert {window, size, {true, true}} == {window, size, goes_on_without_the_first(socket)}
        end)
      end

    Task.await_many(clients, 60_000)
    all_have_ended(server)
  end

  test "an answer over HTTP/2 leaves as its client gives it room" do
    for size <- [2000, 100_000, 300_000] do
      body = :binary.copy("0123456789", div(size, 10))
      {server, port} = start(handler: fn _ -> {200, [], body} end)
      socket = Frames.connect(port, [{4, 1000}])
      :ok = :gen_tcp.send(socket, Frames.get(1))
      assert body == taken(socket, "", "")
      balanced(server)
    end
  end

  # Each piece is room for the next one.
  defp taken(socket, bytes, so_far) do
    case Frames.next(socket, bytes) do
      {{:data, 1, 1, data}, _} ->
        so_far <> data

      {{:data, 0, 1, data}, rest} ->
        room = <<byte_size(data)::32>>
        windows = for stream <- [0, 1], do: Frames.frame(:window_update, 0, stream, room)
        :ok = :gen_tcp.send(socket, windows)
        taken(socket, rest, so_far <> data)

      {_, rest} ->
        taken(socket, rest, so_far)
    end
  end

  test "what has left does not wait" do
    {server, port} = start(handler: held(), max_in_flight: 1, wait_timeout_ms: 60_000)
    first = send_raw(port, "GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    eventually(fn -> told() != [] end)
    sockets = for _ <- 1..5, do: send_raw(port, "GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    eventually(fn -> :tame_http.info(server).waiting == 5 end)
    for socket <- sockets, do: leave(socket)
    eventually(fn -> :tame_http.info(server).waiting == 0 end)
    for pid <- told(), do: send(pid, :go)
    assert {200, _, _} = answer(first)
    balanced(server)
  end
end
