defmodule Tame.AsyncTest do
  use ExUnit.Case, async: true

  alias Tame.Test.PeerVm

  @moduletag isolation: :shared

  @spins ~w(spin spin_yielding spin_dirty spin_dirty_io spin_yielding_dirty spin_thread spin_pool)a

  @long_us 600_000_000

  describe "async" do
    test "sends the value once, under its reference" do
      {:ok, ref} = :tame.async(&+/2, [1, 2])
      assert_receive {^ref, {:ok, 3}}
      refute_receive {^ref, _}, 20
    end

    test "tells errors, exits, throws and a kill apart" do
      assert answer(fn -> :erlang.error(:wrong) end) == {:error, :wrong}
      assert answer(fn -> exit(:gone) end) == {:error, {:exit, :gone}}
      assert answer(fn -> exit(:normal) end) == {:error, {:exit, :normal}}
      assert answer(fn -> throw(:up) end) == {:error, {:nocatch, :up}}
      assert answer(fn -> Process.exit(self(), :kill) end) == {:error, {:exit, :killed}}
      assert answer(fn -> :tame_spin.spin_pool(-1) end) == {:error, :badarg}
    end

    test "the fun finds neither links nor messages in its process" do
      assert answer(fn -> Process.info(self(), [:links, :messages, :dictionary]) end) ==
               {:ok, [links: [], messages: [], dictionary: []]}
    end

    test "a deadline is answered on time and stops the job in every placement" do
      for spin <- @spins do
        started = System.monotonic_time(:millisecond)

        {:ok, ref} =
          :tame.async(Function.capture(:tame_spin, spin, 1), [@long_us], %{deadline_ms: 30})

        assert_receive {^ref, {:error, {:tame, :deadline}}}, 5000
        assert System.monotonic_time(:millisecond) - started >= 30
        assert_free(spin)
      end
    end

    test "a deadline that is not reached leaves nothing behind" do
      {:ok, {_, guard, _} = ref} = :tame.async(fn -> self() end, [], %{deadline_ms: 60_000})
      assert_receive {^ref, {:ok, worker}}

      for pid <- [worker, guard] do
        monitor = Process.monitor(pid)
        assert_receive {:DOWN, ^monitor, _, _, _}
      end

      assert Process.info(self(), :monitors) == {:monitors, []}
    end

    test "progress comes while the job runs, in order, and none after the value" do
      for spin <- @spins do
        {:ok, ref} =
          :tame.async(Function.capture(:tame_spin, spin, 1), [350_000], %{progress: true})

        {steps, answer} = steps(ref, [])
        assert {spin, answer} == {spin, {:ok, :ok}}
        assert {spin, length(steps) > 0} == {spin, true}

        for {done, total} <- steps, do: assert(done > 0 and done <= total)
        assert steps == Enum.sort(steps)
      end
    end

    test "without progress there is none" do
      {:ok, ref} = :tame.async(&:tame_spin.spin_pool/1, [250_000])
      assert {[], {:ok, :ok}} = steps(ref, [])
    end

    test "a cancel leaves no progress behind, and none comes" do
      {:ok, ref} = :tame.async(&:tame_spin.spin_pool/1, [@long_us], %{progress: true})
      assert_receive {^ref, {:progress, _, _}}, 5000
      :ok = :tame.cancel(ref)
      refute_receive {^ref, _}, 250
    end

    test "what goes wrong is answered with progress as without" do
      for {fun, answer} <- [
            {fn -> :erlang.error(:wrong) end, {:error, :wrong}},
            {fn -> exit(:normal) end, {:error, {:exit, :normal}}},
            {fn -> Process.exit(self(), :kill) end, {:error, {:exit, :killed}}}
          ] do
        {:ok, ref} = :tame.async(fun, [], %{progress: true})
        assert_receive {^ref, ^answer}, 5000
      end
    end

    test "a deadline beyond what the VM's clock will ever say is none" do
      assert :tame_spin."$tame"(:spin_yielding_nif, 9_223_372_036_854_775_807, [10]) == :ok
    end

    test "a deadline of 0 is over at once" do
      {:ok, ref} = :tame.async(&:tame_spin.spin_yielding/1, [@long_us], %{deadline_ms: 0})
      assert_receive {^ref, {:error, {:tame, :deadline}}}, 5000
    end

    test "the caller's death ends the job in every placement" do
      for spin <- @spins do
        test = self()

        {caller, monitor} =
          spawn_monitor(fn ->
            spinner = fn ->
              send(test, {:worker, self()})
              receive(do: (:go -> apply(:tame_spin, spin, [@long_us])))
            end

            {:ok, _} = :tame.async(spinner, [])

            receive(do: (:end -> :ok))
          end)

        assert_receive {:worker, worker}
        worker_monitor = Process.monitor(worker)
        send(worker, :go)
        send(caller, :end)
        assert_receive {:DOWN, ^monitor, _, _, :normal}
        assert_receive {:DOWN, ^worker_monitor, _, _, :killed}, 5000
        assert_free(spin)
      end
    end
  end

  describe "cancel" do
    test "ends the job in every placement, and nothing of it comes" do
      for spin <- @spins do
        {:ok, ref} = :tame.async(Function.capture(:tame_spin, spin, 1), [@long_us])
        assert :tame.cancel(ref) == :ok
        assert_free(spin)
        refute_received {^ref, _}
      end
    end

    test "takes an answer out of the mailbox, and only that" do
      send(self(), :mine)
      {:ok, ref} = :tame.async(fn -> 1 end, [])
      {:ok, other} = :tame.async(fn -> 2 end, [])
      await_messages(3)
      assert :tame.cancel(ref) == :ok
      assert {:messages, [:mine, {^other, {:ok, 2}}]} = Process.info(self(), :messages)
    end

    test "looks through the mailbox only where something may have come" do
      {:ok, ref} = :tame.async(&:tame_spin.spin_pool/1, [@long_us])
      send(self(), {ref, :not_of_the_call})
      assert :tame.cancel(ref) == :ok
      assert Process.info(self(), :messages) == {:messages, [{ref, :not_of_the_call}]}

      {:ok, told} = :tame.async(&:tame_spin.spin_pool/1, [@long_us], %{progress: true})
      # Once there is one of them, more may come.
      assert Tame.Await.until(fn ->
               {:message_queue_len, count} = Process.info(self(), :message_queue_len)
               count >= 2
             end)

      assert :tame.cancel(told) == :ok
      assert Process.info(self(), :messages) == {:messages, [{ref, :not_of_the_call}]}
    end

    test "of what async did not return is refused" do
      assert_raise ArgumentError, fn -> :tame.cancel({:tame_async, self(), make_ref()}) end
    end

    test "of what is done or cancelled is nothing" do
      {:ok, ref} = :tame.async(fn -> 1 end, [])
      assert_receive {^ref, {:ok, 1}}
      assert :tame.cancel(ref) == :ok
      assert :tame.cancel(ref) == :ok
    end

    test "by another process tells the caller" do
      {:ok, ref} = :tame.async(&:tame_spin.spin_pool/1, [@long_us])
      spawn(fn -> :tame.cancel(ref) end)
      assert_receive {^ref, {:error, {:exit, :killed}}}, 5000
    end
  end

  describe "with" do
    test "returns the value" do
      assert :tame.with(%{deadline_ms: 60_000}, fn -> :value end) == :value
      assert :tame.with(%{deadline_ms: :infinity}, fn -> :value end) == :value
      assert :tame.with(%{}, fn -> {:error, :value} end) == {:error, :value}
    end

    test "raises at the deadline in every placement, and leaves the mailbox as it was" do
      send(self(), :mine)

      for spin <- @spins do
        assert catch_error(
                 :tame.with(%{deadline_ms: 10}, fn -> apply(:tame_spin, spin, [@long_us]) end)
               ) ==
                 {:tame, :deadline}

        assert_free(spin)
      end

      assert Process.info(self(), :messages) == {:messages, [:mine]}
    end

    test "what jobs ask for on their way is loaded before the time begins" do
      peer = PeerVm.start()
      ours = [:tame_permits, :tame_iovec]
      assert ours -- :peer.call(peer, :erlang, :loaded, []) == ours
      with_deadline = [%{deadline_ms: 60_000}, &:erlang.loaded/0]
      assert ours -- :peer.call(peer, :tame, :with, with_deadline) == []
    end

    test "runs the fun in the calling process, the earlier deadline counts, and none is left" do
      assert :tame.with(%{deadline_ms: 60_000}, fn -> self() end) == self()

      for {outer, inner} <- [{10, 60_000}, {60_000, 10}] do
        assert catch_error(
                 :tame.with(%{deadline_ms: outer}, fn ->
                   :tame.with(%{deadline_ms: inner}, fn -> :tame_spin.spin_yielding(@long_us) end)
                 end)
               ) == {:tame, :deadline}

        assert Process.get() |> Keyword.get(:"$tame_deadline") == nil
      end

      assert :tame_spin.spin(100) == :ok
    end

    test "raises what the fun raised, with its stack" do
      assert catch_throw(:tame.with(%{}, fn -> throw(:up) end)) == :up
      assert catch_exit(:tame.with(%{}, fn -> exit(:gone) end)) == :gone

      try do
        :tame.with(%{}, fn -> :tame_spin.spin_pool(-1) end)
      catch
        :error, :badarg ->
          assert [{:tame_spin, :spin_pool, [-1], [error_info: _]} | _] = __STACKTRACE__
      end
    end
  end

  test "wrong arguments are refused with a sentence" do
    for {function, args, number, sentence} <- [
          {:async, [:no_fun, []], 1, "must be a fun"},
          {:async, [&is_atom/1, []], 2, "as many arguments"},
          {:async, [&is_atom/1, :no_list], 2, "as many arguments"},
          {:async, [&is_atom/1, [1 | 2]], 2, "as many arguments"},
          {:async, [&is_atom/1, [1], []], 3, "must be a map"},
          {:async, [&is_atom/1, [1], %{deadline_ms: -1}], 3, "deadline_ms => -1: must be"},
          {:async, [&is_atom/1, [1], %{deadline_ms: 0x100000000}], 3, "must be infinity or"},
          {:async, [&is_atom/1, [1], %{dead_line: 1}], 3, "no such option"},
          {:cancel, [make_ref()], 1, "what tame:async returned"},
          {:with, [%{deadline: 1}, fn -> 1 end], 1, "no such option"},
          {:with, [%{}, &is_atom/1], 2, "without arguments"}
        ] do
      {:badarg, [frame | _]} = refusal(fn -> apply(:tame, function, args) end)
      assert {:tame, ^function, ^args, [error_info: info]} = frame
      assert to_string(info.module.format_error(:badarg, [frame])[number]) =~ sentence
    end
  end

  test "no order of cancel, finish, deadline and death leaves a process or a message" do
    peer = Tame.Test.PeerVm.start_link()
    seed = :rand.uniform(1_000_000)
    args = [10_000, seed]

    assert {seed, :peer.call(peer, Tame.AsyncScenarios, :interleave, args, 600_000)} ==
             {seed, {0, []}}
  end

  # A job that went on would keep the pool's threads or the schedulers, and this would not come back
  # for ten minutes.
  # The progress of a call until its answer.
  defp steps(ref, steps) do
    receive do
      {^ref, {:progress, done, total}} -> steps(ref, [{done, total} | steps])
      {^ref, answer} -> {Enum.reverse(steps), answer}
    after
      20_000 -> flunk("no answer")
    end
  end

  defp assert_free(spin) do
    for _ <- 1..8, do: assert(apply(:tame_spin, spin, [100]) == :ok)
  end

  defp answer(fun) do
    {:ok, ref} = :tame.async(fun, [])
    assert_receive {^ref, answer}, 5000
    answer
  end

  defp await_messages(count) do
    assert Tame.Await.until(fn ->
             Process.info(self(), :message_queue_len) == {:message_queue_len, count}
           end)
  end

  defp refusal(fun) do
    fun.()
    :accepted
  rescue
    _ in ArgumentError -> {:badarg, __STACKTRACE__}
  end
end
