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
end
