defmodule Tame.RingRouteTest do
  # Calls by a route: to whatever rings it leads to, while these come and go.
  use ExUnit.Case, async: true

  alias Tame.Await
  alias Tame.Test.{PeerVm, RingHost}

  @moduletag isolation: :shared

  # Their numbers in ring_echo.c.
  @echo 0
  @until_cancelled 4
  @raise 5
  @badarg 6

  defp route(hosts) do
    route = :tame_ring.route()
    :ok = lead(route, hosts)
    route
  end

  defp lead(route, hosts), do: :tame_ring.lead(route, List.to_tuple(for %{ring: r} <- hosts, do: r))

  defp call(route, function, args, timeout \\ 30_000) do
    case :tame_ring.call_by(route, function, args, timeout) do
      {:by, ring, reply} when is_reference(ring) -> reply
      other -> other
    end
  end

  test "without a ring there is none to call" do
    route = route([])
    assert :tame_ring.call_by(route, @echo, [1], 1000) == :none
    assert :tame_ring.rings(route) == {}
  end

  test "a reply is what it is by the ring itself, small and large, waited for or not" do
    for options <- [%{}, %{spin_us: 0}, %{spin_us: 1000}] do
      host = RingHost.start_ring([], options)
      route = route([host])

      for term <- terms() do
        assert {:value, ^term} = RingHost.call(host, :echo, [term])
        assert {:value, ^term} = call(route, @echo, [term])
      end

      assert call(route, @raise, [:oops]) == RingHost.call(host, :raise, [:oops])
      assert call(route, @badarg, []) == :badarg
      assert :tame_ring.info(host.ring).slots_in_use == 0
    end
  end

  # Those at which a reply takes another way: in the slot or a region, at once, in slices, on a dirty scheduler.
  defp terms do
    [1, "", :binary.copy("b", 64), Map.new(1..129, &{&1, &1}), Map.new(1..20_000, &{&1, &1})] ++
      for(bytes <- [4000, 16_384, 260 * 1024, 2_000_000], do: :binary.copy("b", bytes)) ++
      for(length <- [2000, 6000, 300_000], do: List.duplicate([], length))
  end

  test "says by which ring it was, where the call has not come to a value at once" do
    [one, two] = hosts = [RingHost.start_ring(), RingHost.start_ring()]
    route = route([one])
    assert {:by, ring, {:raise, _}} = :tame_ring.call_by(route, @raise, [:oops], 1000)
    assert ring == one.ring
    :ok = :tame_ring.close(one.ring, :test)
    assert {:by, ^ring, {:error, :closed}} = :tame_ring.call_by(route, @echo, [1], 1000)
    :ok = lead(route, hosts)
    for n <- 1..20, do: assert(call(route, @echo, [n]) == {:value, n})
    assert :tame_ring.rings(route) == {one.ring, two.ring}
    assert :tame_ring.info(two.ring).calls == 20
  end

  test "goes to the ring with the fewest calls" do
    [one, two, three] = hosts = for _ <- 1..3, do: RingHost.start_ring(["workers=2"])
    route = route(hosts)

    tasks =
      for host <- [one, three],
          do: Task.async(fn -> RingHost.call(host, :until_cancelled, [], 1000) end)

    assert Await.until(fn ->
             Enum.all?([one, three], &(:tame_ring.info(&1.ring).slots_in_use == 1))
           end)

    for n <- 1..20, do: assert(call(route, @echo, [n]) == {:value, n})
    assert :tame_ring.info(two.ring).calls == 20
    Enum.each(tasks, &Task.await/1)
  end

  test "a deadline and the line are those of the ring" do
    host = RingHost.start_ring(~w(slots=1), %{max_waiting: 1})
    route = route([host])
    first = Task.async(fn -> call(route, @until_cancelled, [], 600) end)
    assert Await.until(fn -> :tame_ring.info(host.ring).slots_in_use == 1 end)
    second = Task.async(fn -> call(route, @echo, [2]) end)
    assert Await.until(fn -> :tame_ring.info(host.ring).in_line == 1 end)
    assert call(route, @echo, [3]) == {:error, :busy}
    assert Task.await(first) == {:error, :deadline}
    assert Task.await(second) == {:value, 2}
  end

  # Places of the counters of calls, by their end.
  @value 1
  @no_ring 2

  test "leads elsewhere under calls: each comes to its value, or says that it found no ring" do
    hosts = for _ <- 1..3, do: RingHost.start_ring(~w(slots=4 workers=2))
    route = route(hosts)
    large = :binary.copy("b", 300_000)

    ends = :counters.new(2, [])
    callers = for _ <- 1..6, do: Task.async(fn -> calls(route, large, ends, 1) end)

    for _ <- 1..60, count <- 0..3 do
      :ok = lead(route, Enum.take_random(hosts, count))
      which = if count == 0, do: @no_ring, else: @value
      before = :counters.get(ends, which)
      assert Await.until(fn -> :counters.get(ends, which) >= before + 10 end)
    end

    for %{pid: pid} <- callers, do: send(pid, :enough)
    Task.await_many(callers, 600_000)
    assert Enum.all?(hosts, &(:tame_ring.info(&1.ring).slots_in_use == 0))
  end

  defp calls(route, large, ends, n) do
    term = if rem(n, 500) == 0, do: {n, large}, else: n

    case call(route, @echo, [term]) do
      {:value, ^term} -> :counters.add(ends, @value, 1)
      :none -> :counters.add(ends, @no_ring, 1)
    end

    receive do
      :enough -> :ok
    after
      0 -> calls(route, large, ends, n + 1)
    end
  end

  test "keeps its rings" do
    test = self()

    # The owner lives, and holds no reference.
    owner =
      spawn_link(fn ->
        receive do
          {:open, host} ->
            {:ok, ring} = :tame_ring.open(host.os_pid, host.fd, %{})
            send(test, {:ring, ring})
        end

        Process.sleep(:infinity)
      end)

    host = RingHost.start()
    send(owner, {:open, host})
    route = :tame_ring.route()
    lead_to_received(route)
    for pid <- [owner, self()], do: :erlang.garbage_collect(pid)
    assert call(route, @echo, [1]) == {:value, 1}
  end

  defp lead_to_received(route) do
    receive do: ({:ring, ring} -> :ok = :tame_ring.lead(route, {ring}))
  end

  test "gives up the rings that it does not lead to, and all with its own end" do
    peer = PeerVm.start()
    assert :peer.call(peer, Tame.RouteScenarios, :gives_up, [], 600_000) == {2, 1, 0, 0}
    :peer.stop(peer)
  end

  test "no route, no rings, too many" do
    route = :tame_ring.route()
    host = RingHost.start_ring()
    assert_raise ArgumentError, fn -> :tame_ring.lead(:no_route, {}) end
    assert_raise ArgumentError, fn -> :tame_ring.lead(route, {:no_ring}) end
    assert_raise ArgumentError, fn -> :tame_ring.lead(route, [host.ring]) end
    assert_raise ArgumentError, fn -> :tame_ring.lead(route, Tuple.duplicate(host.ring, 65)) end
    assert_raise ArgumentError, fn -> :tame_ring.rings(:no_route) end
    assert_raise ArgumentError, fn -> :tame_ring.call_by(:no_route, 0, [], 1000) end
    assert :ok = :tame_ring.lead(route, Tuple.duplicate(host.ring, 64))
    assert_raise ArgumentError, fn -> :tame_ring.call_by(route, -1, [], 1000) end
    assert call(route, @echo, [1]) == {:value, 1}
  end

  describe "the library" do
    test "may be replaced under calls" do
      peer = PeerVm.start()
      ends = :peer.call(peer, Tame.RouteScenarios, :upgrade, [3], 600_000)
      assert ends == [:value]
      :peer.stop(peer)
    end

    test "of another layout loses routes, which says so" do
      folder = RingHost.other_layout!()
      peer = PeerVm.start()
      found = :peer.call(peer, Tame.RouteScenarios, :other_layout, [~c"#{folder}"], 600_000)
      assert found == {:none, {}, :lost, :ok, :none}
      :peer.stop(peer)
    end
  end
end
