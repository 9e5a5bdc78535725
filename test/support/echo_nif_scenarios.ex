defmodule Tame.EchoNIFScenarios do
  @moduledoc """
  What a test does with the echo NIFs inside a throw-away emulator: unloading a library that others
  use, or killing callers by the thousand, has no place in the emulator that runs the tests.
  """

  @doc "Threads of this emulator before the library was loaded, while it is, and after its unload."
  def threads_around_load do
    before = thread_count()
    nothing = :tame_echo_nif.echo(:nothing)
    for _ <- 1..100, do: call(:echo_thread_new, nothing)
    for _ <- 1..100, do: call(:echo_thread_queue, nothing)
    during = thread_count()
    unload()
    {before, during, thread_count()}
  end

  @doc "Unloads the library while threads still answer callers that are dead already; then uses it anew."
  def unload_with_threads_in_flight do
    for _ <- 1..20 do
      callers =
        for name <- [:echo_thread_new, :echo_thread_queue], _ <- 1..50 do
          spawn_monitor(fn ->
            apply(:tame_echo_nif, name, [make_ref(), :binary.copy("x", 1000)])
          end)
        end

      for {pid, monitor} <- callers do
        receive do
          {:DOWN, ^monitor, :process, ^pid, _} -> :ok
        end
      end

      unload()
    end

    call(:echo_thread_queue, :still_here)
  end

  defp call(name, term) do
    ref = make_ref()
    :ok = apply(:tame_echo_nif, name, [ref, term])

    receive do
      {^ref, back} -> back
    end
  end

  defp unload do
    true = :code.delete(:tame_echo_nif)
    :code.purge(:tame_echo_nif)
  end

  defp thread_count, do: length(File.ls!("/proc/self/task"))
end
