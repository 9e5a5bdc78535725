defmodule Tame.HTTP.HandlerTest do
  # What handlers do to their acceptors, to their answers and to the server's end.
  use ExUnit.Case, async: true
  import Tame.HTTP.Test.Client
  alias Tame.HTTP.Test.Frames

  test "an acceptor whose handler ends it again and again takes no server with it for good" do
    handler = fn
      %{path: "/kill"} -> Process.exit(self(), :kill)
      _ -> {200, [], "hello"}
    end

    {server, port} = start(run: :acceptor, handler: handler)

    for _ <- 1..11 do
      socket = send_raw(port, "GET /kill HTTP/1.1\r\nhost: a\r\n\r\n")
      _ = :gen_tcp.recv(socket, 0, 2000)
    end

    # The port that the system chose is another one then.
    eventually(fn -> served(server) end)
  end

  test "the supervisor of the acceptors is killed: the server begins anew" do
    {server, _} = start([])
    {_, pid, _, _} = List.keyfind(Supervisor.which_children(server), :acceptors, 0)
    Process.exit(pid, :kill)
    eventually(fn -> served(server) and pid not in pids(server) end)
  end

  defp pids(server), do: for({_, pid, _, _} <- Supervisor.which_children(server), do: pid)

  defp served(server) do
    {:ok, socket} =
      :gen_tcp.connect({127, 0, 0, 1}, :tame_http.port(server), [:binary, active: false])

    :ok = :gen_tcp.send(socket, "GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    match?({:ok, "HTTP/1.1 200" <> _}, :gen_tcp.recv(socket, 0, 2000))
  rescue
    _ -> false
  catch
    _, _ -> false
  end

  test "a VM without a process left keeps the request, and its acceptor" do
    code = """
    Fill = fun F(N) -> try spawn(fun() -> receive stop -> ok end end) of P -> F([P | N]) catch _:_ -> N end end,
    All = Fill([]),
    Full = tame_http_requests:spawn(fun() -> ok end),
    [P ! stop || P <- All],
    timer:sleep(200),
    io:format("~p ~p", [Full, tame_http_requests:spawn(fun() -> ok end)]),
    halt().
    """

    paths = Enum.flat_map(:code.get_path(), &["-pa", to_string(&1)])
    options = ["+P", "1024", "-noinput", "-eval", code | paths]
    {printed, 0} = System.cmd("erl", options, stderr_to_stdout: true)
    assert String.ends_with?(printed, "full ok")
  end

  test "acceptors that are stuck are ended together, when requests have had their time" do
    {server, port} =
      start(
        run: :acceptor,
        acceptors: 3,
        shutdown_ms: 100,
        handler: fn _ -> Process.sleep(:infinity) end
      )

    for _ <- 1..3, do: send_raw(port, "GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    eventually(fn -> :tame_http.info(server).in_flight == 3 end)
    {microseconds, :ok} = :timer.tc(fn -> :tame_http.stop(server) end)
    assert microseconds < 4_500_000
  end

  test "who has asked for nothing does not keep a server from ending" do
    folder = Path.join(System.tmp_dir!(), "tame_http_#{System.unique_integer([:positive])}")
    File.mkdir_p!(folder)
    tls = certificate(folder)

    for {options, bytes} <- [{[], ""}, {[], "GET / HT"}, {[tls: tls], ""}] do
      {server, port} = start([shutdown_ms: 20_000] ++ options)
      _ = send_raw(port, bytes)
      eventually(fn -> :tame_http.info(server).connections == 1 end)
      {microseconds, :ok} = :timer.tc(fn -> :tame_http.stop(server) end)
      assert microseconds < 10_000_000
    end

    File.rm_rf!(folder)
  end

  test "static routes that are none, and times that are too long, are told in a line" do
    for route <- [
          {99, [], ""},
          {600, [], ""},
          {200, :headers, ""},
          {200, [{"a b", "c"}], ""},
          {200, [{"a\n", "c"}], ""},
          {200, [{"a", "b\r\nc"}], ""},
          {200, [{"Upgrade", "h2c"}], ""},
          {200, [{String.duplicate("a", 70_000), "c"}], ""},
          {200, for(n <- 1..40_000, do: {"a#{n}", "c"}), ""},
          {200, [], :body},
          {200, [], {:file, "/etc/hostname"}},
          {200, []}
        ] do
      options = %{handler: &hello/1, static: %{"/s" => route}}
      assert {:error, {:bad_option, :static, text}} = :tame_http.start(options)
      assert text =~ "expected \#{Path => {Status, Headers, Body}}"
    end

    {server, port} = start(static: %{"/s" => {200, %{"X-A" => ["b", ?c]}, ["d", ?e]}})
    assert {200, head, "de"} = get(port, "/s")
    assert head =~ "x-a: bc"
    assert_raise ArgumentError, fn -> :tame_http.static(server, %{"/s" => {200, :none, ""}}) end
    assert_raise ArgumentError, fn -> :tame_http.drain(server, 0xFFFFFFFF) end
    assert {200, _, "hello"} = get(port)
  end

  test "replies that are none are told in a line" do
    test = self()
    {_, port} = start(handler: fn request -> send(test, {:request, request}) && :later end)
    socket = send_raw(port, "GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    assert_receive {:request, request}, 5000

    for bad <- [
          :later,
          {99, [], ""},
          {0x1000000000000000000, [], ""},
          {200, :a, ""},
          {200, [], {:stream, 1}}
        ] do
      assert_raise ArgumentError, ~r/2nd argument: must be {Status, Headers, Body}/, fn ->
        :tame_http.reply(request, bad)
      end
    end

    for name <- ["a b", "upgrade", String.duplicate("a", 70_000)],
        body <- ["", {:stream, & &1}] do
      assert_raise ArgumentError, ~r/2nd argument: has a header that is none of HTTP/, fn ->
        :tame_http.reply(request, {200, [{name, "b"}], body})
      end
    end

    for {status, headers, told} <- [
          {99, [], ~r/2nd argument: must be a status/},
          {200, :a, ~r/3rd argument: must be a map or a list of headers/},
          {200, [{"upgrade", "b"}], ~r/3rd argument: must be a map or a list of headers/}
        ] do
      assert_raise ArgumentError, told, fn ->
        :tame_http.start_reply(request, status, headers)
      end
    end

    for refused <- [
          fn -> :tame_http.reply(:request, {200, [], ""}) end,
          fn -> :tame_http.start_reply(:request, 200, []) end
        ] do
      assert_raise ArgumentError, ~r/1st argument: must be a request/, refused
    end

    assert :ok = :tame_http.reply(request, {200, [], "after all"})
    assert {200, _, "after all"} = answer(socket)
  end

  test "the owner of a server is killed while it drains: it ends all the same" do
    test = self()
    {server, port} = start(handler: fn _ -> send(test, :held) && Process.sleep(:infinity) end)
    send_raw(port, "GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    assert_receive :held, 5000
    drain = Task.async(fn -> :tame_http.drain(server, 60_000) end)
    eventually(fn -> match?({:error, _}, :gen_tcp.connect({127, 0, 0, 1}, port, [])) end)
    {_, owner, _, _} = List.keyfind(Supervisor.which_children(server), :server, 0)
    Process.exit(owner, :kill)
    assert :ok = Task.await(drain, 20_000)
    refute Process.alive?(server)
  end

  test "two may stop a server at once" do
    test = self()

    handler = fn _ ->
      send(test, {:held, self()})
      receive do: (:go -> {200, [], "hello"})
    end

    {server, port} = start(handler: handler, shutdown_ms: 20_000)
    socket = send_raw(port, "GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    assert_receive {:held, pid}

    stops =
      for how <- [:stop, :drain, :stop, :drain], do: Task.async(fn -> stop_by(how, server) end)

    eventually(fn -> match?({:error, _}, :gen_tcp.connect({127, 0, 0, 1}, port, [])) end)
    send(pid, :go)
    assert Enum.uniq(Task.await_many(stops, 40_000)) == [:ok]
    assert {200, _, "hello"} = answer(socket)
  end

  defp stop_by(:stop, server), do: :tame_http.stop(server)
  defp stop_by(:drain, server), do: :tame_http.drain(server, 20_000)

  test "several processes may send one answer, and none waits for ever" do
    piece = :binary.copy("x", 300_000)

    handler = fn _ ->
      {200, [],
       {:stream,
        fn send ->
          tasks = for _ <- 1..3, do: Task.async(fn -> for _ <- 1..5, do: send.(piece) end)
          Task.await_many(tasks, 20_000)
        end}}
    end

    {server, port} = start(handler: handler)
    {body, 0} = curl([url(port)])
    assert byte_size(body) == 15 * 300_000
    balanced(server)
    # One whose client leaves.
    socket = send_raw(port, "GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    {:ok, _} = :gen_tcp.recv(socket, 1000)
    :gen_tcp.close(socket)
    balanced(server)
  end

  test "an answer that fails behind its head is cut off, however busy its acceptor is" do
    handler = fn
      %{path: "/fails"} -> {200, [], {:stream, fn send -> send.("abc") && throw(:up) end}}
      _ -> {200, [], "hello"}
    end

    {server, port} = start(run: :acceptor, handler: handler)

    busy =
      Task.async(fn ->
        socket = connect(port)

        for _ <- Stream.cycle([:again]) do
          :ok = :gen_tcp.send(socket, "GET / HTTP/1.1\r\nhost: a\r\n\r\n")
          {200, _, _} = answer(socket)
          Process.sleep(50)
        end
      end)

    socket = send_raw(port, "GET /fails HTTP/1.1\r\nhost: a\r\n\r\n")
    assert all(socket) =~ "abc"
    Task.shutdown(busy, :brutal_kill)
    balanced(server)
  end

  test "the length of a file is the file's, one of a stream is a number, and what is no file is 500" do
    handler = fn
      %{path: "/file"} ->
        {200, [{"Content-Length", "5"}], {:file, __ENV__.file}}

      %{path: "/two"} ->
        {200, [{"content-length", "3"}, {"content-length", "3"}], {:stream, & &1.("abc")}}

      %{path: "/none"} ->
        {200, [{"content-length", "x"}], {:stream, & &1.("abc")}}

      %{path: "/folder"} ->
        {200, [], {:file, System.tmp_dir!()}}

      %{path: "/gone"} ->
        {200, [], {:file, "/no/such/file"}}

      %{path: "/arity"} ->
        {200, [], {:stream, fn _, _ -> :ok end}}
    end

    {server, port} = start(handler: handler)
    size = File.stat!(__ENV__.file).size
    assert {200, head, _} = get(port, "/file")
    assert head =~ "content-length: #{size}"

    for path <- ["/two", "/none", "/folder", "/gone", "/arity"],
        do: assert({500, _, _} = get(port, path))

    for {path, status} <- [
          {"/file", "200"},
          {"/folder", "500"},
          {"/gone", "500"},
          {"/arity", "500"}
        ] do
      {out, 0} = curl(["-I", "-w", "%{http_code}", url(port, path)])
      assert String.ends_with?(out, status)
    end

    balanced(server)
  end

  test "HTTP/1: a target names a resource of one host" do
    {server, port} =
      start(handler: fn r -> {200, [], r.path <> " " <> :tame_http.header("host", r, "-")} end)

    for {head, status, body} <- [
          {"GET /x HTTP/1.1\r\nhost: a\r\n", 200, "/x a"},
          {"GET http://other/x HTTP/1.1\r\nhost: evil\r\n", 200, "/x other"},
          {"OPTIONS * HTTP/1.1\r\nhost: a\r\n", 200, "* a"},
          {"GET /x HTTP/1.0\r\n", 200, "/x -"},
          {"GET * HTTP/1.1\r\nhost: a\r\n", 400, ""},
          {"GET foo HTTP/1.1\r\nhost: a\r\n", 400, ""},
          {"GET foo:80 HTTP/1.1\r\nhost: a\r\n", 400, ""},
          {"GET /x HTTP/1.1\r\n", 400, ""},
          {"GET /x HTTP/1.1\r\nhost: a\r\nhost: b\r\n", 400, ""},
          {"GET /x HTTP/1.1\r\nhost:\r\n", 200, "/x "},
          {"GET /x HTTP/1.1\r\nhost: [::1]:80\r\n", 200, "/x [::1]:80"},
          {"GET /x HTTP/1.1\r\nhost: a:\r\n", 200, "/x a:"},
          {"GET /x HTTP/1.1\r\nhost: a b/@\r\n", 400, ""},
          {"GET /x HTTP/1.1\r\nhost: a/b\r\n", 400, ""},
          {"GET /x HTTP/1.1\r\nhost: b@a\r\n", 400, ""},
          {"GET /x HTTP/1.1\r\nhost: a:99999\r\n", 400, ""},
          {"GET /x HTTP/1.1\r\nhost: a:b\r\n", 400, ""},
          {"GET /x HTTP/1.0\r\nhost: <a>\r\n", 400, ""},
          {"GET http://b@a/x HTTP/1.1\r\nhost: a\r\n", 400, ""}
        ] do
      assert {^status, _, ^body} = port |> send_raw(head <> "\r\n") |> answer()
    end

    balanced(server)
  end

  test "HTTP/2: an authority, or a host in its place, names a host" do
    {server, port} = start(%{})
    socket = Frames.connect(port)
    head = [0x82, 0x86, 0x84]
    authority = &Frames.literal(":authority", &1)

    for {fields, stream} <- [
          {authority.("b@a"), 1},
          {Frames.literal("host", "a b"), 3},
          {[authority.("a"), Frames.literal("host", "<a>")], 5}
        ] do
      :ok = :gen_tcp.send(socket, Frames.frame(:headers, 0x5, stream, [head, fields]))
    end

    :ok = :gen_tcp.send(socket, Frames.get(7))
    {:silent, frames} = Frames.all(socket, 500, &(length(Frames.statuses(&1)) >= 4))
    # 0x8C is 400.
    answered = for {stream, status} <- Frames.statuses(frames), do: {stream, status}
    assert Enum.sort(answered) == [{1, 0x8C}, {3, 0x8C}, {5, 0x8C}, {7, 200}]
    balanced(server)
  end

  test "a header's value goes out without the spaces around it" do
    {_server, port} =
      start(handler: fn _ -> {200, [{"x-spaced", " \t a b\t "}, {"x-none", " "}], ""} end)

    for version <- ["--http1.1", "--http2-prior-knowledge"] do
      {answer, 0} = curl(["-i", version, url(port)])
      lines = String.split(answer, "\r\n")
      assert {version, "x-spaced: a b"} == {version, Enum.find(lines, &(&1 =~ "spaced"))}
      assert Enum.find(lines, &(&1 =~ "x-none")) in ["x-none:", "x-none: "]
    end
  end

  test "an answer that is not as long as its own content-length says is cut off" do
    handler = fn
      %{path: "/short"} ->
        {200, [{"content-length", "10"}], {:stream, & &1.("abc")}}

      %{path: "/long"} ->
        {200, [{"content-length", "4"}], {:stream, &for(_ <- 1..2, do: &1.("abc"))}}

      %{path: "/right"} ->
        {200, [{"content-length", "6"}], {:stream, &for(_ <- 1..2, do: &1.("abc"))}}
    end

    {server, port} = start(handler: handler)
    socket = Frames.connect(port)

    for {path, stream} <- [{"/short", 1}, {"/long", 3}, {"/right", 5}],
        do: :ok = :gen_tcp.send(socket, Frames.get_path(stream, path))

    ends = &(match?({:rst_stream, _, _, _}, &1) or match?({:data, 1, _, _}, &1))
    {_, frames} = Frames.all(socket, 500, &(Enum.count(&1, ends) >= 3))
    for stream <- [1, 3], do: assert(Keyword.has_key?(Frames.of(frames, stream), :rst_stream))
    assert {:data, 1, 5, _} = Enum.find(frames, &match?({:data, 1, _, _}, &1))

    for path <- ["/short", "/long"], _ <- 1..10 do
      output = all(send_raw(port, "GET #{path} HTTP/1.1\r\nhost: a\r\n\r\n"))
      assert ["HTTP/1.1 200 OK" <> _, "abc"] = String.split(output, "\r\n\r\n")
    end

    assert {200, _, "abcabc"} = get(port, "/right")
    balanced(server)
  end

  test "an answer of HTTP/1.0 whose end is the connection's, and that is cut off, ends by a reset" do
    handler = fn
      %{path: "/whole"} ->
        {200, [], {:stream, fn send -> send.("abc") end}}

      %{path: "/length"} ->
        {200, [{"content-length", "4"}], {:stream, fn send -> send.("abc") && throw(:up) end}}

      %{path: "/fails"} ->
        {200, [], {:stream, fn send -> send.("abc") && throw(:up) end}}

      %{path: "/never"} ->
        {200, [], {:stream, fn send -> send.("abc") && Process.sleep(:infinity) end}}
    end

    {server, port} = start(handler: handler, idle_timeout_ms: 3000)

    for {head, ended} <- [
          {"GET /whole", :closed},
          {"HEAD /whole", :closed},
          # Its client sees that a byte is missing.
          {"GET /length", :closed},
          {"GET /fails", :econnreset},
          {"GET /never", :econnreset}
        ] do
      {:ok, socket} =
        :gen_tcp.connect({127, 0, 0, 1}, port, [:binary, active: false, show_econnreset: true])

      :ok = :gen_tcp.send(socket, head <> " HTTP/1.0\r\n\r\n")
      assert {head, ended} == {head, how_it_ends(socket)}
    end

    assert :tame_http.info(server).requests == 5
  end

  defp how_it_ends(socket) do
    case :gen_tcp.recv(socket, 0, 20_000) do
      {:ok, _} -> how_it_ends(socket)
      {:error, reason} -> reason
    end
  end
end
