defmodule Tame.HTTP.FailTest do
  # What handlers, acceptors and clients do wrong: every request is answered, or its client has gone.
  use ExUnit.Case, async: true
  import Tame.HTTP.Test.Client
  alias Tame.HTTP.Test.{Frames, Peer}

  # In place of the library's own: the first processes that are to take a request die before they do, or are none.
  @none_at_first """
  defmodule :tame_http_requests do
    def spawn(fun) do
      case :persistent_term.get(:to_fail) do
        0 ->
          :erlang.spawn(fun)
          :ok

        n ->
          :persistent_term.put(:to_fail, n - 1)
          :full
      end
    end

    def end_all(_), do: :ok
  end
  """

  defp none_at_first(count) do
    peer = Peer.start_link()
    Peer.call(peer, :persistent_term, :put, [:to_fail, count])
    Peer.call(peer, Code, :put_compiler_option, [:ignore_module_conflict, true])
    [{:tame_http_requests, _}] = Peer.call(peer, Code, :compile_string, [@none_at_first])
    peer
  end

  # Tells the test of each request, and does what it is told. Who has its reference keeps it from being garbage.
  defp told(without \\ [:ref]) do
    test = self()

    fn request ->
      send(test, {:request, self(), Map.drop(request, without)})

      receive do
        {:answer, answer} -> answer
        :crash -> raise "on purpose"
      end
    end
  end

  defp ask(port, path \\ "/"), do: send_raw(port, "GET #{path} HTTP/1.1\r\nhost: a\r\n\r\n")

  for run <- [:process, :acceptor] do
    test "a handler that crashes, answers nonsense or bad headers: 500, and the next is served: #{run}" do
      bad = [
        fn -> raise "on purpose" end,
        fn -> throw(:on_purpose) end,
        fn -> exit(:on_purpose) end,
        fn -> :nonsense end,
        fn -> {99, [], ""} end,
        fn -> {200, [{"a\r\nb", "c"}], ""} end,
        fn -> {200, [{"a", "b\r\nset-cookie: c"}], ""} end,
        fn -> {200, [{"transfer-encoding", "chunked"}], ""} end,
        fn -> {200, [], :nonsense} end,
        fn -> {200, [], {:file, "/there/is/none"}} end
      ]

      handler = fn
        %{path: "/" <> ""} -> {200, [], "hello"}
        %{path: "/" <> n} -> Enum.at(bad, String.to_integer(n)).()
      end

      {server, port} = start(handler: handler, run: unquote(run))

      for n <- 0..(length(bad) - 1) do
        assert {{500, _, ""}, ^n} = {get(port, "/#{n}"), n}
        assert {200, _, "hello"} = get(port)
      end

      balanced(server)
    end
  end

  test "a handler's process is killed: 500 at once" do
    {server, port} = start(handler: told())
    socket = ask(port)
    assert_receive {:request, handler, _}, 5000
    Process.exit(handler, :kill)
    assert {500, _, ""} = answer(socket)
    assert %{failed: 1} = balanced(server)
  end

  defp child(server, id) do
    {_, pid, _, _} = List.keyfind(Supervisor.which_children(server), id, 0)
    pid
  end

  defp owner(server), do: child(server, :server)

  defp acceptor(server) do
    [{_, acceptor, _, _}] = Supervisor.which_children(child(server, :acceptors))
    acceptor
  end

  test "an acceptor is killed: processes that have requests go on, those that come go to the next" do
    {server, port} = start(handler: told(), credit: 1)
    sockets = for _ <- 1..3, do: ask(port)
    handlers = for _ <- 1..3, do: assert_receive({:request, _, _}, 5000) |> elem(1)
    Process.exit(acceptor(server), :kill)
    socket = ask(port)
    assert_receive {:request, handler, _}, 5000
    for pid <- [handler | handlers], do: send(pid, {:answer, {200, [], "hello"}})
    for socket <- [socket | sockets], do: assert({200, _, "hello"} = answer(socket))
    assert %{answered: 4} = balanced(server)
  end

  test "an acceptor is killed: the one that it handles is answered 500, those behind it go to the next" do
    {server, port} = start(handler: told(), run: :acceptor, credit: 10)
    first = ask(port)
    assert_receive {:request, _, _}, 5000
    others = for _ <- 1..5, do: ask(port)
    # All of them wait for the same acceptor.
    eventually(fn -> :tame_http.info(server).in_flight == 6 end)
    Process.exit(acceptor(server), :kill)
    assert {500, _, ""} = answer(first)

    for _ <- others do
      assert_receive {:request, handler, _}, 5000
      send(handler, {:answer, {200, [], "next"}})
    end

    for socket <- others, do: assert({200, _, "next"} = answer(socket))
    assert %{failed: 1, answered: 5} = balanced(server)
  end

  test "a process is killed before it takes its request: another one takes it" do
    peer = none_at_first(1)
    {server, port} = Peer.server(peer)
    left = ask(port)

    # The next one comes too early to see that: its own process takes what was left, and leaves it.
    next = ask(port)
    assert {200, _, "hello"} = answer(left)
    assert {200, _, "hello"} = answer(next)
    last = ask(port)
    assert {200, _, "hello"} = answer(last)

    assert %{requests: 3, answered: 3, in_flight: 0} =
             Peer.call(peer, :tame_http, :info, [server])
  end

  test "the VM has no process for a request, and none again when that is seen: it has one later" do
    {_, port} = Peer.server(none_at_first(2))
    assert {200, _, "hello"} = answer(ask(port))
  end

  for {how, ends} <- [
        {"it is stopped", quote(do: fn server -> :tame_http.drain(server, 0) end)},
        {"its owner ends by itself",
         quote do
           fn server -> send(owner(server), {:tame_http, :panicked, "on purpose"}) end
         end},
        {"its owner is killed",
         quote do
           fn server -> Process.exit(owner(server), :kill) end
         end},
        {"its supervisor is killed", quote(do: fn server -> Process.exit(server, :kill) end)}
      ] do
    test "a server ends, and the processes of its requests with it: #{how}" do
      test = self()

      # One that waits, and one that goes on behind its answer.
      handler = fn request ->
        if request.path == "/on", do: :tame_http.reply(request, {200, [], "goes on"})
        send(test, {:request, self()})
        Process.sleep(:infinity)
      end

      {server, port} = start(handler: handler)
      ask(port)
      assert_receive {:request, first}, 5000
      # One whose acceptor has ended before.
      Process.exit(acceptor(server), :kill)
      assert {200, _, "goes on"} = get(port, "/on")
      assert_receive {:request, second}, 5000
      other = spawn(fn -> Process.sleep(:infinity) end)
      monitors = for pid <- [first, second], do: Process.monitor(pid)
      unquote(ends).(server)
      for monitor <- monitors, do: assert_receive({:DOWN, ^monitor, _, _, :shutdown}, 10_000)
      assert Process.alive?(other)
      Process.exit(other, :kill)
    end
  end

  test "a server whose owner and supervisor are killed at once: the next that starts ends its processes" do
    test = self()
    handler = fn _ -> send(test, {:request, self()}) && Process.sleep(:infinity) end
    {server, port} = start(handler: handler)
    ask(port)
    assert_receive {:request, pid}, 5000
    monitor = Process.monitor(pid)
    owner = owner(server)
    for each <- [server, owner], do: :erlang.suspend_process(each)
    for each <- [owner, server], do: Process.exit(each, :kill)
    start(handler: handler)
    assert_receive {:DOWN, ^monitor, _, _, :shutdown}, 10_000
  end

  test "acceptors end again and again: known are those that live, and those that have left a process" do
    test = self()
    handler = fn _ -> send(test, {:request, self()}) && Process.sleep(:infinity) end
    {server, port} = start(handler: handler)
    ask(port)
    assert_receive {:request, pid}, 5000
    owner = owner(server)
    first = acceptor(server)
    Process.exit(first, :kill)

    # More than a supervisor would allow.
    for _ <- 1..2000 do
      {ended, monitor} = spawn_monitor(fn -> :ok end)
      receive do: ({:DOWN, ^monitor, _, _, _} -> :ok)
      :ok = :tame_http_server.has_acceptor(owner, ended)
    end

    table = for [pid] <- :ets.match(:tame_http_servers, {{:acceptor, :"$1"}, server}), do: pid
    [acceptors] = for list when is_list(list) and list != [] <- state(owner), do: list

    for known <- [table, acceptors] do
      assert length(known) < 1000
      assert first in known and acceptor(server) in known
    end

    monitor = Process.monitor(pid)
    :ok = :tame_http.drain(server, 0)
    assert_receive {:DOWN, ^monitor, _, _, :shutdown}, 10_000
  end

  defp state(owner), do: owner |> :sys.get_state() |> Tuple.to_list()

  test "an acceptor that does not read: what it has no credit for waits, and is refused in time" do
    {server, port} = start(handler: told(), run: :acceptor, credit: 2, wait_timeout_ms: 1000)
    first = ask(port)
    assert_receive {:request, handler, _}, 5000
    second = ask(port)
    # It has gone to the acceptor, behind the first.
    eventually(fn -> :tame_http.info(server).in_flight == 2 end)
    others = for _ <- 1..3, do: ask(port)
    statuses = for socket <- others, do: answer(socket) |> elem(0)
    assert statuses == [503, 503, 503]
    send(handler, {:answer, {200, [], "first"}})
    assert {200, _, "first"} = answer(first)
    assert_receive {:request, handler, _}, 5000
    send(handler, {:answer, {200, [], "second"}})
    assert {200, _, "second"} = answer(second)
    assert %{refused: 3, answered: 2} = balanced(server)
  end

  test "nobody answers within request_timeout_ms: 504; a late answer is closed, and its handler was told" do
    test = self()

    handler = fn request ->
      id = :tame_http.watch(request)
      assert :tame_http.is_alive(request)
      receive do: ({:tame_http, :gone, ^id} -> :ok)
      send(test, {:alive, :tame_http.is_alive(request)})
      send(test, {:late, :tame_http.reply(request, {200, [], "late"})})
      :later
    end

    {server, port} = start(handler: handler, request_timeout_ms: 3000)
    assert {504, _, ""} = get(port)
    assert_receive {:alive, false}, 5000
    assert_receive {:late, {:error, :closed}}, 5000
    assert %{failed: 1} = balanced(server)
  end

  test "later, and nobody ever: 500 when the garbage is collected" do
    # A process that has ended has no garbage; an idle acceptor collects its own.
    for run <- [:process, :acceptor] do
      {server, port} = start(handler: fn _ -> :later end, run: run, request_timeout_ms: 60_000)
      assert {500, _, ""} = get(port)
      assert %{failed: 1} = balanced(server)
    end
  end

  test "later, by another process" do
    test = self()
    handler = fn request -> send(test, {:request, request}) && :later end
    {server, port} = start(handler: handler, run: :acceptor)
    socket = ask(port)
    assert_receive {:request, request}, 5000
    assert :ok = :tame_http.reply(request, {201, %{"a" => "b"}, ["la", "ter"]})
    assert {201, head, "later"} = answer(socket)
    assert head =~ "a: b"
    assert {:error, :closed} = :tame_http.reply(request, {200, [], "again"})
    assert %{answered: 1} = balanced(server)
  end

  test "the client leaves: the handler sees it" do
    {server, port} = start(handler: told([]))

    for protocol <- [:h1, :h2] do
      leave =
        case protocol do
          :h1 ->
            socket = ask(port)
            fn -> :gen_tcp.close(socket) end

          :h2 ->
            socket = Frames.connect(port)
            :ok = :gen_tcp.send(socket, Frames.get(1))
            fn -> :gen_tcp.close(socket) end
        end

      assert_receive {:request, handler, request}, 5000
      id = :tame_http.watch(request)
      leave.()
      assert_receive {:tame_http, :gone, ^id}, 5000
      refute :tame_http.is_alive(request)
      assert {:error, :closed} = :tame_http.reply(request, {200, [], ""})
      send(handler, {:answer, {200, [], "nobody hears it"}})
    end

    assert %{gone: 2} = balanced(server)
  end

  test "HTTP/2: a client resets some of its streams, which are gone, and the others are answered" do
    {server, port} = start(handler: told([]))
    socket = Frames.connect(port)
    streams = Enum.map(1..40, &(2 * &1 - 1))
    :ok = :gen_tcp.send(socket, Enum.map(streams, &Frames.get/1))
    held = for _ <- streams, do: assert_receive({:request, _handler, _request}, 5000)
    watched = for {:request, handler, request} <- held, do: {:tame_http.watch(request), handler}

    {reset, kept} = Enum.split(streams, 15)
    code = <<8::32>>
    :ok = :gen_tcp.send(socket, Enum.map(reset, &Frames.frame(:rst_stream, 0, &1, code)))

    gone =
      for _ <- reset do
        assert_receive {:tame_http, :gone, id}, 5000
        id
      end

    for {_id, handler} <- watched, do: send(handler, {:answer, {200, [], "hello"}})

    answered =
      Enum.reduce_while(Stream.cycle([0]), {"", []}, fn _, {rest, seen} ->
        case Frames.next(socket, rest) do
          {{:data, 1, stream, "hello"}, rest} when length(seen) + 1 == length(kept) ->
            {:halt, {rest, [stream | seen]}}

          {{:data, 1, stream, "hello"}, rest} ->
            {:cont, {rest, [stream | seen]}}

          {_, rest} ->
            {:cont, {rest, seen}}
        end
      end)
      |> elem(1)

    assert Enum.sort(answered) == kept
    refute_receive {:tame_http, :gone, _}, 100
    assert length(Enum.uniq(gone)) == length(reset)
    assert %{gone: 15, answered: 25} = balanced(server)
  end

  test "HTTP/2: a client leaves while Erlang has its requests, and others wait" do
    {server, port} = start(handler: told([]), max_in_flight: 10, request_timeout_ms: 60_000)
    socket = Frames.connect(port)
    :ok = :gen_tcp.send(socket, Enum.map(1..50, &Frames.get(2 * &1 - 1)))
    held = for _ <- 1..10, do: assert_receive({:request, _handler, _request}, 5000)
    watched = for {:request, _, request} <- held, do: :tame_http.watch(request)
    :gen_tcp.close(socket)
    for id <- watched, do: assert_receive({:tame_http, :gone, ^id}, 5000)
    for {:request, handler, _} <- held, do: send(handler, {:answer, {200, [], "late"}})
    assert %{gone: 50, answered: 0} = balanced(server)
  end
end
