defmodule Tame.Nng.ActiveTest do
  # Messages for credit, as gen_tcp's active modes, by both ways.
  use ExUnit.Case, async: false

  import Tame.Nng.Test.Sockets

  for by <- [:nif, :driver] do
    describe "#{by}:" do
      @describetag by: by

      test "once gives one message, then none", %{by: by} do
        {a, b} = pair(:pair0, :pair0, by: by)
        :ok = :tame_nng.send(b, "one")
        assert :tame_nng.setopts(a, active: :once) == :ok
        assert_receive {:nng, ^a, "one"}
        assert :tame_nng.getopts(a, [:active]) == {:ok, [active: false]}
        :ok = :tame_nng.send(b, "two")
        refute_receive _, 50
        assert :tame_nng.recv(a, 1000) == {:ok, "two"}
        assert :tame_nng.setopts(a, active: :once) == :ok
        assert :tame_nng.getopts(a, [:active]) == {:ok, [active: :once]}
        assert :tame_nng.recv(a, 10) == {:error, :einval}
        :ok = :tame_nng.send(b, "three")
        assert_receive {:nng, ^a, "three"}
        refute_receive _, 10
        close([a, b])
      end

      test "a number gives as many, and then says that it is passive", %{by: by} do
        {a, b} = pair(:pair1, :pair1, by: by)
        assert :tame_nng.setopts(a, active: 3) == :ok

        for n <- 1..3 do
          :ok = :tame_nng.send(b, <<n>>)
          assert_receive {:nng, ^a, <<^n>>}
        end

        assert_receive {:nng_passive, ^a}
        :ok = :tame_nng.send(b, "rest")
        refute_receive _, 50
        assert :tame_nng.setopts(a, active: 2) == :ok
        assert_receive {:nng, ^a, "rest"}
        assert :tame_nng.getopts(a, [:active]) == {:ok, [active: 1]}
        assert :tame_nng.setopts(a, active: -1) == :ok
        assert_receive {:nng_passive, ^a}
        assert :tame_nng.setopts(a, active: 40_000) == {:error, :einval}
        assert :tame_nng.setopts(a, active: 400_000) == {:error, :einval}
        assert :tame_nng.setopts(a, active: :twice) == {:error, :einval}
        close([a, b])
      end

      test "always: every message, large and small, in its order", %{by: by} do
        {a, b} = pair(:pull0, :push0, by: by)
        assert :tame_nng.setopts(a, active: true) == :ok
        assert :tame_nng.getopts(a, [:active]) == {:ok, [active: true]}

        task =
          Task.async(fn ->
            for n <- 1..300 do
              size = if rem(n, 30) == 0, do: 500_000, else: 5
              :ok = :tame_nng.send(b, [<<n::32>>, :binary.copy("x", size)])
            end
          end)

        for n <- 1..300, do: assert_receive({:nng, ^a, <<^n::32, "x", _::binary>>})
        Task.await(task)
        close([a, b])
      end

      test "credit is the back-pressure: a sender waits for who gives none", %{by: by} do
        {a, b} = pair(:pull0, :push0, by: by)
        :ok = :tame_nng.setopts(a, active: :once)
        task = Task.async(fn -> for _ <- 1..300, do: :ok = :tame_nng.send(b, "x") end)
        assert_receive {:nng, ^a, "x"}
        assert Task.yield(task, 100) == nil

        for _ <- 2..300 do
          :ok = :tame_nng.setopts(a, active: :once)
          assert_receive {:nng, ^a, "x"}
        end

        Task.await(task)
        close([a, b])
      end

      test "modes that change while messages come: none is lost, none is doubled", %{by: by} do
        {a, b} = pair(:pull0, :push0, by: by)
        task = Task.async(fn -> for n <- 1..3000, do: :ok = :tame_nng.send(b, <<n::32>>) end)
        assert modes(a, [], 3000) == for(n <- 1..3000, do: <<n::32>>)
        Task.await(task)
        close([a, b])
      end

      test "passive again: a large message is there before, or not at all", %{by: by} do
        {a, b} = pair(:pair0, :pair0, by: by)
        large = :binary.copy("x", 20_000_000)

        for _ <- 1..5 do
          :ok = :tame_nng.send(b, large, 5000)
          :ok = :tame_nng.setopts(a, active: :once)
          :ok = :tame_nng.setopts(a, active: false)

          receive do
            {:nng, ^a, bytes} -> assert byte_size(bytes) == 20_000_000
          after
            0 -> assert {:ok, <<_::binary-size(20_000_000)>>} = :tame_nng.recv(a, 5000)
          end
        end

        close([a, b])
      end

      test "requests, which come when they are sent, and replies", %{by: by} do
        {rep, req} = pair(:rep0, :req0, by: by)
        :ok = :tame_nng.setopts(req, active: true)
        :ok = :tame_nng.setopts(rep, active: true)

        for n <- 1..100 do
          :ok = :tame_nng.send(req, <<n>>)
          assert_receive {:nng, ^rep, <<^n>>}
          :ok = :tame_nng.send(rep, <<n, n>>)
          assert_receive {:nng, ^req, <<^n, ^n>>}
        end

        close([rep, req])
      end

      test "a protocol that does not receive has none", %{by: by} do
        socket = open(:pub0, by: by)
        assert :tame_nng.setopts(socket, active: true) == {:error, :enotsup}
        assert :tame_nng.setopts(socket, active: false) == :ok
        assert :tame_nng.open(:push0, by: by, active: true) == {:error, :enotsup}
        close([socket])
      end
    end
  end

  describe "a receive that waits, by nif," do
    setup do
      {a, b} = pair(:pair0, :pair0)
      {pid, _} = spawn_monitor(fn -> exit(:tame_nng.recv(a)) end)
      assert until(fn -> waiting?(pid) end)
      %{a: a, b: b, pid: pid}
    end

    test "gives way to credit when a message comes", %{a: a, b: b, pid: pid} do
      assert :tame_nng.setopts(a, active: :once) == :ok
      :ok = :tame_nng.send(b, "x")
      assert_receive {:DOWN, _, _, ^pid, {:error, :einval}}
      assert_receive {:nng, ^a, "x"}
      close([a, b])
    end

    test "and is killed frees the socket", %{a: a, b: b, pid: pid} do
      assert :tame_nng.setopts(a, active: true) == :ok
      Process.exit(pid, :kill)
      assert_receive {:DOWN, _, _, ^pid, :killed}
      :ok = :tame_nng.send(b, "x")
      assert_receive {:nng, ^a, "x"}
      close([a, b])
    end

    test "does not hold up who takes credit back", %{a: a, b: b, pid: pid} do
      assert :tame_nng.setopts(a, active: true) == :ok
      task = Task.async(fn -> :tame_nng.setopts(a, active: false) end)
      assert Task.yield(task, 20_000) == {:ok, :ok}
      :ok = :tame_nng.send(b, "x")
      assert_receive {:DOWN, _, _, ^pid, {:ok, "x"}}
      close([a, b])
    end
  end

  for by <- [:nif, :driver] do
    @tag by: by
    test "#{by}: credit that a negative number takes away leaves the turn to recv", %{by: by} do
      {a, b} = pair(:pair0, :pair0, by: by)
      :ok = :tame_nng.setopts(a, active: 3)
      :ok = :tame_nng.setopts(a, active: -3)
      assert_receive {:nng_passive, ^a}
      :ok = :tame_nng.send(b, "x")
      assert :tame_nng.recv(a, 5000) == {:ok, "x"}
      close([a, b])
    end
  end

  test "a reader that dies ends the sockets that wait with it, and another takes its place" do
    {a, b} = pair(:pair0, :pair0)
    :ok = :tame_nng.setopts(a, active: true)
    reader = :tame_fd_readers.of_fd(:tame_nng_nif, a)
    Process.exit(reader, :kill)
    assert_receive {:nng_error, ^a, :reader_down}
    assert_receive {:nng_closed, ^a}
    assert :tame_nng.recv(a, 0) == {:error, :closed}
    assert until(fn -> :tame_fd_readers.of_fd(:tame_nng_nif, a) not in [reader, :undefined] end)
    close([b])
    {a, b} = pair(:pair0, :pair0, active: :once)
    :ok = :tame_nng.send(b, "x")
    assert_receive {:nng, ^a, "x"}
    close([a, b])
  end

  defp modes(_, came, 0), do: Enum.reverse(came)

  defp modes(socket, came, left) do
    :ok = :tame_nng.setopts(socket, active: Enum.random([:once, 3, true, false]))
    if Enum.random([true, false]), do: Process.sleep(1)
    :ok = :tame_nng.setopts(socket, active: false)
    active = came(socket)

    passive =
      case :tame_nng.recv(socket, Enum.random([0, 1])) do
        {:ok, bytes} -> [bytes]
        {:error, :timeout} -> []
      end

    modes(socket, Enum.reverse(active ++ passive, came), left - length(active ++ passive))
  end

  defp came(socket) do
    receive do
      {:nng, ^socket, bytes} -> [bytes | came(socket)]
      {:nng_passive, ^socket} -> came(socket)
    after
      0 -> []
    end
  end

  defp close(sockets) do
    for socket <- sockets, do: assert(:tame_nng.close(socket) == :ok)
    refute_received _
  end
end
