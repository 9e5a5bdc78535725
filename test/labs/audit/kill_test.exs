defmodule Tame.Audit.KillTest do
  # What is made of callers that were killed; that they are is in Mix.Tasks.Tame.AuditCallsTest.
  use ExUnit.Case, async: true

  alias Tame.Audit.Kill

  @point %{elapsed_us: 200_000, bytes: 4096, slice_kind: :dirty}

  test "callers are killed after a quarter of the call, and what went on for least counts" do
    kills = for ended_ms <- [150, 90, 120], do: killed(50, ended_ms)
    assert {:ok, seen} = look(kills)
    assert seen == %{call_us: 200_000, after_us: 50.0e3, stopped_us: 90.0e3, bytes: 4096}
    assert asked() == List.duplicate(%{after_ms: 50, callers: 2}, 3)
  end

  test "the least is a share of what was left of the call" do
    # 95 of 100 ms are more than 100 of 150.
    assert {:ok, %{after_us: 50.0e3}} = look([killed(100, 95), killed(50, 100), killed(90, 108)])
  end

  test "a kill that comes when the call is half over says nothing, and is made again" do
    assert {:ok, %{stopped_us: 145.0e3}} =
             look([
               killed(199, 1),
               killed(50, 150),
               killed(101, 2),
               killed(50, 145),
               killed(50, 149)
             ])

    assert length(asked()) == 5
  end

  test "a call that was over says nothing either" do
    over = {:ok, :over}
    assert {:ok, %{after_us: 25.0e3}} = look([over, killed(25, 9), killed(25, 9), killed(25, 9)])
    assert Enum.map(asked(), & &1.after_ms) == [50, 25, 25, 25]
  end

  test "when they all come too late, nothing is said" do
    assert {:error, "the call was half over at most of 12 kills"} =
             look(List.duplicate(killed(150, 1), 12))

    # Earlier each time.
    assert Enum.map(asked(), & &1.after_ms) == [50, 25, 12, 6, 3, 1, 1, 1, 1, 1, 1, 1]
  end

  test "when the calls end in another way, that is the answer" do
    assert {:error, :hangs} = look([killed(50, 150), {:error, :hangs}])
    assert {:error, "ended the VM with SIGSEGV"} = look([{:error, "ended the VM with SIGSEGV"}])
  end

  test "a call that is too short is not tried" do
    assert {:short, "no call took 20 ms, so killed callers were not tried"} =
             Kill.look(%{@point | elapsed_us: 19_999}, 2, fn _ -> flunk("it was") end)
  end

  # Answers of tame_audit:kill/2, one for each kill.
  defp look(answers) do
    {:ok, left} = Agent.start_link(fn -> answers end)

    Kill.look(@point, 2, fn what ->
      send(self(), {:asked, what})
      Agent.get_and_update(left, fn [answer | left] -> {answer, left} end)
    end)
  end

  defp killed(after_ms, ended_ms) do
    ns = ended_ms * 1_000_000
    {:ok, %{after_ns: after_ms * 1_000_000, down_ns: 0, dirty_ns: ns, cpu_ns: 0}}
  end

  defp asked do
    receive do
      {:asked, what} -> [what | asked()]
    after
      0 -> []
    end
  end
end
