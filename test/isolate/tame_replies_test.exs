defmodule Tame.RepliesTest do
  # Replies that a host has trouble with, and modules as their authors write and compile them: what strangers' libraries
  # have shown.
  use ExUnit.Case, async: true

  alias Tame.ReplyScenarios
  alias Tame.Test.{CLibrary, PeerVm}

  defp scenario(name, args \\ []),
    do: PeerVm.scenario(PeerVm.start_link(), ReplyScenarios, name, args)

  describe "an atom that the host has made" do
    test "may be in a reply a hundred thousand times, and more" do
      calls = [
        {:repeat, "ok", 100_001},
        {:repeat, "replies_known_nowhere", 100_001},
        {:repeat, "replies_known_nowhere", 300_000}
      ]

      assert scenario(:atoms, [%{}, calls]) == [100_001, 100_001, 300_000]
    end

    test "is one, however often it is in a reply, and max_atoms bounds those that are new" do
      calls = [
        {:repeat, "replies_once", 5000},
        {:repeat, "replies_once", 5000},
        {:atoms, "replies_many_", 99},
        {:atoms, "replies_more_", 1}
      ]

      assert [5000, 5000, 99, :system_limit] = scenario(:atoms, [%{max_atoms: 100}, calls])
    end

    test "may be one of ten thousand" do
      assert scenario(:atoms, [%{}, [{:atoms, "replies_thousands_", 10_000}]]) == [10_000]
    end
  end

  test "resources that the VM knows are sent again by the thousand" do
    assert scenario(:resources, [20_000]) == {[40_000, 40_000, 40_000], 20_000, true}
  end

  test "a resource that several callers take and let go of at once leaves no lease" do
    assert scenario(:one_for_all, [4, 3000])
  end

  # The process that lends a host its leases had their references on its heap for seconds.
  test "a resource is destroyed when its caller has let go of it, and not when tame collects a heap" do
    assert scenario(:fleeting, [[1, 300, 1000, 1, 1000]]) == [1, 300, 1000, 1, 1000]
  end

  for how <- [:restart, :restore, :stop] do
    test "a call in flight that asks the VM is answered: #{how}" do
      assert scenario(:asks_while, [unquote(how)]) == {:ok, true}
    end
  end

  test "a NIF may send faster than the VM reads" do
    assert scenario(:messages, [300_000])
  end

  # 2^60 leaves: nobody counts them to the end.
  test "what shares its parts is too large, and says so at once" do
    assert {[value, raised, sent, hashed], true} = scenario(:shared, [%{area_bytes: 65_536}, 60])
    assert {:tame, {:reply_too_large, %{bytes: bytes}}} = value
    assert bytes > 65_536
    assert {:tame, {:reply_too_large, _}} = raised
    assert sent == 0
    assert hashed == :system_limit
  end

  # 38 GB: the VM ends when it is to encode them.
  test "arguments that name one binary again and again are too large before they are encoded" do
    assert [few, many, :badarg, few_again, many_again] =
             scenario(:repeated, [%{area_bytes: 1_048_576}, 64_000_000, 600])

    for outcome <- [few, many, few_again, many_again],
        do: assert({:tame, {:too_large, %{library: :replies_to_repeated}}} = outcome)
  end

  # By size alone they had one hash: 16,000 took 8 s.
  test "maps are keys of maps" do
    assert scenario(:map_of_maps, [40_000, 20_000])
  end

  test "a NIF that returns no term raises what the guide says, and the next call is answered" do
    assert {{:tame, {:returned_no_term, info}}, 3} = scenario(:no_term)
    assert %{library: :replies_of_nothing, function: {:no_term, 0}, advice: advice} = info
    assert to_string(advice) =~ "no term"
  end

  test "a module that is written in Elixir is bound either way" do
    for how <- [:auto, :recompile, :overlay] do
      assert scenario(:in_elixir, [[how]]) == [{how, :ok, [:ok, :ok, :ok], true, :ok}]
    end
  end

  test "a module that is written in Elixir, in a VM that has no Elixir" do
    peer = PeerVm.start_link()
    module = PeerVm.scenario(peer, ReplyScenarios, :write_in_elixir)
    folder = :peer.call(peer, :code, :which, [module]) |> to_string() |> Path.dirname()

    # Only what belongs to the application tame.
    printed =
      CLibrary.erl(folder, """
      {ok, _} = application:ensure_all_started(tame),
      M = '#{module}',
      {error, {no_debug_info, _}} = tame:isolate(M, \#{bind => recompile}),
      io:format("~p ~p", [tame:isolate(M), M:repeat("ok", 2)])
      """)

    assert printed == {"ok [ok,ok]", 0}
  end

  test "a library that does not load is refused with the loader's words" do
    assert {:error, {:bad_library, text}} = scenario(:broken)
    assert to_string(text) =~ "undefined symbol: nobody_has_this"
  end
end
