defmodule Tame.Host.LeasesTest do
  # Resources from the VM's side: c_src/host/term/lease.c, life/object.c.
  use ExUnit.Case, async: true

  alias Tame.Await
  alias Tame.Test.{CLibrary, Contract, Host}

  setup_all do
    %{library: Contract.build(CLibrary.tmp_dir!())}
  end

  setup %{library: library} do
    %{host: Contract.start(library)}
  end

  test "a resource is destroyed when the VM has collected its lease, and not before", %{host: host} do
    {{:value, ref}, [lease]} = Host.call_with_leases(host, :resource_make_counted, [[]])
    assert {{:value, ^ref}, []} = Host.call_with_leases(host, :echo, [ref])
    assert {:value, 0} = Host.call(host, :resource_destructors, [[]])
    Host.tell(host, {:gone, [lease]})
    assert Await.until(fn -> Host.call(host, :resource_destructors, [[]]) == {:value, 1} end)
    # The reference is an ordinary one from now on.
    assert {:value, [0, 0]} = Host.call(host, :resource_get, [ref])
    # An id that is not known, or gone already, is none.
    Host.tell(host, {:gone, [lease, 123_456]})
    assert {:value, 1} = Host.call(host, :resource_destructors, [[]])
  end

  test "thousands come and go, and leave nothing", %{host: host} do
    count = 5000

    for _ <- 1..count do
      {{:value, _}, [lease]} = Host.call_with_leases(host, :resource_make_counted, [[]])
      Host.tell(host, {:gone, [lease]})
    end

    assert Await.until(fn -> Host.call(host, :resource_destructors, [[]]) == {:value, count} end)
  end

  test "arguments go out again without a question, what the library kept does not", %{host: host} do
    {{:value, ref}, [lease]} = Host.call_with_leases(host, :resource_kept, [[]])
    Process.put({Host, :holds}, 0)
    assert {{:value, ^ref}, []} = Host.call_with_leases(host, :echo, [ref])
    assert Process.get({Host, :holds}) == 0
    assert {{:value, ^ref}, [^lease]} = Host.call_with_leases(host, :resource_kept, [[]])
    assert Process.get({Host, :holds}) == 1
  end

  test "what the VM has collected goes out under a new lease, however late it says so", %{
    host: host
  } do
    {{:value, old}, [lease]} = Host.call_with_leases(host, :resource_kept, [[]])
    Process.put({Host, :collected}, [lease])
    assert {{:value, new}, [new_lease]} = Host.call_with_leases(host, :resource_kept, [[]])
    assert new != old and new_lease != lease
    Host.tell(host, {:gone, [lease]})
    assert {{:value, ^new}, [^new_lease]} = Host.call_with_leases(host, :resource_kept, [[]])
    assert {:value, [1, _, 64, 1, 0]} = Host.call(host, :resource_get, [new])
    assert {:value, [0, 0]} = Host.call(host, :resource_get, [old])
  end

  test "so it does when the VM says so while it is asked", %{host: host} do
    {{:value, old}, [lease]} = Host.call_with_leases(host, :resource_kept, [[]])
    Process.put({Host, :collected}, [lease])
    Process.put({Host, :gone_at_hold}, [lease])
    assert {{:value, new}, [new_lease]} = Host.call_with_leases(host, :resource_kept, [[]])
    assert new != old and new_lease == id_of(new)
    Process.put({Host, :gone_at_hold}, [])
    assert {{:value, ^new}, [^new_lease]} = Host.call_with_leases(host, :resource_kept, [[]])
  end

  for what <- [compared: 0, printed: 1, a_key: 2, hashed: 3, sent_to_a_port: :port] do
    test "a resource that is only #{elem(what, 0)} is destroyed, and its lease names another", %{
      host: host
    } do
      arg = unquote(elem(what, 1)) |> then(&if &1 == :port, do: closed_port(), else: &1)
      for _ <- 1..500, do: assert({_, []} = Host.call_with_leases(host, :resource_named, [arg]))
      assert Await.until(fn -> Host.call(host, :resource_destructors, [[]]) == {:value, 1000} end)
      assert Host.asked(:leases) < 10
    end
  end

  test "one that the library kept as bytes ends too, and its lease names no other", %{host: host} do
    named = for _ <- 1..100, do: :erlang.binary_to_term(listed(host, :resource_named, 4))
    made = for _ <- 1..100, do: listed(host, :resource_make_counted, [])
    assert Enum.uniq(named ++ made) == named ++ made
    # The VM may let go of them all, as soon as they have ended.
    ids = Enum.sort(Enum.map(named ++ made, &id_of/1))

    assert Await.until(fn ->
             listed(host, :resource_destructors, []) == 200 and
               Enum.sort(Process.get(:listed)) == ids
           end)
  end

  test "what is new in a message that the VM refuses is in a later list of leases", %{host: host} do
    Process.put({Host, :no_atoms}, true)
    name = "no_such_atom_#{System.unique_integer([:positive])}"
    assert {{:value, false}, [_]} = Host.call_with_leases(host, :resource_sent, [{self(), name}])
    assert {{:value, _}, []} = Host.call_with_leases(host, :resource_destructors, [[]])
  end

  test "what goes to another process is held, an argument too: its caller may be killed", %{
    host: host
  } do
    {:value, ref} = Host.call(host, :resource_make_counted, [[]])
    other = spawn_link(fn -> Process.sleep(:infinity) end)
    Process.put({Host, :holds}, 0)
    assert {:value, _} = Host.call(host, :send, [{self(), ref}])
    assert Process.get({Host, :holds}) == 0
    assert {:value, _} = Host.call(host, :send, [{other, ref}])
    assert Process.get({Host, :holds}) > 0
  end

  test "many are asked for a thousand at a time: a frame is bounded", %{host: host} do
    refs = for _ <- 1..1500, do: elem(Host.call(host, :resource_make_counted, [[]]), 1)
    this = self()

    other =
      spawn_link(fn ->
        receive do: (message -> send(this, {:got, message}))
        Process.sleep(:infinity)
      end)

    Process.put({Host, :holds}, 0)
    # Four messages.
    assert {:value, true} = Host.call(host, :send, [{other, refs}])
    assert Process.get({Host, :holds}) == 8
    assert_receive {:got, {0, ^refs}}, 20_000
  end

  test "identifiers stay what they are when the node gets a name", %{host: host} do
    {:value, ref} = Host.call(host, :resource_kept, [[]])
    Host.tell(host, {:node, :renamed@host, 77})
    # Encoded before, decoded after: the words count. What comes back names the new node.
    assert {:value, renamed} = Host.call(host, :echo, [{self(), ref, hd(Port.list())}])
    assert Enum.map(Tuple.to_list(renamed), &node/1) |> Enum.uniq() == [:renamed@host]
    assert {:value, [1, _, 64, 1, 0]} = Host.call(host, :resource_get, [ref])
    Host.tell(host, {:node, node(), :erlang.system_info(:creation)})
    assert {:value, ^ref} = Host.call(host, :echo, [ref])
  end

  # The value; which leases the reply lists is noted.
  defp listed(host, name, arg) do
    {{:value, value}, leases} = Host.call_with_leases(host, name, [arg])
    Process.put(:listed, leases ++ Process.get(:listed, []))
    value
  end

  defp closed_port do
    port = Port.open({:spawn, ~c"cat"}, [])
    Port.close(port)
    port
  end

  defp id_of(ref) do
    {id, ^ref} = Process.get(:leases) |> List.flatten() |> List.keyfind(ref, 1)
    id
  end
end
