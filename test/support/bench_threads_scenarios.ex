defmodule Tame.BenchThreadsScenarios do
  @moduledoc """
  What a test does with the threads of the bench inside a throw-away emulator: unloading a library that others
  use, or killing callers by the thousand, has no place in the emulator that runs the tests.
  """

  # The VM may put an unload off until its schedulers have looked.
  @doc "Threads of this emulator before the library was loaded, while it is, and when it has been unloaded."
  def threads_around_load do
    before = Tame.OsThreads.count()
    for _ <- 1..100, do: call(:in_new_thread, :nothing)
    for _ <- 1..100, do: call(:in_queue, :nothing)
    during = Tame.OsThreads.count()
    unload()
    _ = Tame.Await.until(fn -> Tame.OsThreads.count() == before end)
    {before, during, Tame.OsThreads.count()}
  end

  @doc "Unloads the library while threads still answer callers that are dead already; then uses it anew."
  def unload_with_threads_in_flight do
    for _ <- 1..20 do
      callers =
        for name <- [:in_new_thread, :in_queue], _ <- 1..50 do
          spawn_monitor(fn ->
            apply(:bench_threads, name, [make_ref(), :binary.copy("x", 1000)])
          end)
        end

      for {pid, monitor} <- callers do
        receive do
          {:DOWN, ^monitor, :process, ^pid, _} -> :ok
        end
      end

      unload()
    end

    call(:in_queue, :still_here)
  end

  defp call(name, term) do
    ref = make_ref()
    :ok = apply(:bench_threads, name, [ref, term])

    receive do
      {^ref, back} -> back
    end
  end

  defp unload do
    true = :code.delete(:bench_threads)
    :code.purge(:bench_threads)
  end
end
