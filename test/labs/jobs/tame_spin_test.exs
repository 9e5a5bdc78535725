defmodule Tame.SpinTest do
  use ExUnit.Case, async: true

  @moduletag isolation: :shared

  @functions ~w(spin spin_inline spin_yielding spin_dirty spin_dirty_io spin_yielding_dirty
                spin_thread spin_pool spin_bounded)a

  for function <- @functions do
    test "#{function} returns ok for any length" do
      for us <- [0, 1, 99, 3000], do: assert(apply(:tame_spin, unquote(function), [us]) == :ok)
    end

    test "#{function} refuses what is no time, with a sentence" do
      for wrong <- [-1, 1.0, :infinity, "1", 1_000_000_000_001, Integer.pow(2, 64)] do
        {:badarg, frame} = refusal(fn -> apply(:tame_spin, unquote(function), [wrong]) end)
        assert {:tame_spin, unquote(function), [^wrong], [error_info: info]} = frame
        assert to_string(info.module.format_error(:badarg, [frame])[1]) =~ "in microseconds"
      end
    end
  end

  test "the longest time is accepted" do
    {:ok, ref} = :tame.async(&:tame_spin.spin_yielding/1, [1_000_000_000_000], %{deadline_ms: 5})
    assert_receive {^ref, {:error, {:tame, :deadline}}}, 5000
  end

  # Others may have the CPU meanwhile, so a spin is never too long; too short it may not be, beyond what
  # the clock speed changes.
  test "20 ms of work take about that long where nothing disturbs" do
    :ok = :tame_spin.spin_inline(1)

    fastest_us =
      1..10
      |> Enum.map(fn _ -> elem(:timer.tc(:tame_spin, :spin_inline, [20_000]), 0) end)
      |> Enum.min()

    assert fastest_us > 10_000
    assert fastest_us < 400_000
  end

  test "twenty times the time is about twenty times the work" do
    :ok = :tame_spin.spin_inline(1)

    took = fn us -> elem(:timer.tc(:tame_spin, :spin_dirty, [us]), 0) end
    [short, long] = for(_ <- 1..30, do: [took.(1000), took.(20_000)]) |> Enum.zip_with(&Enum.min/1)

    # Wide, because other tests run beside this one.
    assert long / short > 4 and long / short < 100
  end

  defp refusal(fun) do
    fun.()
    :accepted
  rescue
    _ in ArgumentError ->
      [top | _] = __STACKTRACE__
      {:badarg, top}
  end
end

defmodule Tame.SpinCrowdTest do
  # Not async: meanwhile the library refuses jobs of others.
  use ExUnit.Case

  @moduletag isolation: :shared

  test "auto goes to the pool, however short it is, when too many take turns on the schedulers" do
    # One job of 90 ms alone would stay.
    calls = 100 * System.schedulers_online()
    callers = for _ <- 1..(calls + 50), do: spawn(fn -> :tame_spin.spin(90_000) end)

    # Asking one that takes turns waits for its turn, so it is not asked of all.
    in_pool? = fn caller ->
      match?(
        {:current_function, {:tame_job_call, :hand_over, _}},
        Process.info(caller, :current_function)
      )
    end

    assert Tame.Await.until(fn -> callers |> Enum.take_random(20) |> Enum.any?(in_pool?) end)
    for caller <- callers, do: Process.exit(caller, :kill)
    assert Tame.Await.until(fn -> not Enum.any?(callers, &Process.alive?/1) end)
  end
end
