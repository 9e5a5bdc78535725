defmodule Tame.HTTP.Test.Peer do
  @moduledoc false
  # A VM of its own, because what is tested may crash it, with a server in it under load.

  alias Tame.HTTP.Test.Peer

  # Folders of code that come before ours.
  def start_link(first \\ []) do
    paths = Enum.flat_map(:code.get_path() ++ first, &[~c"-pa", &1])
    env = [{~c"ERL_CRASH_DUMP_BYTES", ~c"0"}]
    {:ok, peer, _} = :peer.start(%{connection: :standard_io, args: paths, env: env})
    {:ok, _} = :peer.call(peer, :application, :ensure_all_started, [:elixir])
    {:ok, _} = :peer.call(peer, :application, :ensure_all_started, [:tame_http])
    :ok = :peer.call(peer, :logger, :set_primary_config, [:level, :none])
    ExUnit.Callbacks.on_exit(fn -> stop(peer) end)
    peer
  end

  defp stop(peer) do
    :peer.stop(peer)
  catch
    _, _ -> :ok
  end

  def call(peer, module, name, arguments \\ []),
    do: :peer.call(peer, module, name, arguments, 600_000)

  # The server and its port.
  def server(peer, options \\ %{}), do: call(peer, Peer, :start_there, [options])

  def start_there(options) do
    options = Map.merge(%{ip: {127, 0, 0, 1}, handler: &Tame.HTTP.Test.Client.hello/1}, options)
    {:ok, server} = :tame_http.start(options)
    {server, :tame_http.port(server)}
  end

  # The port of one that a supervisor of its own has, which starts it again as often as need be; `held/1` is its handler.
  def supervised(options) do
    options = Map.merge(%{ip: {127, 0, 0, 1}, handler: &Peer.held/1, name: :web}, options)
    strategy = [strategy: :one_for_one, max_restarts: 1000]
    {:ok, supervisor} = Supervisor.start_link([:tame_http.child_spec(options)], strategy)
    # It would end with this call.
    true = Process.unlink(supervisor)
    :tame_http.port(:web)
  end

  def held(%{path: "/held"}), do: Process.register(self(), :held) && Process.sleep(:infinity)
  def held(request), do: Tame.HTTP.Test.Client.hello(request)

  # Of the pieces of a body, of which it asks for as much as there may be.
  def sizes(request), do: {200, [], request |> sizes([]) |> Enum.join(" ")}

  defp sizes(request, so_far) do
    case :tame_http.read_body(request, %{bytes: 100_000_000}) do
      {:more, data} -> sizes(request, [byte_size(data) | so_far])
      {:done, data, _} -> [byte_size(data) | so_far]
    end
  end

  # The application ends and begins under those servers that others supervise.
  def start_again do
    :ok = Application.stop(:tame_http)
    :ok = Application.start(:tame_http)
  end

  # ---- what runs there ----

  def children(supervisor),
    do: for({id, pid, _, _} <- Supervisor.which_children(supervisor), do: {id, pid})

  def kill_child(server, id) do
    {_, pid} = List.keyfind(children(server), id, 0)
    Process.exit(pid, :kill)
  end

  def kill_acceptor(server) do
    {_, acceptors} = List.keyfind(children(server), :acceptors, 0)
    {_, pid} = Enum.random(children(acceptors))
    Process.exit(pid, :kill)
  end

  def port_if_alive(server) do
    :tame_http.port(server)
  catch
    _, _ -> nil
  end

  def never(_request), do: Process.sleep(:infinity)

  # What a request that was refused took of the I/O thread, in ns, when there are many; of one server in this VM.
  def refusal_ns(server) do
    Tame.HTTP.Test.Client.eventually(fn -> :tame_http.info(server).refused > 30_000 end, 6000)
    [thread] = io_threads()
    [ns | _] = String.split(File.read!(Path.join(thread, "schedstat")))
    div(String.to_integer(ns), :tame_http.info(server).refused)
  end

  # Who answers and who reads while the host of an isolated native half is killed, and what is asked of a request of it then.
  def without_host(kill) do
    parent = self()
    handler = fn request -> send(parent, {:request, request}) && :later end
    {_, port} = start_there(%{handler: handler, body: :stream})

    [one, other, third] =
      for _ <- 1..3 do
        head = "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\n"
        Tame.HTTP.Test.Client.send_raw(port, head)
        receive do: ({:request, request} -> request)
      end

    reader = Task.async(fn -> :tame_http.read_body(one, %{timeout: :infinity}) end)
    pieces = fn send -> for _ <- 1..20, do: send.(:binary.copy("x", 1_000_000)) end
    sender = Task.async(fn -> :tame_http.reply(other, {200, [], {:stream, pieces}}) end)

    for %{pid: pid} <- [reader, sender] do
      Tame.HTTP.Test.Client.eventually(fn ->
        {:current_function, {_, name, _}} = Process.info(pid, :current_function)
        name in [:body, :room, :read_body, :chunk]
      end)
    end

    {_, 0} = System.cmd("kill", ["-KILL", "#{kill}"])
    read_and_sent = for task <- [reader, sender], do: Task.await(task, 20_000)
    id = :tame_http.watch(third)
    gone = receive do: ({:tame_http, :gone, ^id} -> true), after: (5000 -> false)
    reply = &:tame_http.reply(third, {200, [], &1})
    late = [reply.("x"), reply.({:stream, & &1.("x")}), :tame_http.read_body(third)]
    {read_and_sent ++ late, gone, :tame_http.is_alive(third)}
  end

  # What callers get whose call is in the host while it is killed.
  def killed_in_calls(kill) do
    parent = self()
    handler = fn request -> send(parent, {:request, request}) && :later end
    {_, port} = start_there(%{handler: handler, body: :stream})
    streams = &{200, [], {:stream, &1}}
    parts = fn send -> send(parent, :started) && receive(do: (:go -> send.("x"))) end

    calls = [
      &:tame_http.reply(&1, {200, [], "x"}),
      &:tame_http.reply(&1, streams.(fn _ -> :ok end)),
      &:tame_http.reply(&1, streams.(parts)),
      &:tame_http.read_body/1,
      &:tame_http.is_alive/1,
      &(:tame_http.watch(&1) && receive(do: ({:tame_http, :gone, _} -> :gone)))
    ]

    requests =
      for _ <- calls do
        head = "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\n"
        Tame.HTTP.Test.Client.send_raw(port, head)
        receive do: ({:request, request} -> request)
      end

    # One of them is in the middle of its answer.
    {[whole, start | [chunk | _] = others], [one, two | [three | _] = more]} = {calls, requests}
    streaming = Task.async(fn -> chunk.(three) end)
    receive do: (:started -> :ok)
    {_, 0} = System.cmd("kill", ["-STOP", "#{kill}"])
    send(streaming.pid, :go)
    pairs = [{whole, one}, {start, two} | tl(Enum.zip(others, more))]
    tasks = [streaming | for({call, request} <- pairs, do: Task.async(fn -> call.(request) end))]
    for %{pid: pid} <- tasks, do: Tame.HTTP.Test.Client.eventually(fn -> in_call?(pid) end)
    {_, 0} = System.cmd("kill", ["-KILL", "#{kill}"])
    Task.await_many(tasks, 20_000)
  end

  # It waits below a function of the native half.
  defp in_call?(pid) do
    {:current_stacktrace, frames} = Process.info(pid, :current_stacktrace)

    Process.info(pid, :status) == {:status, :waiting} and
      not match?([{Peer, _, _, _} | _], frames)
  end

  # I/O threads in this VM.
  def threads, do: length(io_threads())

  defp io_threads do
    for comm <- Path.wildcard("/proc/#{:os.getpid()}/task/*/comm"),
        match?({:ok, "tame_http_" <> _}, File.read(comm)),
        do: Path.dirname(comm)
  end

  # How often each has slept.
  def sleeps do
    for status <- Path.wildcard("/proc/#{:os.getpid()}/task/*/status"),
        {:ok, text} <- [File.read(status)],
        [_, name] <- [Regex.run(~r/^Name:\s+(tame_http_\d)$/m, text)],
        [_, n] = Regex.run(~r/^voluntary_ctxt_switches:\s+(\d+)$/m, text),
        into: %{},
        do: {name, String.to_integer(n)}
  end

  # Where a library's code is mapped.
  def maps(name) do
    for line <- File.stream!("/proc/#{:os.getpid()}/maps"), line =~ name, line =~ "r-xp", do: line
  end

  # All that this VM may have: processes that have one each.
  def take_files(taken \\ []) do
    parent = self()

    pid =
      spawn(fn ->
        {result, file} = :file.open(~c"/dev/null", [:read, :raw])
        send(parent, {self(), result})
        receive do: (:close -> send(parent, {self(), :file.close(file)}))
      end)

    receive do
      {^pid, :ok} -> take_files([pid | taken])
      {^pid, :error} -> taken
    end
  end

  # What start returns where that many files are left: the port, if the server could start.
  def start_with_files(left) do
    {given_back, kept} = :lists.split(left, take_files())
    close(given_back)
    started = :tame_http.start(%{ip: {127, 0, 0, 1}, handler: &Tame.HTTP.Test.Client.hello/1})
    close(kept)

    case started do
      {:ok, server} -> {:ok, :tame_http.port(server)}
      error -> error
    end
  end

  defp close(files) do
    for pid <- files do
      send(pid, :close)
      receive do: ({^pid, :ok} -> :ok)
    end
  end

  # A VM with a server under load that does something then; what it writes, and its exit status.
  def run_and(how) do
    code = """
    logger:set_primary_config(level, none),
    {ok, _} = application:ensure_all_started(tame_http),
    {ok, S} = tame_http:start(\#{ip => {127,0,0,1}, handler => fun(_) -> {200, [], <<"hello">>} end}),
    Url = "http://127.0.0.1:" ++ integer_to_list(tame_http:port(S)),
    spawn(fun() -> os:cmd("timeout 20 h2load -c 20 -m 10 -D 10 " ++ Url) end),
    Wait = fun W() -> case tame_http:info(S) of \#{answered := N} when N > 1000 -> ok; _ -> timer:sleep(5), W() end end,
    Wait(), #{how}.
    """

    paths = Enum.flat_map(:code.get_path(), &["-pa", to_string(&1)])
    System.cmd("erl", ["-noinput", "-eval", code | paths], stderr_to_stdout: true)
  end
end
