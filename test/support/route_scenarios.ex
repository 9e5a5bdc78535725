defmodule Tame.RouteScenarios do
  @moduledoc "What becomes of routes in a throw-away emulator, as its library is replaced, or its threads are counted."

  alias Tame.{Await, OsThreads}
  alias Tame.Test.RingHost

  @doc "What calls by a route come to while the library is replaced `rounds` times."
  def upgrade(rounds) do
    RingHost.load_from_copy(0)
    {:module, :tame_ring_nif} = :code.load_file(:tame_ring_nif)
    host = RingHost.start_ring(~w(slots=4 workers=2))
    route = :tame_ring.route()
    :ok = :tame_ring.lead(route, {host.ring})
    test = self()

    callers = for _ <- 1..4, do: spawn(fn -> calls_by(route, test) end)

    for round <- 1..rounds do
      RingHost.load_from_copy(round)
      :code.purge(:tame_ring_nif)
      {:module, :tame_ring_nif} = :code.load_file(:tame_ring_nif)
      true = Await.until(fn -> :code.soft_purge(:tame_ring_nif) end)
      :ok = :tame_ring.lead(route, {host.ring})
      true = :tame_ring.rings(route) == {host.ring}
    end

    for pid <- callers, do: send(pid, :enough)
    Enum.uniq(for pid <- callers, do: receive(do: ({^pid, ends} -> ends)))
  end

  defp calls_by(route, test) do
    case :tame_ring.call_by(route, 0, [:term], 30_000) do
      {:value, :term} -> :value
      {:by, _ring, {:value, :term}} -> :value
      other -> send(test, {self(), other})
    end

    receive do
      :enough -> send(test, {self(), :value})
    after
      0 -> calls_by(route, test)
    end
  end

  @doc """
  Rings that nothing but a route keeps, whose owners live: how many reader threads there are while it leads to two of them,
  to one, and to none, and when a route that leads to another is collected.
  """
  def gives_up do
    threads = OsThreads.count()
    route = :tame_ring.route()
    lead_to_owned(route, [RingHost.start(), RingHost.start()])
    both = readers(2, threads)
    :ok = :tame_ring.lead(route, {elem(:tame_ring.rings(route), 0)})
    one = readers(1, threads)
    :ok = :tame_ring.lead(route, {})
    none = readers(0, threads)
    {pid, ref} = spawn_monitor(fn -> lead_to_owned(:tame_ring.route(), [RingHost.start()]) end)
    receive do: ({:DOWN, ^ref, :process, ^pid, :normal} -> :ok)
    {both, one, none, readers(0, threads)}
  end

  # Each ring has an owner, which lives on without it.
  defp lead_to_owned(route, hosts) do
    test = self()

    for host <- hosts do
      spawn(fn ->
        {:ok, ring} = :tame_ring.open(host.os_pid, host.fd, %{})
        send(test, {:ring, ring})
        Process.sleep(1)
        :erlang.garbage_collect()
        Process.sleep(:infinity)
      end)
    end

    rings = for _ <- hosts, do: receive(do: ({:ring, ring} -> ring))
    :ok = :tame_ring.lead(route, List.to_tuple(rings))
  end

  # How many there are, when that has become `count` and stays so for a while.
  defp readers(count, threads) do
    :erlang.garbage_collect()
    Await.until(fn -> OsThreads.count() - threads == count end)
    Process.sleep(100)
    :erlang.garbage_collect()
    OsThreads.count() - threads
  end

  @doc "What is said of a route whose library was replaced by one of another layout."
  def other_layout(folder) do
    host = RingHost.start_ring()
    route = :tame_ring.route()
    :ok = :tame_ring.lead(route, {host.ring})
    :os.putenv(~c"TAME_NATIVE_DIR", folder)
    {:module, :tame_ring_nif} = :code.load_file(:tame_ring_nif)
    # The ring is lost as well: it is as if it were not there.
    another = :tame_ring.route()

    {:tame_ring.call_by(route, 0, [1], 1000), :tame_ring.rings(route),
     :tame_ring.lead(route, {host.ring}), :tame_ring.lead(another, {host.ring}),
     :tame_ring.call_by(another, 0, [1], 1000)}
  end
end
