defmodule Tame.Load.Cell do
  @moduledoc """
  Runs one cell: a server in a VM of its own, two clients, and what was seen from inside, from outside and by the clients,
  as plain data.

  One client asks for `/hello` at a fixed rate all the time; the other one asks for `/job` from `lead_ms` on, for `for_ms`. Both
  count from planned starts (`Tame.Load.Client`). A server that dies is no error: how and when is in the result. Nothing here
  waits for longer than the clients' own time and a grace; then the VM is killed.
  """

  alias Tame.{CPU, Duration, Peer}
  alias Tame.Load.{Client, Cowboy, TameHTTP, Threads}

  @typedoc """
  `:jobs` is nil for a cell without a second client. Rates in requests a second; `:work` is what `:tame_load_work.set/1` takes.
  """
  @type spec :: %{
          server: module(),
          protocol: :h1 | :h2,
          port: 0..65535,
          work: term(),
          hello: %{rate: pos_integer(), connections: pos_integer(), streams: pos_integer()},
          jobs: nil | %{rate: pos_integer(), connections: pos_integer(), streams: pos_integer()},
          lead_ms: non_neg_integer(),
          for_ms: pos_integer(),
          tail_ms: non_neg_integer(),
          wait_ms: non_neg_integer()
        }

  @typedoc "Times `_ns` are those of the machine's clock."
  @type raw :: %{
          facts: map(),
          start_ns: integer(),
          jobs_start_ns: integer(),
          jobs_end_ns: integer(),
          hello: Client.result(),
          jobs: nil | Client.result(),
          counts: nil | map(),
          samples: [map()],
          cpu: [CPU.sample()],
          threads: {nil | Threads.reading(), nil | Threads.reading()},
          died: nil | %{after_ms: number(), how: String.t()}
        }

  @sample_ms 100

  # To start applications and to load libraries.
  @ready_ms 20_000

  # Within that a server that listens has to answer, before anything is measured; `:answer_ms` of a cell is another time.
  @answer_ms 5_000

  # For the clients to connect before the first request is due.
  @connect_ms 300

  # How long after its own time a client may take to end.
  @grace_ms 10_000

  # A VM whose schedulers are held does not say its counts.
  @counts_ms 5_000

  @doc "How often the VM's counters are read."
  @spec sample_ms() :: pos_integer()
  def sample_ms, do: @sample_ms

  @doc "Runs a cell in a VM with these emulator flags."
  @spec run(spec(), [String.t()]) :: {:ok, raw()} | {:error, String.t()}
  def run(spec, flags) do
    with_server(spec, flags, fn server -> measure(server, spec) end)
  end

  @doc "Starts a server, asks it for one answer, and gives `fun` what it needs to be driven. Stops it after that."
  @spec with_server(map(), [String.t()], (map() -> {:ok, value} | {:error, String.t()})) ::
          {:ok, value} | {:error, String.t()}
        when value: term()
  def with_server(spec, flags, fun) do
    status_file = Path.join(System.tmp_dir!(), "tame_load_#{System.pid()}_#{unique()}")

    try do
      with {:ok, peer} <- Peer.start(Peer.code_path(code()) ++ flags, status_file) do
        try do
          tag = make_ref()
          server = %{peer: peer, tag: tag, monitor: Process.monitor(peer.pid), status: status_file}
          agent = Map.take(spec, [:server, :port, :protocol, :work])
          agent = Map.put(agent, :sample_ms, @sample_ms)
          :ok = Peer.cast(peer, :tame_load_agent, :run, [self(), tag, agent])

          with {:ok, facts} <- ready(server, spec),
               server = Map.put(server, :facts, facts),
               :ok <- answers(server, spec),
               do: fun.(server)
        after
          Peer.stop(peer)
        end
      end
    after
      _ = File.rm(status_file)
    end
  end

  defp unique, do: :erlang.unique_integer([:positive])
  defp code, do: Cowboy.code_path() ++ TameHTTP.code_path()

  defp ready(%{tag: tag, monitor: monitor} = server, spec) do
    receive do
      {:tame_load_agent, ^tag, {:ready, facts}} ->
        {:ok, facts}

      {:tame_load_agent, ^tag, {:failed, reason}} ->
        {:error, refused(spec, reason)}

      {:DOWN, ^monitor, :process, _, _} ->
        {:error, "#{name(spec)} died while it started, #{how(server)}"}
    after
      @ready_ms -> {:error, "#{name(spec)} did not start within #{div(@ready_ms, 1000)} s"}
    end
  end

  defp refused(%{port: port}, :eaddrinuse), do: "--port #{port}: is in use, expected a free one"

  defp refused(%{port: port}, :eacces),
    do: "--port #{port}: is not allowed, expected one above 1023"

  # cowboy names the listener with its reason.
  defp refused(spec, {:badmatch, {:error, {{:shutdown, {_, _, {_, _, reason}}}, _}}}),
    do: refused(spec, reason)

  defp refused(spec, reason), do: "#{name(spec)} does not start: #{inspect(reason, limit: 8)}"

  defp name(%{server: server}), do: "the server #{inspect(server)}"

  defp answers(%{facts: facts}, spec) do
    answer_ms = Map.get(spec, :answer_ms, @answer_ms)

    client =
      Client.start(%{
        port: facts.port,
        protocol: spec.protocol,
        path: "/hello",
        rate: 1,
        count: 1,
        connections: 1,
        streams: 1,
        start_ns: 0,
        wait_ms: answer_ms
      })

    case Client.await(client, now_ms() + answer_ms + @grace_ms) do
      {:ok, %{requests: [%{status: :answered}]}} ->
        :ok

      {:ok, %{requests: [%{status: :failed}]}} ->
        {:error, "#{name(spec)} answers GET /hello with something else than 200"}

      {:ok, _} ->
        {:error,
         "#{name(spec)} does not answer GET /hello within #{Duration.text(1000 * answer_ms)}"}

      {:error, why} ->
        {:error, "#{name(spec)} cannot be asked: #{why}"}
    end
  end

  # ---- the clients -------------------------------------------------------------------------------

  defp measure(%{peer: peer} = server, spec) do
    cpu = CPU.start(peer.os_pid)
    before = counts(server)
    start_ns = :os.perf_counter(:nanosecond) + @connect_ms * 1_000_000
    jobs_start_ns = start_ns + spec.lead_ms * 1_000_000
    jobs_end_ns = jobs_start_ns + spec.for_ms * 1_000_000

    hello =
      client(
        server,
        spec,
        spec.hello,
        "/hello",
        start_ns,
        spec.lead_ms + spec.for_ms + spec.tail_ms
      )

    jobs = spec.jobs && client(server, spec, spec.jobs, "/job", jobs_start_ns, spec.for_ms)
    server = Map.put(server, :start_ns, start_ns)

    {first, died} = until(server, jobs_start_ns, &Threads.read/1, nil)
    {last, died} = until(server, jobs_end_ns, &Threads.read/1, died)
    deadline = deadline(spec)

    hello = Client.await(hello, deadline)
    jobs = jobs && Client.await(jobs, deadline)
    {counts, died} = until(server, 0, fn _ -> since(before, counts(server)) end, died)
    samples = CPU.stop(cpu)

    with {:ok, hello} <- hello, {:ok, jobs} <- if(jobs, do: jobs, else: {:ok, nil}) do
      {:ok,
       %{
         facts: server.facts,
         start_ns: start_ns,
         jobs_start_ns: jobs_start_ns,
         jobs_end_ns: jobs_end_ns,
         hello: hello,
         jobs: jobs,
         counts: counts,
         samples: samples(server.tag, []),
         cpu: samples,
         threads: {first, last},
         died: died
       }}
    end
  end

  defp client(server, spec, how, path, start_ns, for_ms) do
    how
    |> Map.take([:rate, :connections, :streams])
    |> Map.merge(%{
      port: server.facts.port,
      protocol: spec.protocol,
      path: path,
      count: max(1, div(how.rate * for_ms, 1000)),
      start_ns: start_ns,
      wait_ms: spec.wait_ms
    })
    |> Client.start()
  end

  defp deadline(spec), do: now_ms() + spec.tail_ms + spec.wait_ms + @grace_ms

  # Sleeps until that moment of the machine's clock and calls `fun`; nil of a server that is dead by then.
  defp until(%{monitor: monitor, peer: peer} = server, at_ns, fun, died) do
    left_ms = max(0, div(at_ns - :os.perf_counter(:nanosecond), 1_000_000))

    receive do
      {:DOWN, ^monitor, :process, _, _} ->
        after_ms = (:os.perf_counter(:nanosecond) - server.start_ns) / 1_000_000
        {nil, %{after_ms: after_ms, how: how(server)}}
    after
      left_ms -> {if(died == nil, do: fun.(peer.os_pid)), died}
    end
  end

  # Both counted from what was asked before the run.
  defp since(before, later) when before == nil or later == nil, do: nil
  defp since(before, later), do: Map.new(later, fn {key, count} -> {key, count - before[key]} end)

  defp counts(%{peer: peer}) do
    Peer.call(peer, :tame_load_work, :counts, [], @counts_ms)
  catch
    _, _ -> nil
  end

  defp samples(tag, seen) do
    receive do
      {:tame_load_agent, ^tag, {:sample, sample}} -> samples(tag, [sample | seen])
    after
      0 -> Enum.reverse(seen)
    end
  end

  # As the shell of the VM has written it down, see `Tame.Peer.start/2`.
  defp how(%{status: file}) do
    with {:ok, text} <- File.read(file), {status, _} <- Integer.parse(text) do
      if status > 128, do: "signal #{status - 128}", else: "exit status #{status}"
    else
      _ -> "killed from outside"
    end
  end

  defp now_ms, do: System.monotonic_time(:millisecond)
end
