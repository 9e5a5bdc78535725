defmodule Tame.LibraryTest do
  # The record that each call reads. That calls come right by it is tested with isolation.
  use ExUnit.Case, async: true

  @info %{wants_caller: true, sends: false, resources: true}

  setup do
    key = :tame_versions.new_key()
    module = :"tame_library_#{key}"
    on_exit(fn -> :ok = :tame_library.remove(module) end)
    %{key: key, module: module}
  end

  defp options(hosts), do: %{deadline_ms: 7, wait_ms: 8, hosts: hosts}

  defp publish(key, hosts), do: :tame_library.publish(key, {}, 512, @info, options(hosts))

  test "is what was published, and is not written when only rings change", %{
    key: key,
    module: module
  } do
    :ok = :tame_library.add(key, module, :a_group)

    assert {:library, ^key, route, ^module, :a_group, 0, false, _, _, _, _, _} =
             :tame_library.find(key)

    :ok = publish(key, {2, 2})
    published = :tame_library.find(key)

    assert published ==
             {:library, key, route, module, :a_group, 512, true, true, false, true, 7, 8}

    :ok = :tame_library.set_rings(key, {})
    assert :tame_library.find(key) == published
  end

  test "with one host at most, no call is sent after resources", %{key: key, module: module} do
    :ok = :tame_library.add(key, module, module)
    :ok = publish(key, {1, 1})
    assert elem(:tame_library.find(key), 9) == false
  end

  test "gets another route where a replaced library of the ring has lost its own", %{
    key: key,
    module: module
  } do
    :ok = :tame_library.add(key, module, module)
    lost = make_ref()
    :persistent_term.put({:tame_library, key}, put_elem(:tame_library.find(key), 2, lost))
    :ok = publish(key, {1, 1})
    route = elem(:tame_library.find(key), 2)
    assert route != lost
    assert :tame_ring.lead(route, {}) == :ok
  end

  test "that was removed does not come back, not even by who was about to write it", %{
    key: key,
    module: module
  } do
    :ok = :tame_library.add(key, module, module)
    # As if it were removed between the two steps of remove/1.
    true = :ets.delete(:tame_library, key)
    :ok = publish(key, {1, 1})
    assert :tame_library.find(key) == :not_isolated

    :ok = :tame_library.add(key, module, module)
    :ok = :tame_library.remove(module)
    :ok = publish(key, {1, 1})
    :ok = :tame_library.set_rings(key, {})
    assert :tame_library.find(key) == :not_isolated
    refute :tame_library.is_known(key)
  end
end
