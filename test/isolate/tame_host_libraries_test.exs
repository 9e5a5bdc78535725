defmodule Tame.HostLibrariesTest do
  # Which library a host is asked to load or unload next, and which answers are taken. Pure.
  use ExUnit.Case, async: true

  @info %{wants_caller: false, sends: false, resources: false}

  defp library(number, key, upgrades \\ :none) do
    %{
      key: key,
      module: :m,
      number: number,
      upgrades: upgrades,
      functions: [f: 1],
      path: "/m.so",
      load_info: 0,
      loader: :none,
      order: number
    }
  end

  defp next(wanted, state), do: :tame_host_libraries.next(wanted, 0, 100, state)

  defp loaded(number, state, functions \\ [{"f", 1}]),
    do: :tame_host_libraries.loaded(functions, {number, @info}, state)

  defp having(wanted) do
    Enum.reduce(wanted, :tame_host_libraries.new(), fn %{number: number}, state ->
      {:send, {:load, "/m.so", :m, 0, %{library: ^number}}, asked} = next(wanted, state)
      assert next(wanted, asked) == :waits
      {:ok, state} = loaded(number, asked)
      state
    end)
  end

  test "all that are wanted are loaded, in their order, one at a time" do
    wanted = [library(3, :a), library(0, :b)]
    assert next(wanted, having(wanted)) == :done
  end

  test "what is not wanted any more is unloaded, before another takes its number" do
    state = having([library(0, :a)])
    assert {:send, {:unload, 0}, asked} = next([library(0, 7)], state)
    assert {:ok, state} = :tame_host_libraries.unloaded(0, asked)
    assert {:send, {:load, _, _, _, %{library: 0}}, _} = next([library(0, 7)], state)
  end

  test "an upgrade names the version before, if the host has it" do
    before = library(0, :a)
    wanted = [before, library(1, 7, :a)]
    assert {:send, {:load, _, _, _, settings}, _} = next(wanted, having([before]))
    assert settings == %{library: 1, upgrades: 0}
    assert {:send, {:load, _, _, _, alone}, _} = next(tl(wanted), :tame_host_libraries.new())
    assert alone == %{library: 1}
  end

  test "who loads it is told, where the library may know that" do
    known = %{library(0, :a) | loader: self()}
    assert {:send, {:load, _, _, _, settings}, _} = next([known], :tame_host_libraries.new())
    assert settings == %{library: 0, caller: self()}
  end

  test "answers to what was not asked, or with other functions, are not taken" do
    wanted = [library(2, :a)]
    new = :tame_host_libraries.new()
    {:send, _, asked} = next(wanted, new)

    for state <- [new, having(wanted)] do
      assert loaded(2, state) == :unasked
      assert :tame_host_libraries.refused(state) == :unasked
      assert :tame_host_libraries.unloaded(2, state) == :unasked
    end

    assert loaded(1, asked) == :unasked
    assert :tame_host_libraries.unloaded(2, asked) == :unasked
    assert {:changed, _} = loaded(2, asked, [{"g", 1}])
    refute :tame_host_libraries.is_late(100, asked)
    assert :tame_host_libraries.is_late(101, asked)
  end

  test "numbers go round, and 64 are all" do
    assert :tame_host_libraries.free_number(-1, []) == {:ok, 0}
    assert :tame_host_libraries.free_number(4, [5, 6]) == {:ok, 7}
    assert :tame_host_libraries.free_number(63, [0]) == {:ok, 1}
    assert :tame_host_libraries.free_number(5, Enum.to_list(0..63)) == :none
  end
end
