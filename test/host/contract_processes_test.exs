defmodule Tame.Host.ContractProcessesTest do
  # As contract_test.exs: functions of erl_nif that have to do with resources, processes and ports.
  use ExUnit.Case, async: false

  alias Tame.Await
  alias Tame.Test.{CLibrary, Contract, Host, Terms}

  setup_all do
    %{library: Contract.here!(CLibrary.tmp_dir!())}
  end

  setup %{library: library} do
    %{host: Contract.start_alike(library)}
  end

  test "resources: made, got, forgotten", %{host: host} do
    assert {:value, ref} = Host.call(host, :resource_make, [[]])
    assert is_reference(ref)
    assert {:value, [1, 33, 64, 1, 0]} = Host.call(host, :resource_get, [ref])
    assert {:value, [1, 34, 64, 1, 0]} = Host.call(host, :resource_get, [ref])
    assert {:value, ^ref} = Host.call(host, :echo, [ref])
    assert {:value, {1, 0, 1, 10}} = Host.call(host, :resource_terms_are_references, [[]])
    assert {:value, [0, 0]} = Host.call(host, :resource_get, [make_ref()])
    assert {:value, [0, 0]} = Host.call(host, :resource_get, [:no_ref])
    assert {:value, true} = Host.call(host, :resource_destructor_is_not_called_inside, [[]])

    assert Await.until(fn -> Host.call(host, :resource_destructors, [[]]) == {:value, 1} end)
  end

  test "self, pids, whereis", %{host: host} do
    dead = spawn(fn -> :ok end)
    assert Await.until(fn -> not Process.alive?(dead) end)
    Contract.same(host, :self, [])

    for term <- [self(), dead, hd(Port.list()), :none] ++ Enum.filter(Terms.hard(), &is_pid/1),
        do: Contract.same(host, :pids, term)

    for name <- [:init, :kernel_sup, :no_such_name_here, :undefined, 17, "init"],
        do: Contract.same(host, :whereis, name)
  end

  test "send: from a call, and from a thread", %{host: host} do
    for name <- [:send, :send_from_thread] do
      message = {:message, [1.5, "bin", self()], %{a: make_ref()}}
      assert {:value, true} = Contract.same(host, name, {self(), message})
      assert messages() |> Enum.frequencies() |> Map.values() |> Enum.all?(&(rem(&1, 2) == 0))
    end
  end

  test "send: to a process that has ended", %{host: host} do
    dead = spawn(fn -> :ok end)
    assert Await.until(fn -> not Process.alive?(dead) end)

    for name <- [:send, :send_from_thread],
        do: assert({:value, false} = Contract.same(host, name, {dead, :message}))
  end

  test "send: a thread is told when the receiver has ended", %{host: host} do
    receiver = spawn(fn -> for _ <- 1..3, do: receive(do: (:message -> :ok)) end)
    assert {:value, true} = Host.call(host, :send_until_gone, [receiver])
  end

  defp messages do
    receive do
      message -> [message | messages()]
    after
      0 -> []
    end
  end

  test "port_command", %{host: host} do
    port = Port.open({:spawn, "cat"}, [:binary])
    assert {:value, 1} = Host.call(host, :port_command, [{port, ["written", " by a NIF"]}])
    assert_receive {^port, {:data, "written by a NIF"}}, 5000
    # More than the VM reads of one frame.
    assert {:value, 0} = Host.call(host, :port_command, [{port, :binary.copy("x", 67_108_864)}])
    Port.close(port)
    assert {:value, 0} = Host.call(host, :port_command, [{port, "x"}])
  end

  test "monitors: a process ends, a monitor is cancelled", %{host: host} do
    watched = spawn(fn -> receive do: (:end -> :ok) end)
    assert {:value, {0, 1, handle}} = Host.call(host, :monitor, [{watched, self()}])
    Process.exit(watched, :kill)
    assert_receive {:DOWN, ref, :process, ^watched, :killed}, 5000
    Host.tell_down(host, ref)
    assert {:value, _} = Host.call(host, :echo, [handle])
    assert Await.until(fn -> Host.call(host, :echo, [1]) && received?({:down, watched, 0}) end)
    assert {:value, {1, 1}} = Host.call(host, :demonitor, [handle])

    assert {:value, {0, 1, handle}} = Host.call(host, :monitor, [{self(), self()}])
    assert {:value, {0, 1}} = Host.call(host, :demonitor, [handle])
    assert {:value, {1, 1, _}} = Host.call(host, :monitor, [{watched, self()}])
  end

  test "no callback when the VM said that the process is dead", %{host: host} do
    dead = spawn(fn -> :ok end)
    assert Await.until(fn -> not Process.alive?(dead) end)

    for _ <- 1..200,
        do: {:value, {1, 1, _}} = Contract.here(:contract_nif, :monitor, [{dead, self()}])

    assert {:value, 0} = Contract.here(:contract_nif, :monitor_downs, [[]])

    for moment <- [:before, :after] do
      # As a VM that monitors first and looks then: the DOWN of a dead process is on its way.
      Process.put({Host, :down}, moment)
      for _ <- 1..200, do: {:value, {1, 1, _}} = Host.call(host, :monitor, [{dead, self()}])
      Process.delete({Host, :down})
      # What the reader of the port has handed out comes before this call, in the one line of jobs.
      for _ <- 1..20, do: Host.call(host, :echo, [1])
      assert {:value, 0} = Host.call(host, :monitor_downs, [[]])
    end
  end

  test "many monitors: some fire, the others go with their resources", %{library: library} do
    host = Contract.start(library)
    assert {:value, 50_000} = Host.call(host, :monitor_many, [{self(), 50_000}])
    # Of a new host, they have these numbers.
    for id <- 1..50_000//2, do: Host.tell(host, {:down, id})
    assert Await.until(fn -> Host.call(host, :monitor_downs, [[]]) == {:value, 25_000} end)
    assert {:value, 50_000} = Host.call(host, :monitor_many, [{}])
    # No new one is mistaken for one of them.
    assert {:value, 1} = Host.call(host, :monitor_many, [{self(), 1}])
    for id <- 2..50_000//2, do: Host.tell(host, {:down, id})
    assert {:value, 25_000} = Host.call(host, :monitor_downs, [[]])
  end

  test "a monitor's term is a reference of its own", %{host: host} do
    assert Contract.same(host, :monitor_term, self()) == {:value, {1, 0, 1, 0}}
  end

  test "a process that ends while it is being monitored", %{host: host} do
    for {moment, count} <- [before: 1, after: 2] do
      Process.put({Host, :down}, moment)
      assert {:value, {0, 1, _}} = Host.call(host, :monitor, [{self(), self()}])
      Process.delete({Host, :down})
      assert Await.until(fn -> Host.call(host, :monitor_downs, [[]]) == {:value, count} end)
      this = self()
      assert Await.until(fn -> Host.call(host, :echo, [1]) && received?({:down, this, 0}) end)
    end
  end

  defp received?(message) do
    receive do
      ^message -> true
    after
      0 -> false
    end
  end

  test "a message that the VM would not read is not sent, however near to the longest", %{
    host: host
  } do
    frame_bytes_max = 67_108_864

    for {bytes, sent?} <- [{frame_bytes_max, false}, {frame_bytes_max - 4096, true}] do
      assert {:value, ^sent?} = Host.call(host, :send, [{self(), :binary.copy("x", bytes)}])
      assert sent? == (Process.info(self(), :message_queue_len) != {:message_queue_len, 0})
    end
  end

  # Arguments of large_term (contract.h). What the VM reads of a frame is bounded in bytes, in memory and in
  # depth (tame_control.erl).
  for {bound, args} <- [
        bytes: {:mib, 65, 0},
        memory: {:string, 257, 0},
        depth: {:atom, 1, 1_048_577}
      ] do
    test "what the VM would not read for its #{bound} is not sent, and not asked", %{host: host} do
      {part, times, depth} = unquote(Macro.escape(args))
      large = {part(part), times, depth}
      assert Host.call(host, :send_large, [{self(), large}]) == {:value, false}
      assert Host.call(host, :phash2_large, [large]) == {:raise, :system_limit}
      assert Host.call(host, :echo, [1]) == {:value, 1}
      assert messages() == []
    end
  end

  test "what the VM would read is sent, and asked", %{host: host} do
    assert Host.call(host, :send_large, [{self(), {"x", 2, 2}}]) == {:value, true}
    sent = {{["x", "x"], 0}, 0}
    assert messages() == [sent]
    hash = :erlang.phash2(sent)
    assert Host.call(host, :phash2_large, [{"x", 2, 2}]) == {:value, hash}
  end

  defp part(:mib), do: :binary.copy("x", 1_048_576)
  defp part(:string), do: List.duplicate(?x, 65_535)
  defp part(:atom), do: :x

  test "a hash of atoms that the VM will not make is none", %{host: host} do
    name = "no_atom_#{System.unique_integer([:positive])}"
    Process.put({Host, :no_atoms}, true)
    assert Host.call(host, :phash2_of_atom, [name]) == {:raise, :system_limit}
  end
end
