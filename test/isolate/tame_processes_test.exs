defmodule Tame.ProcessesTest do
  # The processes of isolation, each of them ended, stopped or starved: the module is isolated afterwards and answers,
  # or fails with its word. It is never run in the VM, and nobody dies who only called.
  use ExUnit.Case, async: true

  alias Tame.ProcessScenarios

  @moduletag timeout: 180_000

  setup do
    %{peer: Tame.Test.PeerVm.start_link()}
  end

  defp scenario(peer, name, args \\ []),
    do: :peer.call(peer, ProcessScenarios, name, args, 150_000)

  @well %{answers: true, known: true, in_vm: false}

  for hosts <- [1, 2] do
    test "each of our processes, killed in turn, is replaced (#{hosts} hosts)", %{peer: peer} do
      kinds = ProcessScenarios.kinds()
      seen = scenario(peer, :killed_in_turn, [kinds, %{hosts: unquote(hosts)}])
      assert seen == for(kind <- kinds, do: {kind, @well})
    end
  end

  for n <- 1..3 do
    test "a walk over every state (#{n}): isolated and answering in the end, no lease left, nothing wrong on the way",
         %{peer: peer} do
      seed = ExUnit.configuration()[:seed] + unquote(n)
      {taken, seen, well, resources?, restored} = scenario(peer, :walk, [seed, 25])
      context = inspect({seed, taken, seen, well, restored}, limit: :infinity)
      assert well == @well, context
      assert resources?, context
      assert restored == :ok, context

      assert Map.keys(seen) -- [:right, :badarg, :crashed, :no_host, :deadline, :busy] == [],
             context
    end
  end

  test "a host that writes a bad reply is replaced", %{peer: peer} do
    assert scenario(peer, :condemned) == {true, true, true}
  end

  test "a caller whose host process is killed is told, and the next call is answered", %{
    peer: peer
  } do
    assert {{:error, {:tame, {:crashed, %{library: :places}}}}, @well} =
             scenario(peer, :host_killed_under_a_call)
  end

  test "restore waits for calls in flight, and ends nobody", %{peer: peer} do
    assert {:ok, results, vm, now, info} = scenario(peer, :restored_under_calls, [1500])
    assert [{:ok, host}, {:ok, [host]}] = results
    assert host != vm and now == vm
    assert info == %{}
  end

  test "isolate ends nobody who runs the module's code, and says who is in the way of restore", %{
    peer: peer
  } do
    {isolated, host, again, inside, alive?, left, staying} =
      scenario(peer, :isolated_under_calls, [1000])

    vm = :peer.call(peer, :os, :getpid, []) |> List.to_integer()
    assert isolated == :ok and host != vm
    assert {{:error, {:in_use, text}}, {:ok, ^host}} = again
    # As that VM writes it: the first number is this VM's.
    [number] = Regex.run(~r/\.\d+\.\d+>$/, inspect(staying))
    assert to_string(text) =~ "<0" <> number
    assert inside == {:ok, [vm]}
    assert alive? and left == [:left]
  end

  test "the host's program is away for a while", %{peer: peer} do
    {away, well, descriptors} = scenario(peer, :program_away, [300])
    assert descriptors < 100
    assert {:error, {:tame, {:no_host, %{library: :places, advice: advice}}}} = away
    assert to_string(advice) =~ "wait_ms"
    assert well == @well
  end

  test "a host that is stopped while nobody calls is found and replaced, its slots freed", %{
    peer: peer
  } do
    assert scenario(peer, :stopped_while_idle, [300]) == {true, true, 0}
  end

  test "restart/1 replaces a host that is stopped; before a load it changes nothing", %{peer: peer} do
    assert scenario(peer, :restarted) == {:ok, true, :ok, true}
  end

  test "a call goes to the host of its resources; one that names two hosts is refused", %{
    peer: peer
  } do
    {sums, places, mixed} = scenario(peer, :resources, [2])
    assert sums == for(n <- 1..20, do: {n, 2 * n})
    assert places == 2
    assert {:error, {:tame, {:two_hosts, %{function: {:sum, 1}, advice: _}}}} = mixed
  end

  test "callers at once go to different hosts", %{peer: peer} do
    assert scenario(peer, :spread, [3, 3]) == 3
  end

  test "calls that wait for each other find a worker each", %{peer: peer} do
    assert scenario(peer, :met, [2, 6]) == List.duplicate({:ok, :ok}, 6)
  end

  test "a library finds processes of the application, none of the system's", %{peer: peer} do
    assert scenario(peer, :whom) == {true, true, [false, false, false, false]}
  end

  test "only atoms that are new count, over the host's restarts", %{peer: peer} do
    {old, new, last, again, count} = scenario(peer, :atoms, [50])
    assert old == [:ok]
    assert new == 50
    assert {:error, :system_limit} = last
    assert again == :tame_places_atom_1
    assert count == 50
  end

  test "an idle host whose resource somebody holds is not stopped", %{peer: peer} do
    assert scenario(peer, :idle_with_resource) == {2, true}
  end

  test "a library that its application has loaded works isolated, and restored", %{peer: peer} do
    assert scenario(peer, :loaded_later, [:recompile]) == {true, :ok, {:ok, true}, :ok, {:ok, true}}
  end

  test "without the application tame an isolated module raises, and is not run in the VM", %{
    peer: peer
  } do
    {stopped, started, well} = scenario(peer, :stopped_application)
    assert {{:error, {:tame, {:not_started, %{library: :places}}}}, false} = stopped
    assert {{:error, {:tame, {:restored, %{library: :places}}}}, false} = started
    assert well == @well
  end

  describe "configured isolation that cannot be had" do
    @describetag needs: :jiffy

    for {isolate, words} <- [
          {[:nosuch], "nosuch is not isolated: there is no module nosuch"},
          {[jiffy: [hostz: 2]], "hostz => 2: no such option"},
          {[{:jiffy, 2}], "2: expected a map of options"},
          {["jiffy"], "expected a module"},
          {:jiffy, "expected a list of modules"},
          {%{jiffy: []}, "expected a list of modules"},
          {[{:jiffy, %{host: "/no/such"}}], "there is no /no/such"}
        ] do
      test "stops the start with a sentence: #{inspect(isolate)}", %{peer: peer} do
        {started, runs?, _answer, _in_vm} =
          scenario(peer, :configured, [unquote(Macro.escape(isolate))])

        assert {:error, {:tame, {{:not_isolated, sentence}, _}}} = started
        assert to_string(sentence) =~ unquote(words)
        refute runs?
      end
    end

    test "runs in the VM only where the configuration says so", %{peer: peer} do
      options = %{host: "/no/such", otherwise: :in_vm}
      assert {{:ok, _}, true, {:ok, [1]}, true} = scenario(peer, :configured, [[{:jiffy, options}]])
    end

    test "and what can be had is had", %{peer: peer} do
      assert {{:ok, _}, true, {:ok, [1]}, false} = scenario(peer, :configured, [[:jiffy]])
    end
  end

  test "arguments that are none change nothing, and say what was expected", %{peer: peer} do
    {answers, well, not_a_path, again} = scenario(peer, :bad_arguments)

    for {bad, isolated, restored, restarted} <- answers,
        answer <- [isolated, restored, restarted] do
      assert {:error, {:bad_module, text}} = answer, inspect(bad)
      assert to_string(text) =~ "expected a module"
    end

    assert well == @well
    assert not_a_path == {:error, :badarg}
    assert {:ok, {:error, {:reload, _}}} = again
  end

  @tag needs: :jiffy
  test "a host's end is one report: library, function, signal, address, backtrace; once a second",
       %{peer: peer} do
    reports = scenario(peer, :reports)
    assert length(reports) in 2..4

    assert hd(reports) =~
             ~r"the host of jiffy \(OS process \d+\) died of sigfpe in nif_decode_(init|iter)/\d at address 0x"

    assert hd(reports) =~ "backtrace:\n    jiffy.so(should_yield+0x"
    assert hd(reports) =~ ~r"after \d+ ms; start 2 follows"
    assert Enum.any?(tl(reports), &(&1 =~ ~r"\(\d+ reports like this one were left out\)"))
  end

  describe "no host comes up:" do
    test "without a deadline it says so after wait_ms", %{peer: peer} do
      assert {:error, {:tame, {:no_host, _}}} = scenario(peer, :no_host, [%{wait_ms: 100}])
    end

    test "a deadline that is shorter is one", %{peer: peer} do
      assert {:error, {:tame, :deadline}} =
               scenario(peer, :no_host, [%{wait_ms: 5000, deadline_ms: 50}])
    end
  end
end
