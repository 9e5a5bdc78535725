defmodule Tame.RingLeasesTest do
  # References that the VM lends to a host: used, collected, told, invented.
  use ExUnit.Case, async: true

  alias Tame.Await
  alias Tame.Test.{Growth, RingHost}

  @moduletag isolation: :shared

  describe "leases" do
    test "live until the host has used them and nobody holds the reference; then the host is told" do
      host = RingHost.start_ring()
      leases = :tame_ring.leases(host.ring, 10)
      assert Enum.map(leases, &elem(&1, 0)) |> Enum.sort() == Enum.to_list(1..10)
      assert %{leases_unused: 10} = :tame_ring.info(host.ring)

      {id, ref} = List.keyfind(leases, 3, 0)
      assert {:value, ^ref} = RingHost.call(host, :lease, [<<id::64>>, ref])
      assert %{leases_unused: 9} = :tame_ring.info(host.ring)
      assert RingHost.call(host, :gone, []) == {:value, 0}
      # Nobody but the assertion below knows the reference from here on.
      assert is_reference(ref)

      for id <- 4..10 do
        RingHost.in_a_process(fn ->
          {^id, ref} = List.keyfind(leases, id, 0)
          {:value, ^ref} = RingHost.call(host, :lease, [<<id::64>>, ref])
        end)
      end
    end

    test "that are collected are reported, beyond what the ring holds at a time" do
      host = RingHost.start_ring()

      RingHost.in_a_process(fn ->
        for _ <- 1..5 do
          for {id, ref} <- :tame_ring.leases(host.ring, 1000) do
            {:value, ^ref} = RingHost.call(host, :lease, [<<id::64>>, ref])
          end
        end
      end)

      assert Await.until(fn -> RingHost.call(host, :gone, []) == {:value, 5000} end)
    end

    test "of a reference that came another way are dropped by used/2" do
      host = RingHost.start_ring()
      RingHost.in_a_process(fn -> :tame_ring.leases(host.ring, 3) end)
      :ok = :tame_ring.used(host.ring, [2, 3, 3, 77])
      assert Await.until(fn -> RingHost.call(host, :gone, []) == {:value, 2} end)
      assert %{leases_unused: 1} = :tame_ring.info(host.ring)
    end

    # As many of few and of 32 times as many, so that both take as long where the machine is busy. To search all of them takes
    # 32 times as long, memory that leaves the cache two to three times.
    test "that are held again and used, in any order, cost the same, however many there are" do
      held = 8_192

      [few, many] =
        for count <- [held, 32 * held] do
          host = RingHost.start_ring()

          leases =
            for _ <- 1..div(count, 1024), lease <- :tame_ring.leases(host.ring, 1024), do: lease

          :ok = :tame_ring.used(host.ring, Enum.map(leases, &elem(&1, 0)))
          [_] = :tame_ring.leases(host.ring, 1)
          refs = leases |> Enum.sort(:desc) |> Enum.map(&elem(&1, 1))
          assert Enum.sort(:tame_ring.hold(host.ring, refs)) == Enum.to_list(1..count)
          assert :tame_ring.info(host.ring).leases_unused == count + 1
          refs = Enum.take_every(refs, div(count, held))
          fn -> :ok = :tame_ring.used(host.ring, :tame_ring.hold(host.ring, refs)) end
        end

      assert Growth.ratio(few, many, 16) < 16
    end

    test "of a host that uses none of them come to an end" do
      host = RingHost.start_ring()

      RingHost.in_a_process(fn ->
        [{_, ref} | _] = :tame_ring.leases(host.ring, 1024)
        for _ <- 2..2048, do: [_ | _] = :tame_ring.leases(host.ring, 1024)
        assert :tame_ring.leases(host.ring, 1) == :too_many
        assert :tame_ring.hold(host.ring, [ref]) == :too_many
        requests = :tame_host_requests.new(%{group: :group, options: %{max_atoms: 1}})
        # Which ends the host.
        for query <- [:leases, {:hold, 1, [ref]}] do
          assert {:bad, why} = :tame_host_requests.answer(1, query, host.ring, requests)
          assert to_string(why) =~ "two million that it has not used"
        end

        :ok = :tame_ring.used(host.ring, [7])
        assert [_] = :tame_ring.leases(host.ring, 1)
        assert :tame_ring.leases(host.ring, 1) == :too_many
      end)

      :tame_ring.close(host.ring, :done)
    end

    test "that the host invents do no harm" do
      host = RingHost.start_ring()
      assert {:value, _} = RingHost.call(host, :lease, [<<12345::64>>, make_ref()])
      assert RingHost.call(host, :many_leases, [:late]) == {:value, :late}
    end
  end

  describe "leases behind a reply" do
    # Each is told to be gone once: nobody holds the references.
    defp assert_gone(host, count) do
      Enum.each(Process.list(), &:erlang.garbage_collect/1)
      gone = fn -> RingHost.call(host, :gone, []) end

      assert {Await.until(fn -> gone.() == {:value, count} end, 20_000), gone.()} ==
               {true, {:value, count}}

      assert %{leases_unused: 0, resources: 0} = :tame_ring.info(host.ring)
    end

    defp lend(host, count) do
      RingHost.in_a_process(fn ->
        for _ <- 1..div(count, 1000)//1, do: :tame_ring.leases(host.ring, 1000)
        :tame_ring.leases(host.ring, rem(count, 1000))
      end)
    end

    test "are used when the reply is read: few and many, small and large" do
      for count <- [1, 64, 65, 1000, 4097, 20_000],
          term <- [:small, Enum.to_list(1..50_000), :binary.copy("x", 400_000)] do
        host = RingHost.start_ring()
        lend(host, count)
        assert {:value, ^term} = RingHost.call(host, :leases, [<<1::64, count::64>>, term])
        assert_gone(host, count)
        RingHost.stop(host)
      end
    end

    test "are used when nobody waits for the reply: of 50 calls, 50" do
      host = RingHost.start_ring(["workers=4"])
      lend(host, 500)

      for n <- 0..49 do
        args = [<<n * 10 + 1::64, 10::64>>, :late]
        # Where others have the cores, it takes the host more than 1 ms to see a call.
        ms = 1 + div(n, 5)

        if rem(n, 2) == 0 do
          _ = RingHost.call(host, :slow_leases, args, ms)
        else
          pid = spawn(fn -> RingHost.call(host, :slow_leases, args) end)
          Process.sleep(ms)
          Process.exit(pid, :kill)
        end
      end

      # A call that was dropped before it was taken has not used its own.
      assert Await.until(fn -> :tame_ring.info(host.ring).slots_in_use == 0 end)
      {:value, dropped} = RingHost.call(host, :dropped, [])
      assert Await.until(fn -> :tame_ring.info(host.ring).leases_unused == dropped * 10 end)
      assert dropped < 50
    end

    test "are used when the reply is malformed or too large" do
      host = RingHost.start_ring([], %{max_reply_bytes: 100_000})
      lend(host, 300)
      fun = fn from, term -> RingHost.call(host, :leases, [<<from::64, 100::64>>, term]) end
      assert {:error, {:reply_too_large, _}} = fun.(1, Enum.to_list(1..100_000))
      assert {:error, {:reply_too_large, _}} = fun.(101, :binary.copy("x", 200_000))

      assert {:error, {:reply_too_large, _}} =
               fun.(201, Enum.to_list(1..3000) ++ List.duplicate(1.5, 3000))

      assert_gone(host, 300)
    end

    test "are used by and by when the reply area has no room for their list" do
      host = RingHost.start_ring(~w(reply_bytes=65536))
      lend(host, 20_000)
      assert {:error, :too_large} = RingHost.call(host, :leases, [<<1::64, 20_000::64>>, :small])
      # What was not listed behind that reply is listed behind the next ones.
      for _ <- 1..20, do: {:value, :next} = RingHost.call(host, :echo, [:next])
      assert_gone(host, 20_000)
    end

    test "that came another way, 30,000 at once, are dropped by used/2, and held by hold/2" do
      host = RingHost.start_ring()
      refs = for _ <- 1..30, {id, ref} <- :tame_ring.leases(host.ring, 1000), do: {id, ref}
      ids = Enum.map(refs, &elem(&1, 0))
      assert Enum.sort(:tame_ring.hold(host.ring, Enum.map(refs, &elem(&1, 1)))) == Enum.sort(ids)
      assert :tame_ring.used(host.ring, ids) == :ok
      assert %{leases_unused: 30_000, resources: 30_000} = :tame_ring.info(host.ring)
      assert :tame_ring.used(host.ring, ids) == :ok
      assert %{leases_unused: 0, resources: 30_000} = :tame_ring.info(host.ring)
      assert length(refs) == 30_000
    end

    test "100,000 collected at once are told to an idle host soon" do
      host = RingHost.start_ring()
      lend(host, 100_000)

      {us, _} =
        :timer.tc(fn ->
          :tame_ring.used(host.ring, Enum.to_list(1..100_000))
          assert_gone_idle(host, 100_000)
        end)

      # 1024 a second, it would take 97 s.
      assert us < 60_000_000
    end

    defp assert_gone_idle(host, count) do
      # Looks seldom, so that calls do not move things along.
      Process.sleep(500)
      if RingHost.call(host, :gone, []) != {:value, count}, do: assert_gone_idle(host, count)
    end
  end
end
