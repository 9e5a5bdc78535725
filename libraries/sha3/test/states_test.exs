defmodule Tame.SHA3.StatesTest do
  use ExUnit.Case, async: true
  import Tame.SHA3.Test.Data
  alias Tame.SHA3.Test.{Peer, States}

  @taken "must be a state whose digest was not taken"
  @ended "must be a state of which no update was ended before its end"
  @none "must be a resource of this function's type, made in this VM"

  defp refused(sentence, fun) do
    error = assert_raise(ArgumentError, fun)
    assert error.message =~ "  * 1st argument: #{sentence}\n"
  end

  defp refused_everywhere(sentence, state) do
    refused(sentence, fn -> :tame_sha3.update(state, "more") end)
    refused(sentence, fn -> :tame_sha3.final(state) end)
    refused(sentence, fn -> :tame_sha3.final(state, 32) end)
    refused(sentence, fn -> :tame_sha3.clone(state) end)
  end

  describe "a state whose digest was taken" do
    test "is used up" do
      for {algorithm, _} <- algorithms() do
        state = :tame_sha3.update(:tame_sha3.init(algorithm), "abc")
        clone = :tame_sha3.clone(state)
        digest = final(state, algorithm, 100)
        refused_everywhere(@taken, state)
        assert final(clone, algorithm, 100) == digest
      end
    end

    test "by a call that a deadline ended, is used up too" do
      state = :tame_sha3.init(:shake256)

      assert {:tame, :deadline} = ended(fn -> :tame_sha3.final(state, 200_000_000) end)
      refused_everywhere(@taken, state)
    end
  end

  describe "processes with one state" do
    test "take turns: the digest is that of whole updates, in some order" do
      parts = for seed <- 1..3, do: bytes(2_000_000, seed)
      orders = for a <- parts, b <- parts -- [a], c <- parts -- [a, b], do: [a, b, c]

      for _ <- 1..3 do
        state = :tame_sha3.init(:kt128)

        parts
        |> Enum.map(&Task.async(fn -> :tame_sha3.update(state, &1) end))
        |> Task.await_many()

        assert :tame_sha3.final(state, 32) in Enum.map(orders, &:tame_sha3.kt128(&1, 32))
      end
    end

    test "that clone it get what was whole at some time" do
      part = bytes(3_000_000, 1)
      state = :tame_sha3.init(:kt128)
      updates = for _ <- 1..4, do: Task.async(fn -> :tame_sha3.update(state, part) end)
      clones = for _ <- 1..10, do: Task.async(fn -> :tame_sha3.clone(state) end)
      digests = for n <- 0..4, do: :tame_sha3.kt128(List.duplicate(part, n), 32)

      for clone <- Task.await_many(clones), do: assert(:tame_sha3.final(clone, 32) in digests)
      Task.await_many(updates)
      assert :tame_sha3.final(state, 32) == List.last(digests)
    end

    test "that all want the digest: one gets it" do
      state = :tame_sha3.update(:tame_sha3.init(:sha3_256), bytes(3_000_000, 1))

      answers =
        1..10
        |> Enum.map(fn _ -> Task.async(fn -> answer(fn -> :tame_sha3.final(state) end) end) end)
        |> Task.await_many()

      assert {[digest], refusals} = Enum.split_with(answers, &is_binary/1)
      assert digest == :crypto.hash(:sha3_256, bytes(3_000_000, 1))
      assert Enum.all?(refusals, &(&1.message =~ @taken))
    end
  end

  defp answer(fun) do
    fun.()
  rescue
    error -> error
  end

  # 4 GB, most of ten seconds; the binaries are the same one.
  defp much, do: List.duplicate(:binary.copy("a", 50_000_000), 80)

  defp ended(fun),
    do: assert_raise(ErlangError, fn -> :tame.with(%{deadline_ms: 1}, fun) end).original

  # Native code that yields counts reductions; before that the process has but started.
  defp until_under_way(pid) do
    case Process.info(pid, :reductions) do
      {:reductions, count} when count < 20_000 -> Process.sleep(1) && until_under_way(pid)
      {:reductions, _} -> :ok
    end
  end

  describe "an update that is ended before its end leaves a state that says so," do
    test "by a deadline" do
      for algorithm <- [:sha3_256, :kt128, {:kmac128, "key", ""}, {:parallel_hash256, 8192, ""}] do
        state = :tame_sha3.init(algorithm)
        assert {:tame, :deadline} = ended(fn -> :tame_sha3.update(state, much()) end)
        refused_everywhere(@ended, state)
      end
    end

    test "by the death of its caller" do
      state = :tame_sha3.init(:sha3_256)
      much = much()
      {pid, monitor} = spawn_monitor(fn -> :tame_sha3.update(state, much) end)
      until_under_way(pid)
      Process.exit(pid, :kill)
      assert_receive {:DOWN, ^monitor, _, _, :killed}, 10_000
      refused_everywhere(@ended, state)
    end

    test "by tame:cancel/1" do
      state = :tame_sha3.init(:sha3_256)
      much = much()
      {:ok, ref} = :tame.async(&:tame_sha3.update/2, [state, much], %{progress: true})
      assert_receive {^ref, {:progress, _, _}}, 10_000
      :ok = :tame.cancel(ref)
      refused_everywhere(@ended, state)
    end

    test "and those that wait for their turn are told" do
      state = :tame_sha3.init(:sha3_256)
      much = much()
      {pid, _} = spawn_monitor(fn -> :tame_sha3.update(state, much) end)
      until_under_way(pid)
      waiting = Task.async(fn -> answer(fn -> :tame_sha3.update(state, "more") end) end)
      Process.sleep(10)
      Process.exit(pid, :kill)
      assert Task.await(waiting).message =~ @ended
    end

    test "and not one that was made of it before" do
      state = :tame_sha3.update(:tame_sha3.init(:sha3_256), "abc")
      clone = :tame_sha3.clone(state)
      ended(fn -> :tame_sha3.update(state, much()) end)
      assert :tame_sha3.final(clone) == :crypto.hash(:sha3_256, "abc")
    end
  end

  test "an update that ends at any time is whole, or the state says that it is not" do
    part = bytes(3_000_000, 1)
    digests = for n <- 0..1, do: :crypto.hash(:sha3_256, List.duplicate(part, n))

    for us <- 0..60 do
      state = :tame_sha3.init(:sha3_256)
      {pid, monitor} = spawn_monitor(fn -> :tame_sha3.update(state, part) end)
      wait_us(us * 200)
      Process.exit(pid, :kill)
      assert_receive {:DOWN, ^monitor, _, _, _}, 10_000

      case answer(fn -> :tame_sha3.final(state) end) do
        digest when is_binary(digest) -> assert digest in digests
        error -> assert error.message =~ @ended
      end
    end
  end

  defp wait_us(us) do
    {ms, rest} = {div(us, 1000), rem(us, 1000)}
    if ms > 0, do: Process.sleep(ms)
    until = System.monotonic_time(:microsecond) + rest
    Stream.repeatedly(fn -> System.monotonic_time(:microsecond) end) |> Enum.find(&(&1 >= until))
  end

  describe "another VM" do
    test "does not know the state, which is still one when it comes back" do
      peer = Peer.start_link()
      state = :tame_sha3.update(:tame_sha3.init(:sha3_256), "abc")

      for sentence <- Peer.call(peer, States, :refusals, [state]), do: assert(sentence =~ @none)
      assert [back] = Peer.call(peer, :lists, :reverse, [[state]])
      assert :tame_sha3.final(back) == :crypto.hash(:sha3_256, "abc")
      refused_everywhere(@taken, state)
    end

    test "has states that are none here" do
      peer = Peer.start_link()
      refused_everywhere(@none, Peer.call(peer, :tame_sha3, :init, [:sha3_256]))
    end

    test "keeps its states when the library is loaded anew" do
      peer = Peer.start_link()

      assert Peer.call(peer, States, :survives_reload, []) ==
               :crypto.hash(:sha3_256, "before after")
    end
  end
end
