defmodule Tame.IsolationTest do
  # Real NIF libraries, unmodified, in a host: the same results as in the VM.
  use ExUnit.Case, async: true

  alias Tame.{IsolationCalls, IsolationScenarios}

  @calls 500

  setup do
    %{peer: Tame.Test.PeerVm.start_link()}
  end

  describe "as in the VM:" do
    for {library, modules} <- IsolationCalls.libraries() do
      if Enum.all?(modules, &(:code.which(&1) != :non_existing)) do
        for bind <- [:recompile, :overlay] do
          test "#{@calls} calls of #{library}, #{bind}", %{peer: peer} do
            seed = ExUnit.configuration()[:seed]
            arguments = [unquote(library), @calls, seed, %{bind: unquote(bind)}]
            result = run(peer, IsolationScenarios, :compare, arguments)
            assert {seed, result.isolated} == {seed, []}
            assert {seed, result.restored} == {seed, []}
            # Not every function of the API is a NIF.
            assert result.served >= @calls / 5
          end
        end
      else
        IO.puts("skip: #{library} is not installed")
      end
    end
  end

  describe "a crash" do
    @describetag needs: :jiffy

    test "is an exception that names library, function and signal, and life goes on", %{
      peer: peer
    } do
      {rounds, info} = scenario(peer, :crashes, [5, %{backoff_ms: {0, 0}, intensity: :infinity}])

      for {{raised, top}, answer, _ms} <- rounds do
        assert {:tame, {:crashed, %{library: :jiffy, function: {function, arity}, signal: :sigfpe}}} =
                 raised

        # The arity, because the arguments may be large.
        assert {:jiffy, ^function, ^arity, _} = top
        assert answer == {:ok, [1]}
      end

      assert info.restarts == 5
    end

    test "again and again ends in a clear error, and restart/1 in an answer", %{peer: peer} do
      assert {{:error, {:tame, {:failed, %{library: :jiffy, advice: advice}}}, _}, {:ok, [1]}} =
               scenario(peer, :failed, [%{intensity: {2, 60_000}}])

      assert to_string(advice) =~ "tame:restart/1"
    end
  end

  describe "a deadline" do
    test "is raised on time", %{peer: peer} do
      {result, ms} = scenario(peer, :spin, [:spin_inline, 60_000, %{deadline_ms: 50}])
      assert {:error, {:tame, :deadline}, {:tame_spin, :spin_inline_nif, 1}} = result
      assert ms >= 50 and ms < 40_000
    end

    test "of tame:with/2 counts as well", %{peer: peer} do
      assert {{:error, {:tame, :deadline}, _}, ms} =
               scenario(peer, :spin_with, [:spin_inline, 60_000, 50])

      assert ms >= 50 and ms < 40_000
    end

    test "costs a host its life when the call goes on past the grace period", %{peer: peer} do
      {raised, {replaced, ms}, next} =
        scenario(peer, :overdue, [%{deadline_ms: 1000, grace_ms: 200}])

      assert {:error, {:tame, :deadline}, _} = raised
      assert replaced and ms >= 1100
      assert next == {:ok, :ok}
    end

    test "so does a caller that was killed", %{peer: peer} do
      assert {true, _ms, {:ok, :ok}} = scenario(peer, :killed_caller, [%{grace_ms: 200}])
    end
  end

  describe "the hosts of a library" do
    test "are more while callers wait, and fewer when they are idle", %{peer: peer} do
      options = %{hosts: {1, 3}, workers: 1, slots: 2, idle_ms: 300}
      {ends, most} = scenario(peer, :crowd, [12, 300, options])
      assert ends == %{ok: 12}
      assert most in 2..3
      assert scenario(peer, :idle, [])
    end

    test "refuse callers beyond max_waiting at once", %{peer: peer} do
      {ends, 1} = scenario(peer, :crowd, [20, 3000, %{workers: 1, slots: 1, max_waiting: 4}])
      assert ends[{:tame, :busy}] == 15
      assert ends[:ok] == 5
    end
  end

  @tag needs: :jiffy
  test "a module without debug_info is isolated too", %{peer: peer} do
    assert {{:error, {:no_debug_info, text}}, :ok, "[1,2]", "[1,2]"} = scenario(peer, :stripped, [])

    assert to_string(text) =~ "bind => recompile"
  end

  @tag :tmp_dir
  test "a library that crashes on load is refused with its signal", %{peer: peer, tmp_dir: folder} do
    assert {:error, {:on_load_failure, text}} =
             scenario(peer, :crash_on_load, [folder, :isolation_load_nif, "CRASH_ON_LOAD"])

    assert to_string(text) =~ "the host ended while it loaded the library: \#{signal => sigabrt}"

    assert {:error, {reason, text}} =
             scenario(peer, :crash_on_load, [folder, :isolation_open_nif, "CRASH_ON_OPEN"])

    assert reason in [:crashed, :on_load_failure]
    assert to_string(text) =~ ~r/sigbus/i
  end

  # 4000 are a timeslice. Where fewer than 100 calls fit into it, one call in 100 waits for a turn of all other callers.
  test "a call takes few reductions", %{peer: peer} do
    assert scenario(peer, :reductions, [20]) < 20
  end

  test "native resources go when the VM's references do", %{peer: peer} do
    {before, later} = scenario(peer, :resources, [20_000])
    assert later < before * 1.2
  end

  @tag needs: :jiffy
  test "a reply that is too large is one error, in the host and in the VM", %{peer: peer} do
    for options <- [%{area_bytes: 65_536}, %{max_reply_bytes: 100_000}] do
      assert {:tame, {:reply_too_large, info}} = scenario(peer, :large_reply, [options])
      assert %{library: :jiffy, function: {_, arity}, bytes: bytes} = info
      assert is_integer(arity) and bytes > 65_536
    end
  end

  @tag needs: :jiffy
  test "what cannot be isolated says why and works as before", %{peer: peer} do
    text = Path.join(System.tmp_dir!(), "tame_no_library_#{System.unique_integer([:positive])}.so")

    File.write!(text, "no library")
    on_exit(fn -> File.rm(text) end)

    cases = [
      {:lists, %{}, :no_nifs, "no NIF library"},
      {:prim_file, %{}, :preloaded, "part of the emulator"},
      {:no_such_module, %{}, :unknown_module, "no module no_such_module"},
      {:jiffy, %{hosts: 0}, :bad_option, "hosts => 0: expected 1 to 64"},
      {:jiffy, %{slot_bytes: 5000}, :bad_option, "a power of two"},
      {:jiffy, %{bind: :shim}, :bad_option, "bind => shim: expected auto, recompile or overlay"},
      {:jiffy, %{deadline: 5}, :bad_option, "deadline => 5: no such option; there are"},
      {:jiffy, %{library: text}, :bad_library, Path.basename(text)},
      {:jiffy, %{library: "/no/such.so"}, :no_such_file, "/no/such.so"},
      {:jiffy, %{host: text}, :on_load_failure, "does not load"}
    ]

    {refused, answer} =
      scenario(peer, :refusals, [for({module, options, _, _} <- cases, do: {module, options})])

    for {{module, _, reason, words}, refusal} <- Enum.zip(cases, refused) do
      assert {:error, {^reason, sentence}} = refusal, "#{module}: #{inspect(refusal)}"
      assert to_string(sentence) =~ words
    end

    assert answer == {:ok, [1]}
  end

  @tag needs: :jiffy
  test "telemetry is told where it is", %{peer: peer} do
    events = scenario(peer, :telemetry, [])

    assert [
             {[:tame, :host, :up], %{start_ms: _}, %{library: :jiffy, os_pid: os_pid}},
             {[:tame, :host, :down], %{up_ms: _}, %{os_pid: os_pid, why: %{signal: :sigkill}}},
             {[:tame, :host, :up], _, _} | _
           ] = events
  end

  describe "no orphans:" do
    for {how, signal} <- [{"SIGKILL", "KILL"}, {"SIGTERM", "TERM"}] do
      test "a VM that dies of #{how} takes its hosts along", %{peer: peer} do
        :ok = scenario(peer, :start, [:tame_spin, %{}])
        [os_pid] = scenario(peer, :os_pids, [:tame_spin])
        :peer.cast(peer, :tame_spin, :spin_inline, [600_000_000])
        vm = :peer.call(peer, :os, :getpid, [])
        Process.unlink(peer)
        System.cmd("kill", ["-#{unquote(signal)}", "#{vm}"])
        # One that is told to end waits five seconds for the call, as it does for any.
        Tame.Test.OsProcess.await_gone(os_pid, System.monotonic_time(:millisecond) + 20_000)
      end
    end
  end

  defp scenario(peer, name, args), do: run(peer, IsolationScenarios, name, args)

  defp run(peer, module, function, args), do: :peer.call(peer, module, function, args, 600_000)
end
