defmodule Tame.RingTest do
  use ExUnit.Case, async: true

  alias Tame.{Await, Property}
  alias Tame.Test.{OsProcess, PeerVm, RingHost}

  import Bitwise
  import :proper_types, only: [any: 0]

  @moduletag isolation: :shared

  # Natives built with sanitizers run slower; and hostile time is what the machine gives.
  @sanitized System.get_env("TAME_NATIVE_DIR") != nil

  describe "a term" do
    test "comes back as it went" do
      host = RingHost.start_ring()

      Property.check(
        any(),
        fn term ->
          RingHost.call(host, :echo, [term]) == {:value, term} and
            RingHost.call(host, :echo_list, [term, term]) == {:value, [term, term]}
        end,
        numtests: 500
      )
    end

    test "of every kind comes back as it went" do
      host = RingHost.start_ring()

      for term <- terms() do
        assert {term, RingHost.call(host, :echo, [term])} == {term, {:value, term}}
        assert RingHost.call(host, :echo_list, [term]) == {:value, [term]}
      end
    end

    test "is encoded as term_to_binary/1 does, keys of maps in its order" do
      for size <- [0, 1, 31, 32, 33, 100, 250] do
        map = Map.new(1..size//1, &{&1 * 7919, -&1})
        assert :tame_ring_nif.encode(map) == :erlang.term_to_binary(map)
      end

      for term <- terms(), encoded = :tame_ring_nif.encode(term), encoded != :encode do
        assert {term, :erlang.binary_to_term(encoded)} == {term, term}
      end
    end

    test "that is not for the NIF is left to term_to_binary/1" do
      deep = Enum.reduce(1..1000, :end, fn _, inner -> [inner] end)
      long = Enum.to_list(1..5000)

      large = Map.new(1..1000, &{&1, &1})

      for term <- [deep, long, large, fn -> 1 end, <<1::3>>, Integer.pow(2, 70)] do
        assert :tame_ring_nif.encode(term) == :encode
      end
    end
  end

  # The NIF remembers that a function's arguments were long, and does not try.
  test "arguments that are long, short and long again" do
    host = RingHost.start_ring()
    terms = [Enum.to_list(1..5000), :short, :binary.copy("x", 100_000), Enum.to_list(1..100), <<>>]

    for term <- Enum.concat(List.duplicate(terms, 3)) ++ Enum.reverse(terms) do
      assert RingHost.call(host, :echo, [term]) == {:value, term}
    end
  end

  test "payloads of 0 B to 100 MB" do
    host = RingHost.start_ring()

    sizes =
      [0, 1, 63, 64, 65, 16_000, 16_320, 16_384, 65_536, 262_130, 262_144] ++
        [266_220, 266_228, 266_234, 266_240, 1_000_000]

    large = if @sanitized, do: [10_000_000], else: [10_000_000, 100_000_000]

    for size <- sizes ++ large do
      binary = :binary.copy(<<0xA5>>, size)
      assert {size, RingHost.call(host, :echo, [binary]) == {:value, binary}} == {size, true}
      assert {size, RingHost.call(host, :echo, [{binary}]) == {:value, {binary}}} == {size, true}
    end

    # Regions are given back on both sides: the host's when it goes to sleep.
    assert Await.until(fn -> :tame_ring.info(host.ring).region_bytes == 0 end)
    assert Await.until(fn -> RingHost.call(host, :reply_pages, []) == {:value, 0} end)
  end

  test "a reply takes the place of arguments that are as large, and needs none of its own" do
    host = RingHost.start_ring()

    for size <- [20_000, 65_536, 262_144] do
      binary = :crypto.strong_rand_bytes(size)
      assert RingHost.call(host, :echo, [binary]) == {:value, binary}
      assert RingHost.call(host, :reply_pages, []) == {:value, 0}
    end

    # What does not fit there, and what stands behind it, find room elsewhere.
    many = :binary.copy(<<7>>, 40_000)
    assert RingHost.call(host, :raw, [<<131, 109, 40_000::32, many::binary>>]) == {:value, many}
    lend = for {id, _} <- :tame_ring.leases(host.ring, 1000), do: id
    first = Enum.min(lend)
    assert RingHost.call(host, :leases, [<<first::64, 1000::64>>, many]) == {:value, many}
    assert Await.until(fn -> :tame_ring.info(host.ring).leases_unused == 0 end)
    assert Await.until(fn -> :tame_ring.info(host.ring).region_bytes == 0 end)
  end

  test "what a reply is, is what the host says" do
    host = RingHost.start_ring()
    assert RingHost.call(host, :raise, [:reason]) == {:raise, :reason}
    assert RingHost.call(host, :badarg, []) == :badarg
    assert RingHost.call(host, :nonsense, []) == {:error, {:bad_reply, :payload}}
    assert RingHost.call(host, :echo, [:still_here]) == {:value, :still_here}
  end

  test "what is larger than its area is refused, and the ring goes on" do
    host = RingHost.start_ring(~w(request_bytes=1048576 reply_bytes=262144))
    assert RingHost.call(host, :echo, [:binary.copy("x", 2_000_000)]) == {:error, :too_large}
    assert RingHost.call(host, :echo, [:binary.copy("x", 500_000)]) == {:error, :too_large}
    assert {:value, <<"x", _::binary>>} = RingHost.call(host, :echo, [:binary.copy("x", 200_000)])
  end

  test "64 callers at once all get their own replies, and none starves" do
    host = RingHost.start_ring(~w(workers=3 slots=16))
    counts = storm(host, 64, 500)
    assert Enum.all?(counts, &match?({:ok, _}, &1))
    assert idle?(host)
  end

  test "a caller that sleeps is woken" do
    host = RingHost.start_ring([], %{spin_us: 0})
    for number <- 1..200, do: assert(RingHost.call(host, :echo, [number]) == {:value, number})
    assert RingHost.call(host, :slow_echo, [:late]) == {:value, :late}
    assert %{spins: 0, waits: waits} = :tame_ring.info(host.ring)
    assert waits > 0
  end

  # Nothing is known of a function that was never called, so its first call is taken to be short, and the worker that is
  # at it to attend to the queue.
  test "a call that was expected to be short and blocks holds up nobody else" do
    for spin_us <- [0, 20], workers <- [2, 3] do
      host = RingHost.start_ring(["workers=#{workers}"], %{spin_us: spin_us})
      for number <- 1..100, do: assert(RingHost.call(host, :echo, [number]) == {:value, number})

      blocked = for _ <- 2..workers, do: spawn(fn -> RingHost.call(host, :until_cancelled, []) end)

      assert Await.until(fn -> :tame_ring.info(host.ring).slots_in_use == workers - 1 end)
      start = now()
      for number <- 1..200, do: assert(RingHost.call(host, :echo, [number]) == {:value, number})
      # A wake-up each is 20 ms in all; not to be woken is for ever.
      assert now() - start < 5000
      for pid <- blocked, do: Process.exit(pid, :kill)
      assert idle?(host)
    end
  end

  test "callers of a full ring wait for a slot in their order, and beyond max_waiting get busy" do
    host = RingHost.start_ring(~w(slots=1), %{max_waiting: 3})
    parent = self()

    [holder | callers] =
      for number <- 1..5 do
        caller =
          spawn(fn ->
            reply =
              if number == 1,
                do: RingHost.call(host, :until_cancelled, []),
                else: RingHost.call(host, :slow_echo, [number])

            send(parent, {self(), reply, now()})
          end)

        # Each has its place before the next one comes: has the slot, waits for it, or is refused.
        assert Await.until(fn ->
                 info = :tame_ring.info(host.ring)
                 info.slots_in_use + info.in_line + info.busy == number
               end)

        caller
      end

    Process.exit(holder, :kill)
    replies = for pid <- callers, do: receive(do: ({^pid, reply, at} -> {reply, at}))
    assert Enum.map(replies, &elem(&1, 0)) == for(n <- 2..4, do: {:value, n}) ++ [{:error, :busy}]
    times = replies |> Enum.take(3) |> Enum.map(&elem(&1, 1))
    assert times == Enum.sort(times)
  end

  describe "the library" do
    test "may be replaced and unloaded under calls" do
      peer = PeerVm.start()

      {rounds, threads_gone} = :peer.call(peer, Tame.RingScenarios, :upgrade, [4], 600_000)

      for {round, old, ends} <- rounds do
        # Open rings go on, and no caller notices.
        assert old == {{:value, round}, {:value, round}}
        assert Enum.uniq(ends) == [:done]
      end

      assert threads_gone
      :peer.stop(peer)
    end

    test "of another layout closes open rings with a reason, and no function fails on them" do
      folder = RingHost.other_layout!()
      peer = PeerVm.start()

      {in_flight, in_line, rest} =
        :peer.call(peer, Tame.RingScenarios, :other_layout, [~c"#{folder}"], 600_000)

      assert in_flight == {:error, {:host_down, :upgraded}}
      # Whether the old code is still there to say that the host has not heard of it, is chance.
      assert in_line in [{:error, {:host_down, :upgraded}}, {:error, :closed}]
      assert rest == {{:error, :closed}, :ok, [], :ok, [], {0, 0}, 0, {0, 0, 0}, 1}
      :peer.stop(peer)
    end

    test "does not keep an emulator from halting, nor crash it" do
      peer = PeerVm.start()
      monitor = Process.monitor(peer)
      catch_exit(:peer.call(peer, Tame.RingScenarios, :halt, [], 600_000))
      assert_receive {:DOWN, ^monitor, :process, ^peer, :normal}, 60_000
    end
  end

  describe "a deadline" do
    test "is kept, tells the running call, and leaves no message" do
      host = RingHost.start_ring(["workers=2"])
      # Long enough for the host to have taken it: else it is dropped and never runs.
      assert RingHost.call(host, :until_cancelled, [], 1000) == {:error, :deadline}
      assert Await.until(fn -> RingHost.call(host, :cancelled, []) == {:value, 1} end)
      assert idle?(host)
      refute_received _
    end

    test "of a call that waits for a slot ends its waiting" do
      host = RingHost.start_ring(~w(slots=1))
      task = Task.async(fn -> RingHost.call(host, :until_cancelled, [], 500) end)
      assert Await.until(fn -> :tame_ring.info(host.ring).slots_in_use == 1 end)
      assert RingHost.call(host, :echo, [1], 20) == {:error, :deadline}
      assert :tame_ring.info(host.ring).in_line == 0
      assert Task.await(task) == {:error, :deadline}
      assert RingHost.call(host, :echo, [2]) == {:value, 2}
    end

    test "drops a request that has not been taken" do
      host = RingHost.start_ring(~w(workers=1))
      task = Task.async(fn -> RingHost.call(host, :until_cancelled, [], 300) end)
      assert Await.until(fn -> :tame_ring.info(host.ring).slots_in_use == 1 end)
      assert RingHost.call(host, :echo, [1], 20) == {:error, :deadline}
      assert Task.await(task) == {:error, :deadline}
      assert Await.until(fn -> RingHost.call(host, :dropped, []) == {:value, 1} end)
    end
  end

  test "killed callers leave nothing behind: with a slot, waiting for one, at any moment" do
    host = RingHost.start_ring(~w(slots=4 workers=2))

    for round <- 1..200 do
      callers =
        for number <- 1..10 do
          spawn(fn -> RingHost.call(host, Enum.random([:echo, :slow_echo]), [number]) end)
        end

      # No event: they are to die at any moment of a call.
      if rem(round, 2) == 0, do: Process.sleep(:rand.uniform(3))
      Enum.each(callers, &Process.exit(&1, :kill))
    end

    assert idle?(host)
    assert RingHost.call(host, :echo, [:last]) == {:value, :last}
  end

  test "callers that share a scheduler poll in turn, and one alone spins" do
    peer = PeerVm.start(%{args: [~c"+S", ~c"1"]})

    # Those in company spin as well, after bad turns: for a second at a time where all is slow, as with sanitizers.
    for {callers, enough} <- [{1, {:below, 0.1}}, {16, {:above, 0.1}}, {1, {:below, 0.1}}] do
      polled = PeerVm.scenario(peer, Tame.RingScenarios, :polled, [callers, enough])
      assert {callers, polled > 0.1} == {callers, callers > 1}, "#{polled}"
    end

    :peer.stop(peer)
  end

  # They are not monitored. The reader looks who has died, sooner where others wait for a slot: else each would wait for a
  # second.
  test "callers that are killed while they poll leave nothing behind, nor keep others waiting" do
    peer = PeerVm.start(%{args: [~c"+S", ~c"1"]})

    {polled, ms, free?} = PeerVm.scenario(peer, Tame.RingScenarios, :killed_while_polling, [60])
    :peer.stop(peer)
    # On a busy machine some wait in receive already.
    assert polled > 0
    assert ms < 30_000
    assert free?
  end

  test "a host that dies: callers in flight are told by close/2, later ones too" do
    Process.flag(:trap_exit, true)
    host = RingHost.start_ring(~w(slots=4 workers=4))
    tasks = for n <- 1..20, do: Task.async(fn -> RingHost.call(host, :until_cancelled, [n]) end)

    assert Await.until(fn ->
             info = :tame_ring.info(host.ring)
             info.slots_in_use + info.in_line == 20
           end)

    OsProcess.signal(host.os_pid, "KILL")
    %{port: port} = host
    assert_receive {^port, {:exit_status, _}}, 5_000
    :ok = :tame_ring.close(host.ring, {:signal, :sigkill})

    # The host has heard of four; the others may be made again elsewhere.
    {in_flight, in_line} =
      tasks |> Enum.map(&Task.await/1) |> Enum.split_with(&(&1 != {:error, :closed}))

    assert in_flight == List.duplicate({:error, {:host_down, {:signal, :sigkill}}}, 4)
    assert length(in_line) == 16
    assert RingHost.call(host, :echo, [1]) == {:error, :closed}
  end

  test "a host that dies under callers at full speed" do
    host = RingHost.start_ring(~w(slots=8 workers=2))
    tasks = for _ <- 1..16, do: Task.async(fn -> call_until_down(host, 0) end)
    assert Await.until(fn -> :tame_ring.info(host.ring).calls > 2000 end)
    OsProcess.signal(host.os_pid, "KILL")
    %{port: port} = host
    assert_receive {^port, {:exit_status, _}}, 5_000
    :ok = :tame_ring.close(host.ring, :killed)

    for task <- tasks do
      {down, _} = Task.await(task, 10_000)
      assert down in [{:error, {:host_down, :killed}}, {:error, :closed}]
    end
  end

  test "two rings at once do not mix" do
    hosts = for _ <- 1..2, do: RingHost.start_ring(~w(slots=4 workers=2))

    tasks =
      for host <- hosts, _ <- 1..4 do
        Task.async(fn ->
          for n <- 1..1000 do
            term = {host.os_pid, self(), n}
            {:value, ^term} = RingHost.call(host, :echo, [term])
          end
        end)
      end

    Enum.each(tasks, &Task.await(&1, 600_000))
  end

  test "a hostile host does not crash, hang or leak an emulator" do
    peer = PeerVm.start()
    seed = :rand.uniform(1 <<< 32)
    seen = :peer.call(peer, Tame.RingScenarios, :hostile, [seed, 20], 600_000)
    :peer.stop(peer)

    # A second of a host has some 100,000 at first, and later those that wait for nothing, a tenth of a second each;
    # sanitizers are slower still.
    assert seen.calls > if(@sanitized, do: 200, else: 5_000), inspect({seed, seen})
    assert seen.grown < 20_000_000, inspect({seed, seen})
    assert seen.closed == [{:error, :closed}]
  end

  defp terms do
    [
      [],
      0,
      255,
      256,
      -1,
      (1 <<< 31) - 1,
      1 <<< 31,
      -(1 <<< 31),
      -(1 <<< 31) - 1,
      1 <<< 59,
      (1 <<< 63) - 1,
      -(1 <<< 63),
      (1 <<< 64) - 1,
      1 <<< 64,
      1 <<< 2000,
      1.5,
      -0.0,
      :atom,
      :ä,
      :Ω,
      :"",
      "",
      "binary",
      :binary.copy("x", 100),
      <<1::1>>,
      <<1, 2::7>>,
      ~c"string",
      [1, 2, 3 | :improper],
      [1, 2, :no_byte],
      [256],
      {},
      {1, {2, [3]}},
      List.to_tuple(Enum.to_list(1..300)),
      %{},
      %{a: 1, b: %{1.0 => 2}},
      Map.new(1..100, &{&1, &1}),
      self(),
      make_ref(),
      hd(Port.list()),
      &is_atom/1,
      Enum.to_list(1..10_000),
      List.duplicate(7, 70_000)
    ]
  end

  defp storm(host, callers, calls) do
    1..callers
    |> Enum.map(fn caller ->
      Task.async(fn ->
        for n <- 1..calls, do: {:value, {^caller, ^n}} = RingHost.call(host, :echo, [{caller, n}])
        {:ok, now()}
      end)
    end)
    |> Task.await_many(600_000)
  end

  defp call_until_down(host, calls) do
    case RingHost.call(host, :echo, [calls]) do
      {:value, ^calls} -> call_until_down(host, calls + 1)
      down -> {down, calls}
    end
  end

  defp idle?(host) do
    Await.until(fn ->
      info = :tame_ring.info(host.ring)
      {info.slots_in_use, info.in_line, info.region_bytes} == {0, 0, 0}
    end)
  end

  defp now, do: System.monotonic_time(:millisecond)
end
