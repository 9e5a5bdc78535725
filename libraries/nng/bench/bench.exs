# tame_nng as a NIF beside itself as a driver: each row one interleaved run, in another order each round. Both ends are sockets of
# this VM, of one process each. nng's threads are included in the CPU.
Code.require_file("../../bench_table.exs", __DIR__)

defmodule Tame.Nng.Bench do
  alias Tame.Packages.BenchTable

  @ways [:nif, :driver]

  def run do
    BenchTable.head()
    {:ok, _} = Application.ensure_all_started(:tame_nng)
    if System.get_env("BENCH_ISOLATED"), do: isolate()
    only = System.get_env("BENCH_ONLY", "trip request stream")

    for transport <- [:inproc, :ipc, :tcp] do
      if only =~ "trip", do: for(size <- [64, 65_536], do: round_trips(transport, size))
      if only =~ "request", do: requests(transport)
      if only =~ "stream", do: for(size <- [64, 65_536], do: stream(transport, size))
    end
  end

  # The sockets of the driver stay here.
  defp isolate do
    {:ok, _} = Application.ensure_all_started(:tame)
    :ok = :tame.isolate(:tame_nng_nif)
    IO.puts("the NIF is isolated: its sockets are in another process, whose CPU is not counted")
  end

  defp round_trips(transport, size) do
    bytes = :binary.copy("x", size)

    ends =
      for way <- @ways do
        {rep, req} = connect(:rep0, :req0, way, transport)
        give(rep, fn -> echo(rep) end)
        {way, req}
      end

    table("#{transport}: round trip of #{size} B", ["µs", "CPU µs"], ends, fn {_, req} ->
      BenchTable.timed(fn ->
        :ok = :tame_nng.send(req, bytes)
        {:ok, _} = :tame_nng.recv(req)
      end)
    end)

    for {_, req} <- ends, do: :tame_nng.close(req)
  end

  # Each in a context of its own, one after the other.
  defp requests(transport) do
    ends =
      for way <- @ways do
        {rep, req} = connect(:rep0, :req0, way, transport)
        give(rep, fn -> echo(rep) end)
        {way, req}
      end

    table("#{transport}: request/2 of 64 B", ["µs", "CPU µs"], ends, fn {_, req} ->
      BenchTable.timed(fn -> {:ok, _} = :tame_nng.request(req, :binary.copy("x", 64)) end)
    end)

    for {_, req} <- ends, do: :tame_nng.close(req)
  end

  # push to pull; the receiver is active, 100 messages of credit at a time.
  defp stream(transport, size) do
    bytes = :binary.copy("x", size)
    ends = for way <- @ways, do: {way, connect(:pull0, :push0, way, transport)}

    for {_, {pull, push}} <- ends do
      :ok = :tame_nng.setopts(push, send_buffer: 128)
      :ok = :tame_nng.setopts(pull, recv_buffer: 128)
      give(pull, fn -> swallow(pull) end)
    end

    table("#{transport}: messages of #{size} B", ["per s", "CPU µs"], ends, fn {_, {_, push}} ->
      [us, cpu] = BenchTable.timed(fn -> :ok = :tame_nng.send(push, bytes) end)
      [1_000_000 / us, cpu]
    end)

    for {_, {_, push}} <- ends, do: :tame_nng.close(push)
  end

  defp connect(listens, dials, way, transport) do
    {:ok, a} = :tame_nng.open(listens, by: way)
    {:ok, b} = :tame_nng.open(dials, by: way)
    {:ok, listener} = :tame_nng.listen(a, address(transport))
    {:ok, url} = :tame_nng.url(listener)
    {:ok, _} = :tame_nng.dial(b, url, [:wait])
    {a, b}
  end

  defp address(:tcp), do: "tcp://127.0.0.1:0"
  defp address(:inproc), do: "inproc://bench_#{System.unique_integer([:positive])}"

  defp address(:ipc) do
    name = "tame_nng_bench_#{System.pid()}_#{System.unique_integer([:positive])}"
    "ipc://#{Path.join(System.tmp_dir!(), name)}"
  end

  # A process that owns the socket, and is linked to us.
  defp give(socket, fun) do
    pid = spawn_link(fn -> receive(do: (:yours -> fun.())) end)
    :ok = :tame_nng.controlling_process(socket, pid)
    send(pid, :yours)
  end

  defp echo(rep) do
    {:ok, bytes} = :tame_nng.recv(rep)
    :ok = :tame_nng.send(rep, bytes)
    echo(rep)
  end

  defp swallow(pull) do
    :ok = :tame_nng.setopts(pull, active: 100)
    swallow_some(pull)
  end

  defp swallow_some(pull) do
    receive do
      {:nng, ^pull, _} -> swallow_some(pull)
      {:nng_passive, ^pull} -> swallow(pull)
    end
  end

  defp table(title, columns, subjects, turn),
    do: BenchTable.print(title, columns, {"driver / nif", :nif}, subjects, turn)
end

Tame.Nng.Bench.run()
