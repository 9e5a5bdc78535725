defmodule Tame.Load.ClientTest do
  # Not async: it is about times.
  use ExUnit.Case
  import Tame.Test.OsProcess

  alias Tame.Load.{Client, Requests}

  # A server in this VM that does what a function says for a path.
  defp server(answer) do
    {:ok, port} = :tame_load_bare.start(0, :h1, answer)
    port
  end

  defp options(port, more \\ []) do
    Map.merge(
      %{
        port: port,
        protocol: :h1,
        path: "/hello",
        rate: 200,
        count: 100,
        connections: 8,
        streams: 1,
        start_ns: 0,
        wait_ms: 20_000
      },
      Map.new(more)
    )
  end

  defp run(options) do
    options |> Client.start() |> Client.await(System.monotonic_time(:millisecond) + 30_000)
  end

  defp requests(options) do
    assert {:ok, %{requests: requests}} = run(options)
    requests
  end

  defp times(requests, wait_ms \\ 20_000) do
    end_ns = Requests.end_ns(requests, wait_ms)
    Requests.quantiles(for r <- requests, us = Requests.us(r, end_ns), do: us)
  end

  test "a server with a fixed delay measures that delay" do
    port =
      server(fn _ ->
        # The delay that the test measures.
        Process.sleep(50)
        {200, "late"}
      end)

    p50_us = fn ->
      requests = requests(options(port, connections: 40))
      assert %{planned: 100, sent: 100, answered: 100} = Requests.counts(requests)
      # None is quicker than the delay.
      assert Enum.min(for r <- requests, do: Requests.us(r, 0)) >= 50_000
      times(requests).p50
    end

    # A run takes half a second: what is more than the delay may be a turn of others.
    assert Enum.any?(1..20, fn _ -> p50_us.() < 200_000 end)
  end

  # 200 requests a second on few connections: all that are planned while the server stands still see it, and not only those
  # eight that are under way.
  test "a server that is stopped for a second shows it in p99 and max of an open loop" do
    {:ok, peer} = Tame.Peer.start([])
    on_exit(fn -> Tame.Peer.stop(peer) end)
    spec = %{server: :tame_load_bare, port: 0, protocol: :h1, work: :nothing, sample_ms: 1000}
    :ok = Tame.Peer.cast(peer, :tame_load_agent, :run, [self(), :tag, spec])
    assert_receive {:tame_load_agent, :tag, {:ready, %{port: port}}}, 20_000

    client = Client.start(options(port, count: 600))

    # Times of the scenario, no waiting for something: half a second that goes well, then a second that the server stands still.
    Process.sleep(500)
    stop(peer.os_pid)
    Process.sleep(1000)
    signal(peer.os_pid, "CONT")

    assert {:ok, %{requests: requests}} =
             Client.await(client, System.monotonic_time(:millisecond) + 30_000)

    assert %{planned: 600, sent: 600, answered: 600} = Requests.counts(requests)
    %{p50: p50, p99: p99, p999: p999, max: max} = times(requests)
    assert max > 900_000 and p999 > 900_000 and p99 > 800_000
    assert p50 < 500_000
    # A third of the run, and more than the eight that were under way.
    assert Enum.count(requests, &(Requests.us(&1, 0) > 100_000)) > 100
  end

  test "refused and failed are told apart, and all counts add up" do
    count = :counters.new(1, [])

    port =
      server(fn _ ->
        :counters.add(count, 1, 1)

        Enum.at(
          [{200, "ok"}, {503, "busy"}, {500, "no"}, {200, ""}],
          rem(:counters.get(count, 1), 4)
        )
      end)

    counts = port |> options() |> requests() |> Requests.counts()
    assert %{sent: 100, answered: 50, refused: 25, failed: 25, unanswered: 0} = counts
    assert :counters.get(count, 1) == 100
  end

  test "what is never answered is given up, and counts as failed with the time that it had waited" do
    port = server(fn _ -> Process.sleep(:infinity) end)
    requests = requests(options(port, count: 20, connections: 4, wait_ms: 300))

    assert %{planned: 20, sent: 4, answered: 0, failed: 4, unanswered: 4} =
             Requests.counts(requests)

    %{p50: p50} = times(requests, 300)
    assert p50 > 300_000
  end

  test "a server that goes away is lost connections, and no hang" do
    port =
      server(fn
        "/hello" -> exit(:normal)
        _ -> {200, ""}
      end)

    counts = port |> options(count: 40, wait_ms: 200) |> requests() |> Requests.counts()
    assert counts.failed > 0 and counts.answered == 0
    assert counts.sent == counts.failed
  end

  test "nobody who listens is one line" do
    assert {:error, line} = run(options(free_tcp_port()))
    assert line =~ "cannot connect 8 times to 127.0.0.1:"
    refute line =~ "\n"
  end

  test "wrong arguments are one line with the value" do
    for {wrong, expected} <- [
          {[rate: 0], "rate 0: expected a whole number from 1 to"},
          {[count: 3_000_000], "count 3000000: expected"},
          {[connections: 0], "connections 0: expected a whole number from 1 to 1000"},
          {[streams: 2], "streams 2: expected a whole number from 1 to 1"},
          {[path: "hello"], "path hello: expected one that begins with /"},
          {[protocol: :h3], "protocol h3: expected h1 or h2"}
        ] do
      assert {:error, line} = run(options(80, wrong))
      assert line =~ expected
    end
  end

  test "a client ends with the process that started it" do
    port = server(fn _ -> {200, ""} end)
    test = self()

    owner =
      spawn(fn ->
        send(test, {:os_pid, Client.os_pid(Client.start(options(port, count: 100_000)))})
        Process.sleep(:infinity)
      end)

    assert_receive {:os_pid, os_pid}
    Process.exit(owner, :kill)
    await_gone(os_pid)
  end

  test "output that is cut off is no result" do
    assert {:error, "the client wrote no whole result"} = Client.read("tame_load 2 0 0\nabc", 1)
    assert {:error, _} = Client.read("", 1)
  end
end
