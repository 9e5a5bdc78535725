defmodule Tame.HTTP.MessagesTest do
  # What is in requests, and what answers may be, over HTTP/1.1, HTTP/2 and TLS.
  use ExUnit.Case, async: true
  import Tame.HTTP.Test.Client
  alias Tame.HTTP.Test.Frames

  @h2 "--http2-prior-knowledge"
  @tag_protocols [["--http1.1"], [@h2]]

  defp told do
    test = self()

    fn request ->
      send(test, {:request, Map.delete(request, :ref)})
      {200, [], "hello"}
    end
  end

  # Hands each request over, which is answered later.
  defp asked(to), do: fn request -> send(to, {:request, request}) && :later end

  test "method, path, query, headers, peer, version, scheme" do
    {_, port} = start(handler: told())

    for {flag, version} <- [
          {"--http1.1", :"HTTP/1.1"},
          {"--http1.0", :"HTTP/1.0"},
          {@h2, :"HTTP/2"}
        ] do
      headers = ["-H", "X-Two: 1", "-H", "X-Two: 2", "-H", "accept;"]
      {"hello", 0} = curl([flag, "-X", "PATCH", url(port, "/a%20b/?c=d?e&f")] ++ headers)
      assert_receive {:request, request}, 5000

      assert %{method: "PATCH", path: "/a%20b/", query: "c=d?e&f", scheme: :http, body: ""} =
               request

      assert %{version: ^version, trailers: [], peer: {{127, 0, 0, 1}, _}} = request
      assert for({"x-two", value} <- request.headers, do: value) == ["1", "2"]
      assert :tame_http.header("host", Map.put(request, :ref, nil)) == "127.0.0.1:#{port}"
      assert :tame_http.header("none", request) == :undefined
    end
  end

  test "HTTP/2: the pieces of a cookie are one, and what counts is the authority" do
    test = self()
    {server, port} = start(handler: fn request -> send(test, request) && {200, [], ""} end)
    socket = Frames.connect(port)
    cookies = for pair <- ["a=1", "b=2", "c=3"], do: Frames.literal("cookie", pair)
    :ok = :gen_tcp.send(socket, Frames.get(1, [cookies, Frames.literal("host", "other")]))
    assert_receive %{headers: headers}
    assert Enum.sort(headers) == [{"cookie", "a=1; b=2; c=3"}, {"host", "a"}]
    balanced(server)
  end

  test "HTTP/2: a client that expects to be told to go on is told" do
    {server, port} = start(handler: &echo/1)
    socket = Frames.connect(port)
    :ok = :gen_tcp.send(socket, Frames.post(1, "/", Frames.literal("expect", "100-continue")))
    {{:headers, flags, 1, <<status, _::binary>>}, rest} = Frames.next(socket, "")
    assert status != 0x88 and Bitwise.band(flags, 1) == 0
    :ok = :gen_tcp.send(socket, Frames.frame(:data, 1, 1, "abc"))
    {{:headers, _, 1, <<0x88, _::binary>>}, rest} = Frames.next(socket, rest)
    assert {{:data, _, 1, "abc"}, _} = Frames.next(socket, rest)
    balanced(server)
  end

  test "HTTP/2: a client whose body is too long is not told to go on" do
    {server, port} = start(handler: &echo/1, body_limit: 5)
    socket = Frames.connect(port)
    expects = [{"expect", "100-continue"}, {"content-length", "6"}]
    fields = for {name, value} <- expects, do: Frames.literal(name, value)
    :ok = :gen_tcp.send(socket, Frames.post(1, "/", fields))
    heads = &for {:headers, fields} <- Frames.of(&1, 1), do: fields
    {_, frames} = Frames.all(socket, 500, &(heads.(&1) != []))
    assert [_refused] = heads.(frames)
    assert %{refused: 1} = balanced(server)
  end

  test "a body that is read again after a time-out has lost nothing" do
    test = self()

    handler = fn request ->
      for ms <- [50, 10_000, 10_000, 10_000],
          do: send(test, {:read, :tame_http.read_body(request, %{timeout: ms, bytes: 1})})

      {200, [], ""}
    end

    {server, port} = start(body: :stream, handler: handler)
    socket = Frames.connect(port)
    :ok = :gen_tcp.send(socket, Frames.post(1))
    assert_receive {:read, {:error, :timeout}}, 10_000
    :ok = :gen_tcp.send(socket, Frames.frame(:data, 0, 1, "one"))
    assert_receive {:read, {:more, "one"}}, 10_000
    :ok = :gen_tcp.send(socket, Frames.frame(:data, 1, 1, "two"))
    assert_receive {:read, {:more, "two"}}, 10_000
    assert_receive {:read, {:done, "", []}}, 10_000
    balanced(server)
  end

  test "what comes when a process has stopped to read is the next one's, all of it" do
    test = self()
    handler = fn request -> send(test, {:request, request}) && :later end
    {server, port} = start(body: :stream, handler: handler)
    head = "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\n"

    for {its, bytes} <- [{1, 9}, {9, 1}] do
      socket = send_raw(port, head)
      assert_receive {:request, request}, 10_000
      read = &:tame_http.read_body(request, &1)

      first =
        Task.async(fn ->
          send(test, {:read, read.(%{bytes: its, timeout: 50})})
          receive do: (message -> message)
        end)

      assert_receive {:read, {:error, :timeout}}, 10_000
      for part <- ["one", "two"], do: :ok = :gen_tcp.send(socket, part)
      # Time for them to go to the first.
      Process.sleep(50)
      second = Task.async(fn -> read.(%{bytes: bytes}) end)
      :ok = :gen_tcp.send(socket, "end")
      assert {:more, "one" <> rest} = Task.await(second)
      assert bytes == 1 or rest == "twoend"
      send(first.pid, :nothing)
      assert :nothing = Task.await(first)
      assert :ok = :tame_http.reply(request, {200, [], ""})
    end

    balanced(server)
  end

  test "IPv6" do
    {:ok, server} = :tame_http.start(%{ip: {0, 0, 0, 0, 0, 0, 0, 1}, handler: told()})
    {"hello", 0} = curl(["http://[::1]:#{:tame_http.port(server)}/"])
    assert_receive {:request, %{peer: {{0, 0, 0, 0, 0, 0, 0, 1}, _}}}, 5000
    :ok = :tame_http.stop(server)
  end

  for protocol <- @tag_protocols do
    test "bodies of many sizes, whole, up and down: #{protocol}" do
      digest = &Base.encode16(:crypto.hash(:sha256, &1))

      handler = fn r -> {200, %{"x-digest" => digest.(r.body)}, [r.body, r.body]} end
      {server, port} = start(handler: handler, body_limit: 50_000_000)

      for size <- [0, 1, 64, 65, 16_383, 16_384, 70_000, 5_000_000, 20_000_000] do
        body = :crypto.strong_rand_bytes(size)
        file = Path.join(System.tmp_dir!(), "tame_http_#{System.unique_integer([:positive])}")
        File.write!(file, body)
        args = ["--data-binary", "@#{file}", "-D", "-", "-o", file <> ".out", url(port)]
        {head, 0} = curl(unquote(protocol) ++ args)
        assert head =~ digest.(body)
        assert File.read!(file <> ".out") == body <> body
        for f <- [file, file <> ".out"], do: File.rm!(f)
      end

      balanced(server)
    end

    test "a body that is read as it comes: #{protocol}" do
      test = self()

      handler = fn r ->
        assert r.body == :stream

        receive_all = fn receive_all, n, hash ->
          case :tame_http.read_body(r, %{bytes: 100_000}) do
            {:more, data} -> receive_all.(receive_all, n + 1, :crypto.hash_update(hash, data))
            {:done, data, []} -> {n, :crypto.hash_final(:crypto.hash_update(hash, data))}
          end
        end

        {n, digest} = receive_all.(receive_all, 0, :crypto.hash_init(:sha256))
        send(test, {:pieces, n})
        assert {:error, :closed} = :tame_http.read_body(r)
        {200, [], Base.encode16(digest)}
      end

      {server, port} = start(handler: handler, body: :stream, body_limit: 100_000_000)
      file = Path.join(System.tmp_dir!(), "tame_http_#{System.unique_integer([:positive])}")
      body = :crypto.strong_rand_bytes(10_000_000)
      File.write!(file, body)
      {output, 0} = curl(unquote(protocol) ++ ["--data-binary", "@#{file}", url(port)])
      assert output == Base.encode16(:crypto.hash(:sha256, body))
      assert_receive {:pieces, n} when n > 10
      File.rm!(file)
      balanced(server)
    end

    test "an answer in pieces, with trailers, at the client's pace: #{protocol}" do
      test = self()
      piece = String.duplicate("a", 100_000)

      handler = fn
        %{path: "/short"} ->
          {200, [],
           {:stream,
            fn send ->
              for(x <- ["a", ["b"], "", "c"], do: send.(x)) && {:trailers, [{"x-end", "yes"}]}
            end}}

        %{path: "/crash"} ->
          {200, [], {:stream, fn send -> send.("begun") && raise("on purpose") end}}

        _ ->
          {200, [],
           {:stream,
            fn send ->
              n =
                Enum.find_value(1..100_000, fn n ->
                  send(test, {:sent, n})
                  if send.(piece) == {:error, :closed}, do: n
                end)

              send(test, {:closed, n})
            end}}
      end

      {server, port} = start(handler: handler)
      assert {"abc", 0} = curl(unquote(protocol) ++ [url(port, "/short")])
      {output, 0} = curl(unquote(protocol) ++ ["-I", url(port, "/short")])
      assert output =~ "200"
      {output, 0} = System.cmd("nghttp", ["-v", url(port, "/short")])
      assert output =~ "x-end: yes"

      # Cut off, and seen to be, behind what was sent: curl drops that where it comes with the reset.
      assert {cut_off, status} = curl(unquote(protocol) ++ [url(port, "/crash")])
      assert {cut_off, status} in [{"begun", 18}, {"begun", 92}, {"", 92}]
      {output, _} = System.cmd("nghttp", ["-v", url(port, "/crash")], stderr_to_stdout: true)
      assert output =~ ~r/begun.*recv DATA.*recv RST_STREAM/s
      # A client that reads slowly, and leaves.
      {_, 28} =
        curl(
          unquote(protocol) ++ ["--limit-rate", "100K", "-m", "2", "-o", "/dev/null", url(port)]
        )

      assert_receive {:closed, n}, 10_000
      # Windows and buffers of sockets; not what the handler would like to send.
      assert n < 1000
      balanced(server)
    end

    test "answers to HEAD, and 204, 205 and 304, have no body, whatever the handler gives: #{protocol}" do
      body = %{"/short" => "hello", "/long" => String.duplicate("long", 1_000_000), "/none" => ""}

      handler = fn
        %{path: "/204"} -> {204, [], "hello"}
        %{path: "/204/file"} -> {204, [], {:file, __ENV__.file}}
        %{path: "/204/stream"} -> {204, [{"content-length", "5"}], {:stream, & &1.("hello")}}
        %{path: "/205"} -> {205, [], "hello"}
        %{path: "/205/file"} -> {205, [], {:file, __ENV__.file}}
        %{path: "/205/stream"} -> {205, [{"content-length", "5"}], {:stream, & &1.("hello")}}
        %{path: "/304"} -> {304, [], "hello"}
        %{path: path} -> {200, [], body[path]}
      end

      {server, port} =
        start(
          handler: handler,
          static: %{"/static" => {200, [], "static"}, "/205/static" => {205, [], "hello"}}
        )

      for path <- ["/short", "/long", "/none", "/static"] do
        {head, 0} = curl(unquote(protocol) ++ ["-I", url(port, path)])
        assert head =~ ~r"^HTTP/[12.]+ 200"
        length = byte_size(Map.get(body, path, "static"))
        if length > 0, do: assert(head =~ "content-length: #{length}\r\n")
      end

      none =
        ["/204", "/204/file", "/204/stream", "/304"] ++
          ["/205", "/205/file", "/205/stream", "/205/static"]

      for path <- none do
        {head, 0} = curl(unquote(protocol) ++ ["-D", "-", url(port, path)])
        assert head =~ ~r"^HTTP/[12.]+ #{String.slice(path, 1, 3)}"
        assert String.ends_with?(head, "\r\n\r\n")
        if path =~ "/204", do: refute(head =~ "content-length")
        refute head =~ ~r"content-length: [1-9]" and path =~ "/205"
      end

      balanced(server)
    end

    test "a length without a body is that of what HEAD does not get: #{protocol}" do
      {server, port} = start(handler: fn _ -> {200, [{"content-length", "7"}], ""} end)
      {head, 0} = curl(unquote(protocol) ++ ["-I", url(port)])
      assert head =~ "content-length: 7\r\n"
      {head, 0} = curl(unquote(protocol) ++ ["-D", "-", url(port)])
      assert head =~ ~r"^HTTP/[12.]+ 200"
      refute head =~ "content-length: 7"
      balanced(server)
    end

    test "a handler may end the connection, over HTTP/1: #{protocol}" do
      handler = fn
        %{path: "/stream"} -> {200, [{"Connection", "Close"}], {:stream, & &1.("hello")}}
        %{path: "/" <> value} -> {200, [{"connection", value}], "hello"}
      end

      static = %{"/static" => {200, [{"connection", "close"}], "hello"}}
      {server, port} = start(handler: handler, static: static)

      for {path, ends} <- [
            {"/close", true},
            {"/stream", true},
            {"/static", true},
            {"/keep-alive", false}
          ] do
        # Over HTTP/2 curl 7.88 fails at a second request with prior knowledge.
        {urls, ends} = if unquote(protocol) == [@h2], do: {1, false}, else: {2, ends}
        new = ["-D", "-", "-w", " %{num_connects}\n"]
        {output, 0} = curl(unquote(protocol) ++ new ++ List.duplicate(url(port, path), urls))
        connects = for [_, number] <- Regex.scan(~r/^hello (\d)$/m, output), do: number
        assert connects == if(ends, do: ["1", "1"], else: Enum.take(["1", "0"], urls))
        assert output =~ ~r/^connection: close\r$/mi == ends
        refute output =~ "keep-alive"
      end

      balanced(server)
    end

    test "headers of a connection are not the handler's: #{protocol}" do
      ours = [{"keep-alive", "timeout=5"}, {"Proxy-Connection", "close"}, {"te", "gzip"}]
      headers = [{"x-other", "1"}, {"connection", "x-other"} | ours]
      trailers = {:trailers, [{"connection", "close"} | headers]}

      handler = fn
        %{path: "/"} -> {200, headers, "hello"}
        _ -> {200, headers, {:stream, fn send -> send.("hello") && trailers end}}
      end

      {server, port} = start(handler: handler)

      for path <- ["/", "/stream"] do
        {head, 0} = curl(unquote(protocol) ++ ["-D", "-", url(port, path)])
        assert head =~ "x-other: 1"
        assert head =~ "hello"
        refute head =~ ~r/keep-alive|proxy-connection|connection: close|gzip/i
      end

      balanced(server)
    end

    test "files: #{protocol}" do
      file = Path.join(System.tmp_dir!(), "tame_http_#{System.unique_integer([:positive])}")
      body = :crypto.strong_rand_bytes(3_000_000)
      File.write!(file, body)

      for run <- [:process, :acceptor] do
        {server, port} = start(handler: fn _ -> {200, [], {:file, file}} end, run: run)
        {head, 0} = curl(unquote(protocol) ++ ["-D", "-", "-o", file <> ".out", url(port)])
        assert head =~ "content-length: 3000000"
        assert File.read!(file <> ".out") == body
        {head, 0} = curl(unquote(protocol) ++ ["-I", url(port)])
        assert head =~ "content-length: 3000000"
        balanced(server)
      end

      for f <- [file, file <> ".out"], do: File.rm!(f)
    end
  end

  for protocol <- @tag_protocols do
    test "an answer in pieces by several calls, of several processes: #{protocol}" do
      {server, port} = start(handler: asked(self()))
      curl = &Task.async(fn -> curl(unquote(protocol) ++ &1 ++ [url(port)]) end)

      whole = curl.(["-D", "-", "--raw", "-H", "te: trailers"])
      assert_receive {:request, request}, 5000
      headers = [{"trailer", "x-end"}]
      {:ok, begun} = :tame_http.start_reply(request, 200, headers)
      assert {:error, :closed} == :tame_http.start_reply(request, 200, headers)
      assert {:error, :closed} == :tame_http.reply(request, {200, [], "late"})
      for piece <- ["a", ["b", ?c], ""], do: :ok = :tame_http.send(begun, piece)
      :ok = Task.await(Task.async(fn -> :tame_http.send(begun, "d") end))
      :ok = :tame_http.finish(begun, %{"x-end" => "yes"})
      assert {:error, :closed} == :tame_http.send(begun, "late")
      assert {:error, :closed} == :tame_http.finish(begun)
      {output, 0} = Task.await(whole, 60_000)
      assert output =~ ~r"^HTTP/[12.]+ 200"
      for piece <- ~w(a bc d), do: assert(output =~ piece)
      assert output =~ "x-end: yes"

      none = curl.(["-I"])
      assert_receive {:request, request}, 5000
      {:ok, begun} = :tame_http.start_reply(request, 200, %{"content-length" => "5"})
      assert {:ok, :ok} == {:tame_http.send(begun, "hello"), :tame_http.finish(begun)}
      {output, 0} = Task.await(none, 60_000)
      assert output =~ "content-length: 5"
      balanced(server)
    end

    test "an answer in pieces that nobody finishes is cut off: #{protocol}" do
      begins = fn ->
        {:ok, begun} = receive do: ({:request, r} -> :tame_http.start_reply(r, 200, []))
        :ok = :tame_http.send(begun, "begun")
      end

      holder = spawn_link(begins)
      {server, port} = start(handler: asked(holder))
      # curl drops what was sent where it comes with the reset.
      assert {cut_off, status} = curl(unquote(protocol) ++ [url(port)])
      assert {cut_off, status} in [{"begun", 18}, {"begun", 92}, {"", 92}]
      balanced(server)
    end
  end

  test "trailers of an answer over HTTP/1.1: those that it names, to clients that say that they take them" do
    stream = {:stream, fn send -> send.("abc") && {:trailers, %{"x-a" => "1", "x-b" => "2"}} end}
    names = %{"/named" => %{"trailer" => "x-a"}, "/" => %{}}
    {_, port} = start(handler: fn request -> {200, names[request.path], stream} end)

    for {path, te, expected} <- [
          {"/named", "te: trailers\r\n", ["x-a: 1"]},
          {"/named", "", []},
          {"/", "te: trailers\r\n", []}
        ] do
      head = "GET #{path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n#{te}\r\n"
      [_, trailers] = String.split(all(send_raw(port, head)), "3\r\nabc\r\n0\r\n")
      assert String.split(trailers, "\r\n", trim: true) == expected
    end
  end

  test "trailers of a request" do
    {_, port} = start(handler: told())
    head = "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\ntrailer: x-sum\r\n\r\n"
    socket = send_raw(port, head <> "3\r\nabc\r\n2\r\nde\r\n0\r\nX-Sum: 5\r\n\r\n")
    assert {200, _, "hello"} = answer(socket)
    assert_receive {:request, %{body: "abcde", trailers: [{"x-sum", "5"}]}}
  end

  test "static routes, changed while it runs: Erlang hears nothing of them" do
    static = %{
      "/health" => {200, %{"content-type" => "text/plain"}, "fine"},
      "/old" => {200, [], "old"}
    }

    {server, port} = start(static: static, handler: told())
    assert {200, head, "fine"} = get(port, "/health")
    assert head =~ "content-type: text/plain"
    assert {200, _, "fine"} = get(port, "/health?a=b")
    assert {200, _, "old"} = get(port, "/old")
    {output, 0} = curl(["-I", url(port, "/health")])
    assert output =~ "content-length: 4"
    refute_received {:request, _}
    :ok = :tame_http.static(server, %{"/health" => {503, [], "no more"}})
    assert {503, _, "no more"} = get(port, "/health")
    assert {200, _, "hello"} = get(port, "/old")
    assert_received {:request, _}
    {"hello", 0} = curl(["-d", "a", url(port, "/health")])

    assert_raise ArgumentError, ~r/must be #{Regex.escape("\#{Path")}/, fn ->
      :tame_http.static(server, %{"a" => 1})
    end

    balanced(server)
  end

  test "drain: no new connections, those there finish" do
    test = self()

    handler = fn _ ->
      send(test, {:held, self()})
      receive do: (:go -> {200, [], "hello"})
    end

    {server, port} = start(handler: handler)
    idle = connect(port)
    busy = send_raw(port, "GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    assert_receive {:held, pid}
    drain = Task.async(fn -> :tame_http.drain(server, 60_000) end)

    eventually(fn ->
      match?({:error, :econnrefused}, :gen_tcp.connect({127, 0, 0, 1}, port, []))
    end)

    assert all(idle) == ""
    send(pid, :go)
    assert all(busy) =~ ~r/connection: close.*hello/s
    assert :ok = Task.await(drain)
    refute Process.alive?(server)
  end

  test "drain does not wait for longer than it is told" do
    {server, port} = start(handler: fn _ -> Process.sleep(:infinity) end)
    socket = send_raw(port, "GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    eventually(fn -> :tame_http.info(server).in_flight == 1 end)
    assert :ok = :tame_http.drain(server, 100)
    assert all(socket) == ""
  end

  test "pipelined requests are answered in their order" do
    {_, port} = start(handler: fn r -> {200, [{"connection-note", "x"}], r.path} end)
    requests = for n <- 1..50, do: "GET /#{n} HTTP/1.1\r\nhost: a\r\n\r\n"
    last = "GET /last HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"
    output = all(send_raw(port, [requests, last]))
    paths = Regex.scan(~r"\r\n\r\n(/[a-z0-9]+)", output) |> Enum.map(&List.last/1)
    assert paths == for(n <- 1..50, do: "/#{n}") ++ ["/last"]
  end

  test "telemetry, where it is there; one that raises is not the request's business" do
    test = self()
    Process.register(test, :telemetry_test)

    Code.compile_string("""
    defmodule :telemetry do
      def execute(_event, _measurements, %{path: "/raises"}), do: raise("no table")

      def execute(event, measurements, metadata),
        do: send(:telemetry_test, {:event, event, measurements, metadata})
    end
    """)

    {_, port} = start(%{})
    get(port, "/telemetry")

    assert_receive {:event, [:tame, :http, :request], %{duration: d},
                    %{path: "/telemetry", status: 200}}

    assert d > 0

    for run <- [:process, :acceptor] do
      {server, port} = start(run: run)
      for _ <- 1..12, do: assert({200, _, "hello"} = get(port, "/raises"))
      balanced(server)
    end
  after
    :code.purge(:telemetry)
    :code.delete(:telemetry)
  end
end
