defmodule Tame.JobRatesTest do
  # Rates and progress, as jobs tell them; and what tame:calibration/0 makes of the rates.
  use ExUnit.Case, async: true

  test "progress reaches who watches the caller, and nobody else" do
    caller = spawn(fn -> Process.sleep(:infinity) end)
    :ok = :tame_job_rates.subscribe(caller)
    send(:tame_job_rates, {:"$tame", :progress, self(), 1, 10})
    send(:tame_job_rates, {:"$tame", :progress, caller, 2, 10})
    assert_receive {:tame_job_rates, :progress, 2, 10}
    refute_received {:tame_job_rates, :progress, 1, 10}
    Process.exit(caller, :kill)
  end

  test "the subscription to a caller ends with the caller" do
    {caller, monitor} = spawn_monitor(fn -> receive(do: (:go -> :ok)) end)
    :ok = :tame_job_rates.subscribe(caller)
    assert is_map_key(subscribers(), caller)
    send(caller, :go)
    assert_receive {:DOWN, ^monitor, _, _, _}
    assert Tame.Await.until(fn -> not is_map_key(subscribers(), caller) end)
  end

  test "a message that is none of its own changes nothing" do
    before = Process.whereis(:tame_job_rates)
    for message <- [:stray, {:"$tame", :other, 1}, {make_ref(), :late}], do: send(before, message)
    assert is_map(:tame_job_rates.rates())
    assert Process.whereis(:tame_job_rates) == before
  end

  test "the last rate of a row counts" do
    row = {__MODULE__, :nif, 1}
    for rate <- [1.0, 2.5], do: send(:tame_job_rates, {:"$tame", :rate, row, rate})
    assert %{^row => 2.5} = :tame_job_rates.rates()
  end

  test "the default slice is that of the C side, and of the table in the manual" do
    include = Path.join(:tame.include_dir(), "tame")

    for {path, line} <- [
          {include <> "/slice.h", ~r/^#define TAME_SLICE_US (\d+)$/m},
          {include <> ".h", ~r/^ \*   TAME_SLICE_US +(\d+) /m},
          {"../docs/reference/tame_h.md", ~r/^### `TAME_SLICE_US`\n\n(\d+): /m}
        ] do
      assert [_, us] = Regex.run(line, File.read!(path))
      assert {path, String.to_integer(us)} == {path, :tame_job_rates.slice_us()}
    end
  end

  test "the calibration has the jobs that have run" do
    row = ran()
    assert %{jobs: %{^row => job}} = :tame.calibration()
    # Between 10 MB/s and 1 TB/s.
    assert job.units_per_ms > 10_000 and job.units_per_ms < 1.0e9
    assert job.slice_units == floor(job.units_per_ms * :tame_job_rates.slice_us() / 1000)
    assert job.yielding_units > job.inline_units and job.inline_units > job.slice_units
  end

  test "the labs add what this machine's placements cost" do
    row = ran()
    assert {:ok, %{calibration: calibration}} = Tame.Calibrate.measure([], "a test", 1)
    assert %{hop: hop, dirty_hop: dirty, pool: pool, thread: thread} = calibration.costs_ns
    assert hop > 0 and dirty > 0 and pool > 0
    assert thread > hop
    assert Enum.sort(Map.keys(calibration.break_even_us)) == [:dirty_hop, :pool, :thread]
    assert %{^row => %{units_per_ms: rate, units_per_ms_spread: [low, high]}} = calibration.jobs
    assert low <= rate and rate <= high
  end

  # The row of a job that has run for long enough to tell its rate.
  defp ran do
    binary = :binary.copy(<<1>>, 1_000_000)
    row = {:tame_exor, :exor_inline_nif, 2}

    assert Tame.Await.until(fn ->
             :tame_exor.exor_inline(binary, binary)
             is_map_key(:tame_job_rates.rates(), row)
           end)

    row
  end

  describe "without the application" do
    test "jobs work, and what needs it says so" do
      code = """
      Error = fun(F) -> try F() catch error:Reason -> Reason end end,
      io:format("~w ~w ~w", [tame_echo:echo_pool(x), Error(fun() -> tame:calibration() end),
          Error(fun() -> tame:async(fun tame_echo:echo/1, [1], \#{progress => true}) end)]),
      halt().
      """

      ebins = for m <- [:tame, :tame_echo], do: m |> :code.which() |> to_string() |> Path.dirname()

      assert {"x {tame,not_started} {tame,not_started}", 0} =
               System.cmd("erl", ["-noinput", "-pa"] ++ ebins ++ ["-eval", code])
    end
  end

  defp subscribers, do: :sys.get_state(:tame_job_rates).subscribers
end
