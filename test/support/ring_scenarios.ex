defmodule Tame.RingScenarios do
  @moduledoc "What becomes of a ring when its library or the whole emulator goes, in a throw-away emulator."

  alias Tame.Await
  alias Tame.Test.RingHost

  @doc """
  Loads the ring's NIF anew, `rounds` times, while callers spin, stand in line and wait; then unloads it. Returns
  how those calls ended, each once, what a call on a ring of an earlier instance came to, and whether the reader
  threads are gone.
  """
  def upgrade(rounds) do
    threads = thread_count()

    results =
      for _ <- 1..rounds do
        {:module, :tame_ring_nif} = :code.ensure_loaded(:tame_ring_nif)
        host = RingHost.start_ring(~w(slots=4 workers=2))
        callers = callers(host)
        true = Await.until(fn -> :tame_ring.info(host.ring).in_line > 0 end)

        true = :code.delete(:tame_ring_nif)
        {:module, :tame_ring_nif} = :code.load_file(:tame_ring_nif)
        old = outcome(fn -> RingHost.call(host, :echo, [1]) end)
        later = RingHost.start_ring()
        {:value, :new} = RingHost.call(later, :echo, [:new])

        ends = Enum.map(callers, &ending/1)
        Enum.each([host, later], &RingHost.stop/1)
        :code.purge(:tame_ring_nif)
        {old, ends}
      end

    :code.delete(:tame_ring_nif)
    :code.purge(:tame_ring_nif)
    # References to rings lie about in heaps.
    Enum.each(Process.list(), &:erlang.garbage_collect/1)
    {results, Await.until(fn -> thread_count() <= threads end)}
  end

  @doc "Halts the emulator under calls that spin, stand in line and wait."
  def halt do
    host = RingHost.start_ring(~w(slots=4 workers=2))
    callers(host)
    true = Await.until(fn -> :tame_ring.info(host.ring).in_line > 0 end)
    :erlang.halt(0)
  end

  # Some whose calls are short and many, some whose calls are slow: more than there are slots.
  defp callers(host) do
    for number <- 1..12 do
      name = if rem(number, 2) == 0, do: :slow_echo, else: :echo
      times = if name == :echo, do: 2000, else: 4

      spawn_monitor(fn -> exit(outcome(fn -> calls(host, name, times, number) end)) end)
    end
  end

  defp calls(host, name, times, number) do
    for turn <- 1..times do
      term = {turn, List.duplicate(number, 100)}
      {:value, ^term} = RingHost.call(host, name, [term])
    end

    :done
  end

  defp ending({pid, monitor}) do
    receive do
      {:DOWN, ^monitor, :process, ^pid, reason} -> reason
    end
  end

  defp outcome(fun) do
    fun.()
  catch
    kind, reason -> {kind, reason}
  end

  defp thread_count, do: length(File.ls!("/proc/self/task"))
end
