defmodule Tame.ApplicationTest do
  # The application's start and stop, its configuration, its log, arguments that are none.
  use ExUnit.Case, async: true

  alias Tame.ApplicationScenarios
  alias Tame.Test.PeerVm

  setup do
    %{peer: PeerVm.start_link()}
  end

  defp scenario(peer, name, args \\ []),
    do: PeerVm.scenario(peer, ApplicationScenarios, name, args)

  @well %{answers: true, known: true, in_vm: false}

  test "a library that its application has loaded works isolated, and restored", %{peer: peer} do
    assert scenario(peer, :loaded_later, [:recompile]) ==
             {true, :ok, {:ok, true}, :ok, {:ok, true}}
  end

  for {bind, stripped?} <- [recompile: false, overlay: false, overlay: true] do
    test "#{bind}#{if stripped?, do: ", stripped"}: isolated and restored in turns", %{peer: peer} do
      info = {:given, make_ref(), [1, 2.5, "three"]}

      [true, before | turns] = scenario(peer, :in_turns, [unquote(bind), unquote(stripped?), info])

      host = {:host, {:ok, info}, false}
      assert before == host
      for turn <- turns, do: assert(turn == {:ok, {:vm, {:ok, info}, true}, :ok, host})
    end
  end

  for bind <- [:recompile, :overlay] do
    test "#{bind}: loaded in the VM first, then isolated and restored in turns", %{peer: peer} do
      [before | turns] = scenario(peer, :in_turns_from_vm, [unquote(bind)])
      {vm, host} = {{:vm, {:ok, 0}, true}, {:host, {:ok, 0}, false}}
      assert before == vm
      for turn <- turns, do: assert(turn == {:ok, host, :ok, vm})
    end
  end

  test "a library without functions is loaded while its file is mapped", %{peer: peer} do
    {refused, turns} = scenario(peer, :without_functions)
    assert {:error, {:loaded_elsewhere, _}} = refused
    assert turns == [ok: :ok, ok: :ok]
  end

  test "a library that its application loaded with what tame cannot know is refused; without it, isolated",
       %{
         peer: peer
       } do
    info = {:given, self()}
    {refused, as_before, isolated, unloaded, later} = scenario(peer, :given_in_vm, [info])
    assert {:error, {:loaded_elsewhere, text}} = refused
    assert to_string(text) =~ "isolate places_given before its application starts"
    assert as_before == {:vm, {:ok, info}, true}
    assert isolated == :ok
    assert unloaded == {:error, :not_loaded}
    assert later == {:host, {:ok, info}, false}
  end

  for how <- [:deleted, :loaded] do
    test "code that takes the place of an isolated module's is seen and said: #{how}", %{
      peer: peer
    } do
      {before, now, calls_vm?, said, again} = scenario(peer, :replaced, [unquote(how)])
      assert {before, now, calls_vm?} == {{:bound, false}, :replaced, true}
      assert [text] = said
      assert text =~ "places is not isolated any more"
      assert again == {:ok, :ok, :bound}
    end
  end

  test "without the application tame an isolated module raises, and is not run in the VM", %{
    peer: peer
  } do
    {stopped, started, well} = scenario(peer, :stopped_application)
    assert {{:error, {:tame, {:not_started, %{library: :places}}}}, false} = stopped
    assert {{:error, {:tame, {:restored, %{library: :places}}}}, false} = started
    assert well == @well
  end

  test "stopped and started under callers, no call runs in the VM, and none is cut off", %{
    peer: peer
  } do
    assert scenario(peer, :stopped_under_callers, [5]) == []
  end

  test "its stop lets the calls of all groups end, at the same time", %{peer: peer} do
    {answers, seconds} = scenario(peer, :stopped_in_calls, [3000])
    assert answers == [{:ok, true}]
    # One after the other they would take 15.
    assert seconds < 12
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
    {reports, seconds} = scenario(peer, :reports)
    # One a second.
    assert length(reports) in 2..(2 + seconds)

    assert hd(reports) =~
             ~r"the host of jiffy \(OS process \d+\) died of sigfpe in nif_decode_(init|iter)/\d at address 0x"

    assert hd(reports) =~ "backtrace:\n    jiffy.so(should_yield+0x"
    assert hd(reports) =~ ~r"after \d+ ms; start 2 follows"
    assert Enum.any?(tl(reports), &(&1 =~ ~r"\(\d+ reports like this one were left out\)"))
  end
end
