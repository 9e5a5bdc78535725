# tame_tcp beside gen_tcp and OTP's socket: each row one interleaved run, in another order each round, the peer a program
# in C on the same core. `make bench` says how the VM is started.
Code.require_file("../../bench_table.exs", __DIR__)
Code.require_file("bare.ex", __DIR__)
Code.require_file("ways.ex", __DIR__)
Code.require_file("calls.ex", __DIR__)

defmodule Tame.Tcp.Bench do
  alias Tame.Packages.BenchTable
  alias Tame.Tcp.Bench.{Calls, Ways}

  @idle String.to_integer(System.get_env("BENCH_IDLE", "9000"))
  @plain [:gen_tcp, :socket, :tame_tcp]
  @message :binary.copy("x", 64)
  # Before a stream is timed: its buffers have their size then.
  @warm_bytes 32 * 1024 * 1024
  @connections 10
  @all [:gen_tcp, :gen_tcp_once, :gen_tcp_once_64k, :socket, :tame_tcp, :tame_tcp_once]

  def run do
    BenchTable.head()
    IO.puts("congestion control #{System.get_env("BENCH_CONGESTION", "reno")}, at both ends")
    {:ok, _} = Application.ensure_all_started(:tame_tcp)

    rows = [
      {"trip", fn -> for size <- [64, 65_536], do: round_trips(size) end},
      {"stream", fn -> for size <- [65_536, 1_048_576], do: stream(size) end},
      {"accept", &accepts/0},
      {"active", &active/0},
      {"idle", &idle/0},
      {"calls", fn -> Calls.run(BenchTable.rounds()) end}
    ]

    only = System.get_env("BENCH_ONLY", "trip stream accept active idle calls")
    for {name, row} <- rows, only =~ name, do: row.()
  end

  defp round_trips(size) do
    bytes = :binary.copy("x", size)
    {peer, port} = peer(["echo"])
    ends = for way <- @all ++ [:bare], do: {way, Ways.connect(way, port)}

    table("round trip of #{size} B", ["µs", "CPU µs"], ends, fn {way, socket} ->
      BenchTable.timed(fn ->
        :ok = Ways.send(way, socket, bytes)
        :ok = Ways.recv(way, socket, size)
      end)
    end)

    for {way, socket} <- ends, do: Ways.close(way, socket)
    Port.close(peer)
  end

  # Each turn by several connections, one after the other: what a lost segment has made of a connection's window stays, and
  # is 10% between two of the same way.
  defp stream(size) do
    bytes = :binary.copy("x", size)
    {peer, port} = peer(["sink"])
    ways = Enum.map(@plain, &{&1, nil})

    table("stream in #{div(size, 1024)} KiB", ["GB/s", "CPU s/GB"], ways, fn {way, _} ->
      parts = for _ <- 1..@connections, do: stream_part(way, port, bytes)
      [us, cpu_us] = Enum.zip_with(parts, &(Enum.sum(&1) / @connections))
      [size / us / 1000, cpu_us / size * 1000]
    end)

    Port.close(peer)
  end

  defp stream_part(way, port, bytes) do
    socket = Ways.connect(way, port)
    for _ <- 1..div(@warm_bytes, byte_size(bytes)), do: :ok = Ways.send(way, socket, bytes)
    ms = div(BenchTable.turn_ms(), @connections)
    result = BenchTable.timed(fn -> :ok = Ways.send(way, socket, bytes) end, ms)
    Ways.close(way, socket)
    result
  end

  defp accepts do
    times = BenchTable.turn_ms() * 4

    table("accept and close", ["per s", "CPU µs"], Enum.map(@plain, &{&1, nil}), fn {way, _} ->
      {listening, number} = Ways.listen(way)
      before = BenchTable.now()
      peer = start(["connect", "#{number}", "#{times}"])
      for _ <- 1..times, do: Ways.close(way, Ways.accept(way, listening))
      "done" = line(peer)
      [us, cpu] = BenchTable.per(before, times)
      Ways.close(way, listening)
      [1_000_000 / us, cpu]
    end)
  end

  defp active do
    trips = BenchTable.turn_ms() * 60

    table("1,000 connections, 64 B", ["µs", "CPU µs"], Enum.map(@all, &{&1, nil}), fn {way, _} ->
      {listening, number} = Ways.listen(way)
      peer = start(["ping", "#{number}", "1000", "#{trips}", "64"])

      servers =
        for _ <- 1..1000 do
          socket = Ways.accept(way, listening)
          pid = spawn(fn -> receive(do: (:go -> echo(way, socket))) end)
          :ok = Ways.give(way, socket, pid)
          send(pid, :go)
          pid
        end

      "ready" = line(peer)
      before = BenchTable.now()
      Port.command(peer, "go\n")
      "done" = line(peer)
      result = BenchTable.per(before, trips)
      Port.close(peer)
      for pid <- servers, do: Process.exit(pid, :kill)
      Ways.close(way, listening)
      result
    end)
  end

  defp echo(way, socket) do
    with :ok <- Ways.recv(way, socket, 64),
         :ok <- Ways.send(way, socket, @message),
         do: echo(way, socket)
  end

  # Bytes of the VM for each of many connections of one process, each turn from the same number of descriptors.
  defp idle do
    table(
      "#{@idle} idle, B each",
      ["passive", "armed"],
      Enum.map(@plain, &{&1, nil}),
      &idle_turn/1
    )
  end

  defp idle_turn({way, _}) do
    test = self()
    open = descriptors()
    {pid, monitor} = spawn_monitor(fn -> hold(way, test) end)
    result = receive(do: ({^pid, result} -> result))
    Process.exit(pid, :kill)
    receive(do: ({:DOWN, ^monitor, _, _, _} -> :ok))
    true = closed?(open, 2000)
    result
  end

  defp closed?(open, tries),
    do:
      descriptors() <= open or
        (tries > 0 and Process.sleep(5) == :ok and closed?(open, tries - 1))

  defp descriptors, do: length(File.ls!("/proc/self/fd"))

  defp hold(way, test) do
    {listening, number} = Ways.listen(way)
    before = memory()
    peer = start(["hold", "#{number}", "#{@idle}"])
    sockets = for _ <- 1..@idle, do: Ways.accept(way, listening)
    "held" = line(peer)
    passive = memory() - before
    Enum.each(sockets, &(:ok = Ways.arm(way, &1)))
    armed = memory() - before
    send(test, {self(), [passive / @idle, armed / @idle]})
    Process.sleep(:infinity)
  end

  defp memory do
    Enum.each(Process.list(), &:erlang.garbage_collect/1)
    :erlang.memory(:total)
  end

  # ---- what all use ----

  defp table(title, columns, subjects, turn),
    do: BenchTable.print(title, columns, {"vs gen_tcp", :gen_tcp}, subjects, turn)

  defp peer(arguments) do
    peer = start(arguments)
    {peer, String.to_integer(line(peer))}
  end

  defp start(arguments),
    do: Port.open({:spawn_executable, "build/peer"}, [:binary, line: 100, args: arguments])

  defp line(peer) do
    receive do
      {^peer, {:data, {:eol, text}}} -> text
    after
      60_000 -> raise "the peer says nothing"
    end
  end
end

Tame.Tcp.Bench.run()
