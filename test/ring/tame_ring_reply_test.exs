defmodule Tame.RingReplyTest do
  # Replies: who makes them, of what size, and what is left when nobody wants them; proxies.
  use ExUnit.Case, async: true

  alias Tame.Await
  alias Tame.Test.{ExternalForms, OsProcess, PeerVm, RingHost, RingTerms}

  @moduletag isolation: :shared

  @sanitized System.get_env("TAME_NATIVE_DIR") != nil

  describe "replies of every size class" do
    test "come back equal, whether their callers spin, wait, or wait long" do
      spins = RingHost.start_ring()
      waits = RingHost.start_ring([], %{spin_us: 0})

      for {name, term} <- RingTerms.all(), {host, function} <- [{spins, :echo}, {waits, :echo}] do
        assert {name, RingHost.call(host, function, [term]) == {:value, term}} == {name, true}
      end
    end

    test "that are maps, of up to 100,000 keys of every kind, leave the emulator alive" do
      # The emulator sorts more than 128 keys with the data of a scheduler, which a thread of ours has not: a reader
      # that decodes ends the emulator here. So in one of its own.
      peer = PeerVm.start()
      assert :peer.call(peer, Tame.RingScenarios, :maps, [3], 280_000) == :alive
      :peer.stop(peer)
    end

    test "are raised as well" do
      host = RingHost.start_ring()

      for term <- [
            RingTerms.map(100_000, :binary),
            Enum.to_list(1..100_000),
            :binary.copy("x", 300_000)
          ] do
        assert RingHost.call(host, :raise, [term]) == {:raise, term}
      end
    end

    test "hold no scheduler for long" do
      peer = PeerVm.start()

      # What is promised is 1 ms; a map of 100,000 keys in one go is 12 and more.
      [{:machine, noise_ms} | longest] =
        :peer.call(peer, Tame.RingScenarios, :long_schedules, [], 200_000)

      :peer.stop(peer)

      unless @sanitized,
        do: assert(for({name, ms} <- longest, ms > 8 + 2 * noise_ms, do: {name, ms}) == [])
    end

    # The emulator keeps each for a minute, so that a host could fill its memory with them.
    test "name a bounded number of nodes, in one and in all" do
      host = RingHost.start_ring()
      call = fn term -> RingHost.call(host, :raw, [ExternalForms.of_nodes(:some@one, term)]) end
      own = [self(), make_ref(), hd(Port.list())]
      for _ <- 1..2000, do: assert({:value, ^own} = RingHost.call(host, :echo, [own]))
      assert {:value, [_ | _]} = call.(1..500)
      assert {:value, [_ | _]} = call.(1..500)
      for n <- 501..1000, do: assert({:value, [_]} = call.(n..n))
      assert {:error, {:bad_reply, :nodes}} = call.(1001..1100)
      assert {:value, [_ | _]} = call.(1..500)

      # In large replies, with maps and without, and in a new host's first.
      for more <- [:binary.copy("x", 1_000_000), Map.new(1..1000, &{&1, &1})] do
        new = RingHost.start_ring()
        reply = RingHost.call(new, :raw, [ExternalForms.of_nodes(:some@one, 1..1100, more)])
        assert reply == {:error, {:bad_reply, :nodes}}
      end
    end

    # What the scan takes for no identifier is not searched for names: so the emulator must not either.
    test "have no identifiers but those that the scan sees" do
      {read, refused} =
        Enum.split_with(ExternalForms.identifiers(), fn {_, bytes} ->
          try do
            :erlang.binary_to_term(bytes, [:safe])
          rescue
            ArgumentError -> false
          else
            _ -> true
          end
        end)

      assert length(read) > 400 and length(refused) > 200

      for {form, bytes} <- read,
          do: assert({_, _, _, [_]} = :tame_ring_nif.scan(bytes), inspect(form))

      for {form, bytes} <- ExternalForms.identifiers(), :tame_ring_nif.scan(bytes) == :payload do
        assert {form, bytes} in refused
      end

      # Nor an atom that is longer than all of the emulator's.
      long = for _ <- 1..256, into: "", do: "\u{10000}"
      form = &[131, 88, 118, <<byte_size(&1)::16>>, &1, <<1::32, 2::32, 3::32>>]
      bytes = IO.iodata_to_binary(form.(long))
      assert :tame_ring_nif.scan(bytes) == :payload
      assert_raise ArgumentError, fn -> :erlang.binary_to_term(bytes) end
      shorter = IO.iodata_to_binary(form.(binary_part(long, 0, 1020)))
      assert {_, _, _, [_]} = :tame_ring_nif.scan(shorter)
    end

    test "are scanned for their memory: never less than they take" do
      for {name, term} <- RingTerms.all(), options <- [[], [minor_version: 1]] do
        bytes = :erlang.term_to_binary(term, options)
        {memory, _, _, _} = :tame_ring_nif.scan(bytes)
        made = :erlang.binary_to_term(bytes)
        assert {name, memory >= :erts_debug.flat_size(made) * 8} == {name, true}
      end

      assert {_, 3, _, []} = :tame_ring_nif.scan(:erlang.term_to_binary([%{a: %{b: 1}}, %{c: 1}]))
      key = :erlang.term_to_binary("0123456789")

      {_, 1, bytes, []} =
        :tame_ring_nif.scan(:erlang.term_to_binary(%{["0123456789"] => "0123456789"}))

      assert bytes == byte_size(key) - 1 + 5 + 1
    end
  end

  describe "max_reply_bytes" do
    test "refuses a reply that would take more, and says how much" do
      host = RingHost.start_ring([], %{max_reply_bytes: 1_000_000})
      nils = fn count -> <<131, 108, count::32, :binary.copy(<<106>>, count + 1)::binary>> end

      assert {:value, list} = RingHost.call(host, :raw, [nils.(60_000)])
      assert length(list) == 60_000
      assert {:error, {:reply_too_large, bytes}} = RingHost.call(host, :raw, [nils.(70_000)])
      assert bytes > 1_000_000
      big = :binary.copy("x", 1_000_001)
      assert {:error, {:reply_too_large, bytes}} = RingHost.call(host, :echo, [big])
      assert bytes > 1_000_000

      assert RingHost.call(host, :echo, [:binary.copy("x", 900_000)]) ==
               {:value, :binary.copy("x", 900_000)}

      assert RingHost.call(host, :echo, [:next]) == {:value, :next}
    end

    test "holds for small replies too, and is an option like others" do
      host = RingHost.start_ring([], %{max_reply_bytes: 1000})
      assert {:error, {:reply_too_large, _}} = RingHost.call(host, :echo, [Enum.to_list(1..200)])
      assert RingHost.call(host, :echo, [Enum.to_list(1..20)]) == {:value, Enum.to_list(1..20)}

      assert :tame_ring.open(host.os_pid, host.fd, %{max_reply_bytes: 0}) ==
               {:error, {:bad_option, :max_reply_bytes, 0}}
    end
  end

  describe "a reply that is malformed" do
    test "is refused, wherever it is cut, and the ring goes on" do
      host = RingHost.start_ring()

      terms = [
        RingTerms.map(40, :binary),
        {self(), make_ref(), hd(Port.list()), &:lists.map/2, 1.5, <<1::3>>, 1 |> Bitwise.bsl(100)},
        [fn x -> x end, :atom, -1, 300, ~c"string", [1 | 2]]
      ]

      for term <- terms,
          bytes = :erlang.term_to_binary(term),
          size <- 0..(byte_size(bytes) - 1) do
        cut = binary_part(bytes, 0, size)

        assert {size, RingHost.call(host, :raw, [cut])} ==
                 {size, {:error, {:bad_reply, :payload}}}
      end

      assert RingHost.call(host, :echo, [:next]) == {:value, :next}
    end

    test "is refused when it is large" do
      host = RingHost.start_ring()
      good = :erlang.term_to_binary(Enum.to_list(1..50_000))
      map = :erlang.term_to_binary(RingTerms.map(5000, :small))
      # The last key is the first once more.
      <<131, 116, _::32, first::binary-size(5), _::binary>> =
        :erlang.term_to_binary(%{1_000_000 => 1})

      twice =
        <<131, 116, 5001::32, binary_part(map, 6, byte_size(map) - 6)::binary, first::binary, 97,
          1>>

      again =
        <<131, 116, 5002::32, binary_part(twice, 6, byte_size(twice) - 6)::binary, first::binary,
          97, 1>>

      assert {:value, _} = RingHost.call(host, :raw, [twice])

      for bytes <- [
            binary_part(good, 0, 100_000),
            good <> <<106>>,
            # Small enough to be decoded into a message.
            :erlang.term_to_binary(Enum.to_list(1..20_000)) <> <<106>>,
            :binary.copy(<<131>>, 100_000),
            <<131, 80, 4_000_000_000::32, :binary.copy(<<0>>, 100_000)::binary>>,
            <<131, 108, 0xFFFFFFFF::32, :binary.copy(<<106>>, 100_000)::binary>>,
            <<131, 116, 0xFFFFFFFF::32, :binary.copy(<<106>>, 100_000)::binary>>,
            <<131, 104, 2, 119, 17, "tame_not_an_atom!",
              :erlang.term_to_binary(:binary.copy("x", 100_000))::binary>>,
            again
          ] do
        assert RingHost.call(host, :raw, [bytes]) == {:error, {:bad_reply, :payload}}
      end

      # With a map in it, it is scanned.
      deep = :binary.copy(<<104, 2>>, 1_100_000) <> :binary.copy(<<106>>, 1_100_001)
      with_map = <<131, 104, 2, 116, 1::32, 97, 1, 97, 1, deep::binary>>
      assert RingHost.call(host, :raw, [with_map]) == {:error, {:bad_reply, :depth}}
    end
  end

  describe "a caller's mailbox" do
    test "does not matter: the receive begins at the reference" do
      source = Path.expand("../../src/ring/tame_ring.erl", __DIR__) |> String.to_charlist()
      {:ok, :tame_ring, _, warnings} = :compile.file(source, [:recv_opt_info, :return, :binary])

      texts =
        for {_, list} <- warnings,
            {_, module, what} <- list,
            do: to_string(module.format_error(what))

      assert Enum.count(texts, &String.starts_with?(&1, "OPTIMIZED: all clauses match reference")) ==
               3

      refute Enum.any?(texts, &(&1 =~ "NOT OPTIMIZED"))
    end

    defp waited(host, n) do
      %{waits: before} = :tame_ring.info(host.ring)
      {us, {:value, ^n}} = :timer.tc(fn -> RingHost.call(host, :echo, [n]) end)
      if :tame_ring.info(host.ring).waits > before, do: us
    end

    test "with 200,000 messages makes a call that waits not much slower" do
      host = RingHost.start_ring([], %{spin_us: 0})
      callers = for messages <- [0, 200_000], do: caller(host, messages)
      rounds = for _ <- 1..10, do: Enum.map(callers, &asked/1)

      # To look through the mailbox takes a millisecond and more, each time; a wake-up some 30 us, unless the machine is
      # busy with something else.
      [empty, full] = Enum.zip_with(rounds, &Enum.min/1)
      assert full < 5 * max(empty, 80)
    end

    # Says, when it is asked, how long calls take that do wait; what the machine adds, it adds to some.
    defp caller(host, messages) do
      spawn_link(fn ->
        for n <- 1..messages//1, do: send(self(), {:message, n})
        answers(host)
      end)
    end

    defp answers(host) do
      receive do
        {:times, parent} ->
          times = for n <- 1..300, us = waited(host, n), do: us
          send(parent, {self(), Enum.at(Enum.sort(times), div(length(times), 5))})
          answers(host)
      end
    end

    defp asked(caller) do
      send(caller, {:times, self()})
      assert_receive {^caller, us}, 60_000
      us
    end
  end

  test "replies that no VM may decode are refused, small ones and large ones" do
    host = RingHost.start_ring()

    for {name, <<131, deadly::binary>>} <- Tame.Test.ExternalForms.deadly() do
      large = <<131, 104, 2, deadly::binary, 109, 300_000::32, 0::300_000-unit(8)>>

      for bytes <- [<<131, deadly::binary>>, large] do
        assert RingHost.call(host, :raw, [bytes]) == {:error, {:bad_reply, :references}},
               inspect(name)
      end
    end

    assert RingHost.call(host, :echo, [1]) == {:value, 1}
  end

  test "a call that a stopped host has not taken is abandoned too" do
    host = RingHost.start_ring()
    assert RingHost.call(host, :echo, [1]) == {:value, 1}
    # One that is stopped does not end with its standard input.
    on_exit(fn -> System.cmd("kill", ["-KILL", "#{host.os_pid}"], stderr_to_stdout: true) end)
    OsProcess.signal(host.os_pid, "STOP")
    assert RingHost.call(host, :echo, [2], 20) == {:error, :deadline}
    assert Await.until(fn -> :tame_ring.abandoned(host.ring, 10) == {0, 1} end)
    assert :tame_ring.abandoned(host.ring, 60_000) == {0, 0}
    OsProcess.signal(host.os_pid, "CONT")
    assert Await.until(fn -> :tame_ring.abandoned(host.ring, 0) == {0, 0} end)
  end

  test "pulse/1 counts replies, and says since when a call waits for a worker" do
    host = RingHost.start_ring(["workers=1"])
    assert {0, 0, 0} = :tame_ring.pulse(host.ring)
    for n <- 1..10, do: RingHost.call(host, :echo, [n])
    assert {10, 0, 0} = :tame_ring.pulse(host.ring)
    task = Task.async(fn -> RingHost.call(host, :until_cancelled, [], 4000) end)
    assert Await.until(fn -> :tame_ring.pulse(host.ring) == {10, 1, 0} end)
    waits = Task.async(fn -> RingHost.call(host, :echo, [11], 20_000) end)
    assert Await.until(fn -> match?({10, 2, ms} when ms >= 100, :tame_ring.pulse(host.ring)) end)
    assert Task.await(task, 600_000) == {:error, :deadline}
    assert Task.await(waits, 600_000) == {:value, 11}
    assert Await.until(fn -> :tame_ring.pulse(host.ring) == {12, 0, 0} end)
  end

  test "choose/1 finds the ring with the fewest calls, home/2 a proxy's" do
    hosts = for _ <- 1..3, do: RingHost.start_ring(["workers=2"])
    [one, two, three] = Enum.map(hosts, & &1.ring)
    rings = {one, two, three}

    tasks =
      for host <- Enum.take(hosts, 2),
          do: Task.async(fn -> RingHost.call(host, :until_cancelled, [], 5000) end)

    assert Await.until(fn -> Enum.all?([one, two], &(:tame_ring.info(&1).slots_in_use == 1)) end)
    for _ <- 1..20, do: assert(:tame_ring.choose(rings) == 3)
    :ok = :tame_ring.close(three, :test)
    for _ <- 1..20, do: assert(:tame_ring.choose(rings) in [1, 2])
    assert :tame_ring.choose({three}) == 1

    [{_, ref}] = :tame_ring.leases(two, 1)
    assert :tame_ring.home(rings, ref) == 2
    assert :tame_ring.home({one, three}, ref) == :gone
    assert :tame_ring.home({}, ref) == :gone
    assert :tame_ring.home(rings, make_ref()) == :none
    assert :tame_ring.home(rings, one) == :none
    Task.await_many(tasks, 600_000)
  end

  test "a reply that is there is found within a second or so, however often its host rings" do
    host = RingHost.start_ring(["workers=2"], %{spin_us: 0})
    {us, reply} = :timer.tc(fn -> RingHost.call(host, :untold, [:there]) end)
    assert reply == {:value, :there}
    assert us < 20_000_000
  end
end
