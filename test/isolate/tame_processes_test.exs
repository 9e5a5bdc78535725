defmodule Tame.ProcessesTest do
  # The processes of isolation, each of them ended, stopped or starved: the module is isolated afterwards and answers,
  # or fails with its word. It is never run in the VM, and nobody dies who only called.
  use ExUnit.Case, async: true

  alias Tame.ProcessScenarios
  alias Tame.Await
  alias Tame.Test.OsProcess
  alias Tame.Test.PeerVm

  setup do
    %{peer: PeerVm.start_link()}
  end

  defp scenario(peer, name, args \\ []), do: PeerVm.scenario(peer, ProcessScenarios, name, args)

  @well %{answers: true, known: true, in_vm: false}

  for hosts <- [1, 2] do
    test "each of our processes, killed in turn, is replaced (#{hosts} hosts)", %{peer: peer} do
      kinds = ProcessScenarios.kinds()
      seen = scenario(peer, :killed_in_turn, [kinds, %{hosts: unquote(hosts)}])
      assert seen == for(kind <- kinds, do: {kind, @well})
    end
  end

  for kind <- [:isolation, :hosts] do
    test "one whose name is not free yet waits for it: #{kind}", %{peer: peer} do
      assert scenario(peer, :name_taken, [unquote(kind), 300]) == @well
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

  test "a host process that is killed while its port has output takes a stopped host with it", %{
    peer: peer
  } do
    assert scenario(peer, :host_killed_with_output) == {true, @well}
  end

  describe "a library that exits is told by its status," do
    test "from 0 to 255", %{peer: peer} do
      statuses = [0, 1, 127, 128, 129, 134, 137, 139, 143, 255]
      told = for {info, _ms, well} <- scenario(peer, :exits, [statuses, 0]), do: {info, well}
      assert told == for(status <- statuses, do: {%{exit_status: status}, @well})
    end

    test "and at once, where a daemon of it goes on", %{peer: peer} do
      assert [{%{exit_status: 3}, ms, @well}] = scenario(peer, :exits, [[3], 30_000])
      assert ms < 20_000
    end
  end

  describe "a guard that is stopped goes on" do
    for how <- [:crash, :restore] do
      test "when the host is to end: #{how}", %{peer: peer} do
        assert scenario(peer, :guard_stopped, [unquote(how)]) == {true, true}
      end
    end

    test "when the VM has ended", %{peer: peer} do
      {vm, host, guard} = scenario(peer, :with_guard_stopped)
      OsProcess.signal(vm, "KILL")
      assert Await.until(fn -> Enum.all?([host, guard], &OsProcess.gone?/1) end, 20_000)
    end
  end

  test "restore waits for calls in flight, and ends nobody", %{peer: peer} do
    assert {:ok, results, vm, now, info} = scenario(peer, :restored_under_calls, [4000])
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

  test "a host's program that is away is named in the log, and its process waits longer and longer; in stripped code",
       %{peer: peer} do
    {program, [killed, away], same, well} = scenario(peer, :program_away_stripped)
    assert killed =~ "died of sigkill"

    assert away =~
             ~r"^the host of places did not start: there is no #{program}: .*; start \d+ follows"

    assert same
    assert well == @well
  end

  test "a host that is stopped while nobody calls is found and replaced, its slots freed", %{
    peer: peer
  } do
    assert scenario(peer, :stopped_while_idle, [300]) == {true, true, 0}
  end

  # Each of them alone was waited for, for five seconds.
  test "info/0 does not wait for who does not answer, and says so", %{peer: peer} do
    {ms, states, count} = scenario(peer, :info_of_silent)
    silent = {:not_answering, []}
    assert states == [silent, silent, {:serving, [:not_answering]}, {:serving, [:not_answering]}]
    assert count == 4
    assert ms < 5000
  end

  test "restart/1 replaces a host that is stopped; before a load it changes nothing", %{
    peer: peer
  } do
    assert scenario(peer, :restarted) == {:ok, true, :ok, true}
  end

  test "restart/1 while no host can be started: one is as soon as it can be", %{peer: peer} do
    assert scenario(peer, :restarted_without_supervisor) == {:ok, @well}
  end

  test "a host that its library refuses, beside one that it does not, is tried again", %{
    peer: peer
  } do
    assert scenario(peer, :one_of_two_refused) == {1, true}
  end

  test "a deadline of tame:with/2 holds for a NIF that is no job, the earlier of it and the library's own",
       %{
         peer: peer
       } do
    for {own_ms, with_ms} <- [{:infinity, 50}, {60_000, 50}, {50, 60_000}] do
      assert {{:error, {:tame, :deadline}}, ms} =
               scenario(peer, :paused_with, [3000, with_ms, %{deadline_ms: own_ms}])

      assert ms >= 50 and ms < 2500
    end

    assert {{:error, {:tame, :deadline}}, _} = scenario(peer, :paused_with, [0, 0, %{}])
    assert {{:ok, _}, _} = scenario(peer, :paused_with, [0, 10_000, %{}])
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
