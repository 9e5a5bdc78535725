defmodule Tame.ShareTest do
  # Libraries of several modules in one host: what they see of each other, and what becomes of a group.
  use ExUnit.Case, async: true

  alias Tame.ShareScenarios
  alias Tame.Test.{CLibrary, PeerVm, ShareLibraries}

  setup_all do
    %{built: ShareLibraries.build!(CLibrary.tmp_dir!())}
  end

  setup %{built: built} do
    folder = CLibrary.tmp_dir!()
    File.cp_r!(built, folder)
    %{peer: PeerVm.start_link(), folder: folder}
  end

  defp scenario(%{peer: peer, folder: folder}, name, args \\ []),
    do: PeerVm.scenario(peer, ShareScenarios, name, [folder | args])

  test "two run in one process, and call each other's resources there", context do
    seen = scenario(context, :two)
    assert {{host, :share_one, 1, 0}, {host, :share_two, 1, 0}} = seen.who
    assert Enum.sort(seen.hosts) == [{:share_one, 1, :boxes}, {:share_two, 1, :boxes}]
    assert seen.read == {:value, 40}
    assert seen.others_read == {:error, :badarg}
    assert seen.called == 41
    assert seen.called_as_own == :none
    assert seen.log == ["load share_one 1", "load share_two 1"]
  end

  test "a crash takes all down, and they are loaded again in their order", context do
    seen = scenario(context, :crash)

    assert {:error, {:tame, {:crashed, %{library: :share_one, function: {:crash, 0}}}}} =
             seen.raised

    assert seen.is_new
    assert seen.old_box == {:error, :badarg}
    assert seen.log == for(name <- ~w(two one three), do: "load share_#{name} 1")
  end

  test "what a library asks while it is loaded may be as long as later, in a new host too",
       context do
    assert {:ok, {:error, {:tame, {:crashed, _}}}, {_, :share_one, 1, 0}} =
             scenario(context, :loads_with_much)
  end

  describe "one that is refused when it joins leaves the group as it was:" do
    test "its load returns an error", context do
      seen = scenario(context, :refused, [42])
      assert {:error, {:load, text}} = seen.answer
      assert to_string(text) =~ "returned 42"
      assert %{own: {:own, 1}, same_host: true, again: :ok} = seen
    end

    test "its load crashes, so that the host is a new one", context do
      seen = scenario(context, :refused, [-2])
      assert {:error, {:load, text}} = seen.answer
      assert to_string(text) =~ "ended while it loaded"
      assert %{own: {:own, 1}, same_host: false, again: :ok} = seen
    end
  end

  test "options of the hosts must be those of the group; a module's own may differ", context do
    seen = scenario(context, :disagreements)
    assert {:error, {:share, text}} = seen.differs
    assert to_string(text) =~ "workers => 4"
    assert to_string(text) =~ "have 3 since share_one"
    assert seen.same == :ok
    assert seen.own == :ok
    assert Enum.uniq(seen.workers) == [32]
  end

  test "restore takes one out, whose library is unloaded, and the last ends the hosts", context do
    seen = scenario(context, :restore)
    assert %{restored: :ok, same_host: true, in_vm: true, last: :ok} = seen
    assert seen.info == %{}
  end

  test "a library that is taken out ends after its calls, and what they make until then",
       context do
    assert %{restored: :ok, same_host: true, log: log} = scenario(context, :restore_under_a_call)
    # The second load is the VM's.
    assert log == for(what <- ~w(load waits load box unload), do: what <> " share_two 1")
  end

  test "one that is restored under its callers leaves all calls of the others alone", context do
    assert scenario(context, :restored_beside_calls, [20]) == %{one: true, two: []}
  end

  for bind <- [:recompile, :overlay] do
    test "#{bind}: a process in a call runs the module's code, which is not purged", context do
      assert scenario(context, :purged_under_a_call, [unquote(bind)]) == {false, 1, true}
    end
  end

  test "each number that a host gives a library is one that calls have", context do
    assert Enum.uniq(scenario(context, :numbers, [70])) == [{:ok, true}]
  end

  test "the process that keeps a group may die", context do
    assert %{joined: :ok, same: [true, true, true]} = scenario(context, :replaced)
  end

  test "with several hosts each has all libraries", context do
    assert %{same: true, called: true} = scenario(context, :hosts)
  end

  describe "the process that was asked dies while the code is being loaded, which" do
    test "is isolated all the same", context do
      assert {{:error, {:interrupted, _}}, {:error, {:already_isolated, _}}, [:share_one], who} =
               scenario(context, :interrupted, [:isolate, :ok])

      assert {_, :share_one, 1, 0} = who
    end

    test "refuses: it is not isolated, and can be", context do
      assert {{:error, {:interrupted, _}}, :ok, [:share_one], {_, :share_one, 1, 0}} =
               scenario(context, :interrupted, [:isolate, :refused])
    end

    test "is restored all the same", context do
      assert {{:error, {:interrupted, _}}, {:error, {:not_isolated, _}}, [], {:own, 1}} =
               scenario(context, :interrupted, [:restore, :ok])
    end

    test "refuses: it stays isolated, and can be restored", context do
      assert {{:error, {:interrupted, _}}, :ok, [], {:own, 1}} =
               scenario(context, :interrupted, [:restore, :refused])
    end

    test "is restored, and some still run the code before: their host ends with the last",
         context do
      assert {{:error, {:interrupted, _}}, {:leaving, true}, true, true} =
               scenario(context, :restore_interrupted)
    end
  end

  describe "new code of a module," do
    for bind <- [:recompile, :overlay] do
      test "#{bind}: its library is upgraded beside the old one", context do
        seen = scenario(context, :upgrade, [unquote(bind)])
        assert seen.loaded == {:module, :share_one}
        assert seen.before
        assert seen.bound == :ok
        assert seen.both
        assert seen.called == {11, 12}
        refute seen.kept
        assert seen.after_purge

        assert seen.log == [
                 "load share_one 1",
                 "load share_two 1",
                 "upgrade share_one 2",
                 "unload share_one 1"
               ]

        assert seen.restarted == ["load share_two 1", "load share_one 2"]
      end
    end

    test "with several hosts, begins when all have its library: resources are found in each",
         context do
      assert scenario(context, :upgraded_beside_readers, [10]) == {[], true}
    end

    test "whose library a host loads while the process that was asked for it dies, is loaded",
         context do
      seen = scenario(context, :upgrade_interrupted)
      assert {{:error, {:interrupted, _}}, {:module, :share_one}, {0, 2}, true} = seen
    end

    test "whose library refuses or crashes, again and again, leaves nothing behind", context do
      {before, then} = scenario(context, :upgrades_refused, [[7, 7, 7, -2, -2, -2, -2, -2, -2]])
      assert before == then
    end

    test "whose library refuses to upgrade: the old code serves on", context do
      seen = scenario(context, :upgrade_refused)
      assert {:error, {:upgrade, text}} = seen.refused
      assert to_string(text) =~ "returned 7"
      assert seen.mine == {:own, 1}
      assert {_, :share_one, 1, 0} = seen.theirs
      assert seen.again == :ok
      assert {:error, {:reload, _}} = seen.reload
      assert seen.read == 10
    end
  end
end
