defmodule Tame.HostLimitsTest do
  # What a library may take of the system: each limit reached, coped with, and refused; and what callers are told.
  use ExUnit.Case, async: true

  alias Tame.LimitsScenarios
  alias Tame.Test.PeerVm

  setup context do
    if context[:pure], do: :ok, else: %{peer: PeerVm.start_link()}
  end

  defp scenario(peer, name, args), do: PeerVm.scenario(peer, LimitsScenarios, name, args)

  defp limited(name), do: {:error, {:tame, {:limit, name}}}

  describe "the option" do
    @describetag :pure

    test "each value at its bounds, and a step beyond them" do
      for {name, inside, outside} <- [
            {:memory_mb, [1, 0x100_0000], [0, 0x100_0001, 1.5, :infinity]},
            {:cpu_seconds, [1, 0x8000_0000], [0, -1]},
            {:open_files, [1, 0x10_0000], [0, 0x10_0001]},
            {:threads, [0, 0x8000], [-1, 0x8001]},
            {:nice, [-20, 0, 19], [-21, 20]},
            {:cpus, [1, 1023, [0], [1023, 0]], [0, 1024, [], [0, 0], [-1], [1024], [0 | 1], %{}]}
          ] do
        for value <- inside, do: assert(:tame_host_limits.check(%{name => value}) == true)

        for value <- outside do
          options = %{limits: %{name => value}}
          assert {:error, {:bad_option, text}} = :tame_isolate_options.complete(options)
          assert to_string(text) =~ ~r/^limits => #\{#{name} => .*\}: expected #{name} to be a /
        end
      end
    end

    test "what is no limit names those that there are" do
      for value <- [%{memory: 1}, [memory_mb: 1], 512] do
        assert {:error, {:bad_option, text}} = :tame_isolate_options.complete(%{limits: value})

        assert to_string(text) =~
                 "expected a map with some of memory_mb, cpu_seconds, open_files, threads, nice, cpus"
      end
    end

    test "a limit that is not set was not reached, also where the host says so" do
      why = %{signal: :sigabrt}

      assert :tame_host_limits.reached(why, %{limit: :memory}, %{memory_mb: 8}) ==
               %{signal: :sigabrt, limit: {:memory_mb, 8}}

      for {said, limits} <- [{:memory, %{cpu_seconds: 1}}, {:none, %{memory_mb: 8}}, {:cpu, %{}}],
          do: assert(:tame_host_limits.reached(why, %{limit: said}, limits) == why)

      assert :tame_host_limits.reached(why, %{}, %{memory_mb: 8}) == why
    end
  end

  describe "memory" do
    test "a library that copes with a refusal goes on in its host", %{peer: peer} do
      calls =
        for how <- [:malloc, :enif_alloc, :mmap, :new], mib <- [100, 4], do: {:take, [mib, how]}

      seen = scenario(peer, :calls, [%{memory_mb: 64}, calls])

      assert seen ==
               for(_ <- 1..4, outcome <- [{:ok, :enomem}, {:ok, :ok}], do: {outcome, 1})
    end

    test "a library that ends because of a refusal has reached its limit, and the next host has one too",
         %{peer: peer} do
      ways = [:unchecked, :abort, :exit, :bad_alloc, :term, :thread]
      calls = for how <- ways, mib <- [10, 100], do: {:must_take, [mib, how]}
      seen = scenario(peer, :calls, [%{memory_mb: 64}, calls])

      assert Enum.map(seen, &elem(&1, 0)) ==
               Enum.flat_map(ways, fn _ -> [{:ok, :ok}, limited(:memory)] end)

      assert Enum.map(seen, &elem(&1, 1)) == Enum.flat_map(1..6, &[&1, &1 + 1])
    end

    test "what ends a library for another reason is told as before", %{peer: peer} do
      calls = [{:take, [100, :malloc]}, {:crash, []}, {:must_take, [100, :abort]}, {:crash, []}]

      assert [
               {{:ok, :enomem}, 1},
               {{:error, {:tame, {:crashed, %{signal: :sigsegv, function: {:crash, 0}}}}}, 2},
               {{:error, {:tame, {:limit, :memory}}}, 3},
               {{:error, {:tame, {:crashed, %{signal: :sigsegv}}}}, 4}
             ] = scenario(peer, :calls, [%{memory_mb: 64}, calls])
    end

    test "neither the ring nor the host's own workers are counted", %{peer: peer} do
      assert scenario(peer, :large_argument, [%{memory_mb: 8}, 64_000_000]) == {{:ok, {0, 0}}, 1}
      calls = [{:take, [6, :malloc]}, {:take, [6, :malloc]}]

      assert [{{:ok, :ok}, 1}, {{:ok, :enomem}, 1}] =
               scenario(PeerVm.start_link(), :calls, [%{memory_mb: 10}, calls, %{workers: 64}])
    end

    test "without a limit the same memory is there", %{peer: peer} do
      calls = [{:take, [100, :malloc]}, {:must_take, [100, :abort]}]
      assert [{{:ok, :ok}, 1}, {{:ok, :ok}, 1}] = scenario(peer, :calls, [%{}, calls])
    end

    test "reached while the library loads: refused, and the module works as before", %{peer: peer} do
      assert {{:error, {_, text}}, true, info} =
               scenario(peer, :refused, [%{memory_mb: 16}, [{"BOUNDS_LOAD_MIB", "100"}]])

      assert info == %{}

      assert to_string(text) =~
               "the host reached its limit (memory_mb => 16) while it loaded the library"
    end

    test "reached by one caller, all in that host are told", %{peer: peer} do
      assert scenario(peer, :beside, [%{memory_mb: 64}]) == {limited(:memory), limited(:memory)}
    end
  end

  describe "CPU time" do
    test "ends a host, also one that ignores the warning, and each has time of its own", %{
      peer: peer
    } do
      calls = [{:spin, [:default]}, {:where, []}, {:spin, [:ignoring]}, {:where, []}]

      assert [{first, one}, {_, {:ok, _}}, {second, two}, {_, {:ok, _}}] =
               scenario(peer, :timed, [%{cpu_seconds: 1}, calls])

      assert {one, two} == {limited(:cpu), limited(:cpu)}
      # One thread spins: a second of CPU takes a second at least.
      assert first >= 900 and second >= 900
    end
  end

  test "open files: EMFILE beyond the library's own and some of the host's", %{peer: peer} do
    calls = [
      {:open_files, [100, :close]},
      {:open_files, [100, :abort]},
      {:open_files, [20, :abort]}
    ]

    assert [
             {{:ok, {opened, 24}}, 1},
             {{:error, {:tame, {:limit, :open_files}}}, 2},
             {_, 2} = last
           ] = scenario(peer, :calls, [%{open_files: 20}, calls])

    assert opened in 20..36
    assert last == {{:ok, {20, 0}}, 2}
  end

  test "threads: EAGAIN beyond them, however they are made; one that has ended does not count", %{
    peer: peer
  } do
    calls = for how <- [:enif, :posix, :std], count <- [5, 5, 6], do: {:threads, [count, how]}
    full = {{:ok, {5, 0}}, 1}
    refused = {{:ok, {5, 11}}, 1}

    assert scenario(peer, :calls, [%{threads: 5}, calls]) ==
             [full, full, refused, full, full, refused, full, full, {limited(:threads), 2}]
  end

  test "no thread at all", %{peer: peer} do
    assert [{{:ok, {0, 11}}, 1}] =
             scenario(peer, :calls, [%{threads: 0}, [{:threads, [1, :posix]}]])
  end

  test "priority and CPUs, for the host's threads too", %{peer: peer} do
    assert {cpus, nice, [first, last, all]} = scenario(peer, :places, [])
    assert first == {[hd(cpus)], nice + 3}
    assert last == {[List.last(cpus)], nice}
    assert all == {cpus, nice}
  end

  test "what the system does not allow is refused in a sentence; the module works as before", %{
    peer: peer
  } do
    assert {{:error, {_, text}}, true, info} = scenario(peer, :refused, [%{cpus: 1023}])
    assert info == %{}
    assert to_string(text) =~ ~r/cpus => 1023: the VM may use \d+/
  end

  test "a host that claims a limit: one that is set is believed, and nothing else changes", %{
    peer: peer
  } do
    # By the numbers of enum limit: memory, cpu, open_files, threads, and none.
    calls = for number <- [1, 2, 3, 4, 5, -1], do: {:lie, [number]}
    seen = scenario(peer, :calls, [%{memory_mb: 64, cpu_seconds: 100}, calls])
    assert Enum.map(seen, &elem(&1, 1)) == Enum.to_list(2..7)
    assert {memory, _} = hd(seen)
    assert memory == limited(:memory)

    for {outcome, _} <- tl(seen),
        do: assert({:error, {:tame, {:crashed, %{signal: :sigkill}}}} = outcome)
  end

  test "a guard that is killed takes its host along; the next one has the limits", %{peer: peer} do
    assert {{:error, {:tame, {:crashed, %{signal: :sigkill}}}}, true, true, last} =
             scenario(peer, :guard_killed, [%{memory_mb: 64}])

    assert last == limited(:memory)
  end

  test "the log names the limit and its value, info/0 all of them", %{peer: peer} do
    limits = %{memory_mb: 64, threads: 3}
    assert {^limits, raised, report} = scenario(peer, :reported, [limits])
    assert raised == limited(:memory)

    assert report =~
             ~r/the host of bounds \(OS process \d+\) reached its limit \(memory_mb => 64\) and died of sigabrt in must_take\/2/

    assert report =~ "no memory for 104857600 bytes"
  end

  describe "10,000 callers at once of a library with the defaults" do
    test "all get their answer", %{peer: peer} do
      assert scenario(peer, :crowd, [10_000, :up]) == %{ok: 10_000}
    end

    test "wait for the next host when theirs dies, but for those whose calls are in it", %{
      peer: peer
    } do
      ends = scenario(peer, :crowd, [10_000, :killed])
      # It has 64 slots.
      assert Map.get(ends, :crashed, 0) <= 64
      assert Map.delete(ends, :crashed) == %{ok: 10_000 - Map.get(ends, :crashed, 0)}
    end
  end

  test "crashes leave no ring in the VM's address space", %{peer: peer} do
    {before, later, starts} = scenario(peer, :address_space, [300])
    assert starts >= 300
    # A ring of the defaults is 2 GiB.
    assert later < before + 0x8000_0000
  end
end
