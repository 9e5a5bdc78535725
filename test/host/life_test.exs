defmodule Tame.Host.LifeTest do
  # How a host goes on and ends: hangs, calls at once, orphans, stop. c_src/host/life.
  use ExUnit.Case, async: true

  alias Tame.Await
  alias Tame.Test.{CLibrary, Contract, Host, OsProcess}

  setup_all do
    %{library: Contract.build(CLibrary.tmp_dir!())}
  end

  describe "while the library hangs" do
    test "a ping is answered", %{library: library} do
      host = Contract.start(library, args: ["--workers", "1"])
      Host.cast(host, 1, :hang_with_signals_blocked, [[]])

      for n <- [0, 1, 1_000_000_000_000] do
        Host.tell(host, {:ping, n})
        assert {:pong, ^n} = Host.wait(host, &match?({:pong, _}, &1))
      end
    end

    test "told to grow, the ring gets a worker more, up to ten", %{library: library} do
      host = Contract.start(library, args: ["--workers", "1"])
      # Without a ring there is nothing to grow.
      alone = threads(host, 1)
      Host.tell(host, {:ring, %{workers: 2}})
      assert {:ring, _fd} = Host.wait(host, &match?({:ring, _}, &1))
      assert threads(host, 0) == alone + 2
      assert threads(host, 1) == alone + 3
      assert threads(host, 100) == alone + 12
    end

    # How many threads the host has when it has been told so often to grow.
    defp threads(host, grow) do
      for _ <- 1..grow//1, do: Host.tell(host, :grow)
      Host.tell(host, {:ping, 1})
      assert {:pong, 1} = Host.wait(host, &match?({:pong, _}, &1))
      length(Path.wildcard("/proc/#{Host.os_pid(host)}/task/*"))
    end
  end

  test "its clock is the VM's, and never goes back", %{library: library} do
    host = Contract.start(library)
    %{monotonic_offset_ns: offset} = Host.settings()
    hour = 3_600_000

    for {ahead, least} <- [{0, 0}, {hour, hour}, {0, hour}, {-hour, hour}, {2 * hour, 2 * hour}] do
      Host.tell(host, {:clock, offset + ahead * 1_000_000})
      before = :erlang.monotonic_time(:millisecond)
      assert {:value, {now, _offset, 1}} = Host.call(host, :clocks, [[]])
      assert (now - before) in (least - 60_000)..(least + 60_000)
    end
  end

  test "a clock that is none ends it", %{library: library} do
    for bad <- [:none, 1.0, 2 ** 62, -(2 ** 63), 2 ** 70] do
      host = Contract.start(library)
      Host.tell(host, {:clock, bad})
      assert {:exit_status, _} = Host.wait(host, fn _ -> false end)
      assert Host.ended().stderr =~ "a malformed frame 'clock'"
    end
  end

  test "what any thread has sent comes before the reply on the ring", %{library: library} do
    host = Contract.start(library)
    Host.tell(host, {:ring, %{}})
    assert {:ring, fd} = Host.wait(host, &match?({:ring, _}, &1))
    {:ok, ring} = :tame_ring.open(Host.os_pid(host), fd, %{})
    this = self()
    Host.asked(:sync)

    for {name, syncs} <- [echo: 0, send_from_thread: 1, echo: 0, send: 1] do
      function = host.functions[{to_string(name), 1}]

      # It waits for the reply, so that this process can answer what the host asks; and then makes
      # the host say that it is done.
      caller =
        Task.async(fn ->
          reply = :tame_ring.call(ring, function, [this, {this, name}], 10_000)
          Host.tell(host, {:ping, 7})
          reply
        end)

      assert {:pong, 7} = Host.wait(host, &match?({:pong, 7}, &1))
      assert {:value, _} = Task.await(caller)
      assert {name, Host.asked(:sync)} == {name, syncs}
      if syncs > 0, do: assert_receive(^name, 0)
    end
  end

  describe "calls at once" do
    test "one NIF waits for another, with two workers", %{library: library} do
      host = Contract.start(library, args: ["--workers", "2"])
      Host.cast(host, 1, :wait_for_gate, [[]])
      assert {:value, :ok} = Host.call(host, :open_gate, [[]])
      assert {:value, :opened} = Host.await(host, 1)
    end

    test "one worker keeps the order of calls", %{library: library} do
      host = Contract.start(library, args: ["--workers", "1"])
      for id <- 1..100, do: Host.cast(host, id, :echo, [id])
      for id <- 1..100, do: assert({:value, ^id} = Host.await(host, id))
    end

    test "a cancelled call is told", %{library: library} do
      host = Contract.start(library)
      Host.cast(host, 7, :hang_until_cancelled, [[]])
      assert {:value, 1} = Host.call(host, :echo, [1])
      Host.tell(host, {:cancel, 7})
      assert {:value, :cancelled} = Host.await(host, 7)
    end
  end

  describe "no orphans" do
    test "the port closes while a call loops with every signal blocked", %{library: library} do
      host = Contract.start(library, args: ["--workers", "1"])
      Host.cast(host, 1, :hang_with_signals_blocked, [[]])
      guard = Host.guard(host)
      Host.stop(host)
      assert Await.until(fn -> Host.gone?(host, guard) end)
    end

    test "the host is stopped, and then the port closes", %{library: library} do
      host = Contract.start(library)
      guard = Host.guard(host)
      OsProcess.stop(Host.os_pid(host))
      Host.stop(host)
      assert Await.until(fn -> Host.gone?(host, guard) end)
    end

    test "the guard is killed", %{library: library} do
      host = Contract.start(library)
      guard = Host.guard(host)
      Host.cast(host, 1, :hang_with_signals_blocked, [[]])
      OsProcess.signal(guard, "KILL")
      assert {:exit_status, 137} = Host.await(host, 1)
      assert Await.until(fn -> Host.gone?(host, guard) end)
    end

    test "the VM is killed", %{library: library} do
      code = """
      alias Tame.Test.Host
      host = Host.load!(Host.start(), #{inspect(library)}, :contract_nif)
      Host.cast(host, 1, :hang_with_signals_blocked, [[]])
      guard = Host.guard(host)
      IO.puts("pids \#{Host.os_pid(host)} \#{guard} \#{System.pid()}")
      Process.sleep(:infinity)
      """

      vm = OsProcess.start_vm(code, [])
      assert_receive {^vm, {:data, {:eol, "pids " <> pids}}}, 20_000
      [host, guard, beam] = String.split(pids)
      OsProcess.signal(beam, "KILL")
      assert Await.until(fn -> Enum.all?([host, guard], &OsProcess.gone?/1) end)
    end

    test "what the library has started ends with the host, but for a daemon", %{library: library} do
      for how <- [:crash_segv, :crash_kill, :closed] do
        host = Contract.start(library)
        assert {:value, [child, daemon]} = Host.call(host, :start_children, [[]])
        assert Await.until(fn -> File.read("/proc/#{daemon}/comm") == {:ok, "sleep\n"} end)
        if how == :closed, do: Host.stop(host), else: Host.call(host, how, [[]])
        assert Await.until(fn -> OsProcess.gone?(child) end)
        refute OsProcess.gone?(daemon)
        OsProcess.signal(daemon, "KILL")
      end
    end

    test "the host is stopped, and then the guard is killed", %{library: library} do
      host = Contract.start(library)
      guard = Host.guard(host)
      OsProcess.stop(Host.os_pid(host))
      OsProcess.signal(guard, "KILL")
      assert Await.until(fn -> Host.gone?(host, guard) end)
    end
  end

  test "asked to stop, it unloads and ends", %{library: library} do
    host = Contract.start(library)
    Host.tell(host, :stop)
    assert {:exit_status, 0} = Host.wait(host, fn _ -> false end)
  end

  test "nothing of the VM's is open in a host", %{library: library} do
    {:ok, listener} = :gen_tcp.listen(0, [])
    host = Contract.start(library)

    fds =
      Path.wildcard("/proc/#{Host.os_pid(host)}/fd/*")
      |> Enum.map(&{Path.basename(&1), File.read_link!(&1)})

    :gen_tcp.close(listener)
    assert Enum.find(fds, fn {_, to} -> String.starts_with?(to, "socket:") end) == nil
    # 0, 1, 2 and the two pipes
    assert length(fds) == 5, inspect(fds)
  end
end
