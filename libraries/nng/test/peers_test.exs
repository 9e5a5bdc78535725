defmodule Tame.Nng.PeersTest do
  # C programs (nngcat) and other VMs as peers; peers that end and come back; peers that are slow.
  use ExUnit.Case, async: false

  import Tame.Nng.Test.Sockets
  alias Tame.Nng.Test.Peer

  @data "to be, or not to be"
  @no_nngcat (if System.find_executable("nngcat") == nil do
                IO.puts("skip: nngcat: there is none; tools/install-missing test")
                "there is no nngcat"
              end)

  for by <- [:nif, :driver] do
    describe "#{by}:" do
      @describetag by: by

      @tag skip: @no_nngcat
      test "nngcat asks us, and we ask it", %{by: by} do
        rep = open(:rep0, by: by)
        url = listen(rep, :tcp)
        cat = nngcat(["--req", "--dial", url, "--data", @data, "--raw"])
        assert :tame_nng.recv(rep, 5000) == {:ok, @data}
        assert :tame_nng.send(rep, "the answer") == :ok
        assert said(cat, "the answer")
        stop(cat)

        url = address(:ipc)
        cat = nngcat(["--rep", "--listen", url, "--data", @data])
        req = open(:req0, by: by, reconnect_min: 5)
        assert {:ok, _} = :tame_nng.dial(req, url)
        for n <- 1..20, do: assert(:tame_nng.request(req, <<n>>, 5000) == {:ok, @data})
        stop(cat)
        for socket <- [rep, req], do: assert(:tame_nng.close(socket) == :ok)
      end

      @tag skip: @no_nngcat
      test "nngcat publishes and subscribes, pushes and pulls, surveys, pairs", %{by: by} do
        for {ours, theirs, more} <- [
              {:pub0, "--sub", ["--subscribe", "to"]},
              {:push0, "--pull", []},
              {:pair0, "--pair0", []},
              {:pair1, "--pair1", []}
            ] do
          socket = open(ours, by: by)
          cat = nngcat([theirs, "--dial", listen(socket, :tcp), "--raw"] ++ more)
          assert connected(socket, 1)
          # A subscription takes a moment more, and what is published before is lost.
          assert until(fn -> :tame_nng.send(socket, @data) == :ok and said(cat, @data, 50) end)
          stop(cat)
          assert :tame_nng.close(socket) == :ok
        end

        for {ours, theirs} <- [
              {:sub0, ["--pub"]},
              {:pull0, ["--push"]},
              {:pair0, ["--pair0", "--raw"]},
              {:respondent0, ["--surveyor", "--raw"]}
            ] do
          socket = open(ours, by: by)
          if ours == :sub0, do: :ok = :tame_nng.setopts(socket, subscribe: "to")
          url = listen(socket, :tcp)
          cat = nngcat(theirs ++ ["--dial", url, "--data", @data, "--interval", "1"])
          assert :tame_nng.recv(socket, 20_000) == {:ok, @data}
          if ours == :respondent0, do: assert(:tame_nng.send(socket, "me") == :ok)
          if ours == :respondent0, do: assert(said(cat, "me"))
          stop(cat)
          assert :tame_nng.close(socket) == :ok
        end

        surveyor = open(:surveyor0, by: by)
        cat = nngcat(["--respondent", "--dial", listen(surveyor, :ipc), "--data", "here"])
        assert connected(surveyor, 1)
        assert :tame_nng.send(surveyor, "who?") == :ok
        assert :tame_nng.recv(surveyor, 20_000) == {:ok, "here"}
        stop(cat)
        assert :tame_nng.close(surveyor) == :ok
      end

      test "another VM, over tcp and ipc, by the other way; its death and its return", %{by: by} do
        other = if by == :nif, do: :driver, else: :nif

        for transport <- [:tcp, :ipc] do
          peer = Peer.start_link()
          {_, url} = Peer.call(peer, Tame.Nng.Test.Far, :serve, [other, address(transport)])
          req = open(:req0, by: by, reconnect_min: 5, reconnect_max: 20, resend_time: 100)
          dial(req, url)
          assert :tame_nng.request(req, "ab", 20_000) == {:ok, "abab"}
          large = :binary.copy("x", 400_000)
          assert :tame_nng.request(req, large, 20_000) == {:ok, large <> large}
          :ok = :peer.stop(peer)
          assert connected(req, 0)
          assert :tame_nng.request(req, "nobody", 100) == {:error, :timeout}
          peer = Peer.start_link()
          {_, ^url} = Peer.call(peer, Tame.Nng.Test.Far, :serve, [other, url])
          assert :tame_nng.request(req, "cd", 20_000) == {:ok, "cdcd"}
          :ok = :peer.stop(peer)
          assert :tame_nng.close(req) == :ok
        end
      end

      test "a slow subscriber costs its own messages, counted, and nobody else's", %{by: by} do
        pub = open(:pub0, by: by)
        url = listen(pub, :tcp)

        [fast, slow] =
          for _ <- 1..2 do
            sub = open(:sub0, by: by, subscribe: "", recv_buffer: 16)
            dial(sub, url)
            sub
          end

        assert connected(pub, 2)
        :ok = :tame_nng.setopts(pub, send_buffer: 512)
        test = self()
        reader = spawn_link(fn -> read(fast, test, 0) end)
        :ok = :tame_nng.controlling_process(fast, reader)
        body = :binary.copy("x", 20_000)

        # In step with the fast one; the slow one reads nothing.
        for n <- 1..2000 do
          :ok = :tame_nng.send(pub, [<<n::32>>, body])
          if rem(n, 8) == 0, do: assert_receive({:read, ^n})
        end

        {:ok, %{sent: sent}} = :tame_nng.getstat(pub)
        {:ok, %{received: received}} = :tame_nng.getstat(fast)
        assert {sent, received} == {2000, 2000}
        drain(slow)
        {:ok, %{received: received}} = :tame_nng.getstat(slow)
        assert received > 0 and received < 2000
        for socket <- [pub, slow, fast], do: assert(:tame_nng.close(socket) == :ok)
      end

      test "loaded anew and purged under load, in a VM of its own", %{by: by} do
        peer = Peer.start_link()
        assert Peer.call(peer, Tame.Nng.Test.Far, :reload, [by]) == :done
        :ok = :peer.stop(peer)
      end

      test "closing goes on where nng itself hangs, and so does the VM's end", %{by: by} do
        peer = Peer.start_link()
        seen = :peer.call(peer, Tame.Nng.Test.Far, :close_beside_hung, [by], 150_000)
        assert %{free: true, gone: true, dialled: {:error, _}} = seen
        assert seen.ms < 15_000
        Process.unlink(peer)
        monitor = Process.monitor(peer)
        :peer.cast(peer, :erlang, :halt, [0])
        assert_receive {:DOWN, ^monitor, :process, ^peer, _}, 20_000
      end

      test "halt and stop while sockets are open and wait", %{by: by} do
        for {ends, status} <- [{"halt(0)", 0}, {"halt(3)", 3}, {"init:stop()", 0}] do
          {said, got} =
            Peer.run("""
            {ok, _} = application:ensure_all_started(tame_nng),
            {ok, S} = tame_nng:open(rep0, [{by, #{by}}]),
            {ok, L} = tame_nng:listen(S, \"tcp://127.0.0.1:0\"),
            {ok, Url} = tame_nng:url(L),
            {ok, C} = tame_nng:open(req0, [{by, #{by}}, {active, true}]),
            {ok, _} = tame_nng:dial(C, Url),
            {ok, _} = tame_nng:dial(C, \"tcp://127.0.0.1:1\"),
            spawn(fun() -> tame_nng:recv(S) end),
            spawn(fun() -> tame_nng:request(C, \"x\") end),
            ok = tame_nng:send(C, \"x\"),
            #{ends}.
            """)

          assert {said, got} == {"", status}
        end
      end
    end
  end

  test "the driver is unloaded and loaded, in a VM of its own" do
    peer = Peer.start_link()
    assert Peer.call(peer, Tame.Nng.Test.Far, :unload) == :done
    :ok = :peer.stop(peer)
  end

  defp read(sub, test, n) do
    case :tame_nng.recv(sub) do
      {:ok, <<m::32, _::binary>>} ->
        ^m = n + 1
        send(test, {:read, m})
        read(sub, test, m)

      {:error, :closed} ->
        :ok
    end
  end

  defp drain(socket) do
    case :tame_nng.recv(socket, 200) do
      {:ok, _} -> drain(socket)
      {:error, :timeout} -> :ok
    end
  end

  defp nngcat(arguments) do
    path = System.find_executable("nngcat")
    Port.open({:spawn_executable, path}, [:binary, :stderr_to_stdout, args: arguments])
  end

  defp said(cat, text, ms \\ 20_000, before \\ "") do
    receive do
      {^cat, {:data, bytes}} -> before <> bytes =~ text or said(cat, text, ms, before <> bytes)
    after
      ms -> false
    end
  end

  # It does not end when its input does; some end by themselves.
  defp stop(cat) do
    with {:os_pid, pid} <- Port.info(cat, :os_pid) do
      System.cmd("kill", [to_string(pid)], stderr_to_stdout: true)
      assert until(fn -> Port.info(cat) == nil end)
    end

    flush(cat)
  end

  defp flush(cat) do
    receive do
      {^cat, _} -> flush(cat)
    after
      0 -> :ok
    end
  end
end
